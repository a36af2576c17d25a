package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The cache is laid out as Hugging Face's tools lay it out:
//
//	models--ORG--NAME/blobs/HASH                   contents, by sha256 (LFS) or git id
//	models--ORG--NAME/snapshots/COMMIT/config.json a link to ../../blobs/HASH
//	models--ORG--NAME/refs/main                    the commit that main was last seen at
//	.locks/models--ORG--NAME/HASH.lock             held while HASH is written

// folder is the repository's place in the cache.
func (h *Hub) folder(repo Repo) string {
	return filepath.Join(h.Cache, repo.Kind+"--"+strings.ReplaceAll(repo.ID, "/", "--"))
}

// commitOf is the commit that a revision stands for in the cache; "" if not known.
func (h *Hub) commitOf(repo Repo, revision string) string {
	if commit.MatchString(revision) {
		return revision
	}
	if !SafeName(revision) {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(h.folder(repo), "refs", filepath.FromSlash(revision)))
	if text := strings.TrimSpace(string(data)); err == nil && commit.MatchString(text) {
		return text
	}
	return ""
}

// Cached is the folder of a model's revision in the cache, if everything that
// loading it takes is there: config.json and all weights.
func (h *Hub) Cached(repo Repo, revision string) (dir string, ok bool) {
	if repo.Validate() != nil {
		return "", false
	}
	id := h.commitOf(repo, revision)
	if id == "" {
		return "", false
	}
	dir = filepath.Join(h.folder(repo), "snapshots", id)
	return dir, Whole(dir)
}

// Whole tells whether a folder holds a model: config.json and all parts of its
// weights in safetensors, or one GGUF file. Downloads that did not end do not count.
func Whole(dir string) bool {
	has := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))) // a link to nothing is not there
		return err == nil && info.Mode().IsRegular()
	}
	if !has(configName) {
		found, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
		return err == nil && len(found) == 1 && has(filepath.Base(found[0]))
	}
	if has(singleWeights) {
		return true
	}
	data, err := os.ReadFile(filepath.Join(dir, weightsIndex))
	if err != nil {
		return false
	}
	parts, err := partsOf(data)
	for _, name := range parts {
		if !has(name) {
			return false
		}
	}
	return err == nil
}

// partsOf lists the files that an index of weights names.
func partsOf(index []byte) ([]string, error) {
	var file struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(index, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", weightsIndex, err)
	}
	seen, names := map[string]bool{}, []string(nil)
	for _, name := range file.Map {
		if !SafeName(name) {
			return nil, fmt.Errorf("%s: file name %q is refused", weightsIndex, name)
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s names no files", weightsIndex)
	}
	return names, nil
}

// fetchToCache brings one file of a listing into the cache and gives the path
// of its link in the snapshot.
func (h *Hub) fetchToCache(ctx context.Context, l *Listing, e Entry) (string, error) {
	folder := h.folder(l.Repo)
	link := filepath.Join(folder, "snapshots", l.Commit, filepath.FromSlash(e.Name))
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	e, err := h.complete(ctx, l, e)
	if err != nil {
		return "", err
	}
	if e.key() == "" {
		return "", fmt.Errorf("%s: %s: the server tells no hash", l.Repo.ID, e.Name)
	}
	unlock, err := h.lockBlob(ctx, l.Repo, e.key())
	if err != nil {
		return "", err
	}
	defer unlock()
	blob := filepath.Join(folder, "blobs", e.key())
	// A blob there is whole: it got its name only when it was. Its size alone is looked at.
	if info, err := os.Stat(blob); err != nil || e.Size > 0 && info.Size() != e.Size {
		if _, err := h.Download(ctx, h.file(l, e), blob); err != nil {
			return "", h.explain(l.Repo, err)
		}
	}
	return link, linkTo(blob, link)
}

// file describes a listing's entry for the download.
func (h *Hub) file(l *Listing, e Entry) File {
	return File{URL: h.url(l, e.Name), Token: h.Token, Size: e.Size, SHA256: e.SHA256, GitSHA1: e.GitSHA1}
}

// lockBlob takes the lock that Hugging Face's tools take for the same blob.
func (h *Hub) lockBlob(ctx context.Context, repo Repo, key string) (unlock func(), err error) {
	dir := filepath.Join(h.Cache, ".locks", filepath.Base(h.folder(repo)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, key+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
		if !told {
			h.note("another process is downloading %s; waiting", repo.ID)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// linkTo makes link a relative symbolic link to the blob, or a copy where the
// file system has none.
func linkTo(blob, link string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(link), blob)
	if err != nil {
		return err
	}
	if current, err := os.Readlink(link); err == nil && current == target {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Symlink(target, link)
	if errors.Is(err, fs.ErrExist) { // another process was quicker
		return nil
	}
	if errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported) {
		return copyFile(blob, link)
	}
	return err
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.CreateTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Close()); err == nil {
		err = os.Rename(target.Name(), to)
	}
	if err != nil {
		_ = os.Remove(target.Name()) // the first fault is the one to tell
	}
	return err
}

// writeRef keeps which commit a branch or tag was last seen at.
func (h *Hub) writeRef(repo Repo, revision, id string) error {
	if revision == id || !SafeName(revision) {
		return nil
	}
	path := filepath.Join(h.folder(repo), "refs", filepath.FromSlash(revision))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ref-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(id)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
