package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Repo names a repository.
type Repo struct {
	Kind string // Models or Datasets
	ID   string // ORG/NAME
}

// The kinds of repositories, as the API's paths and the cache's folders spell them.
const (
	ModelRepo   = "models"
	DatasetRepo = "datasets"
)

var (
	repoID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Validate reports an ID that is not ORG/NAME.
func (r Repo) Validate() error {
	if !repoID.MatchString(r.ID) || strings.Contains(r.ID, "..") || strings.Contains(r.ID, "--") {
		return fmt.Errorf("%q is not ORG/NAME", r.ID)
	}
	if r.Kind != ModelRepo && r.Kind != DatasetRepo {
		return fmt.Errorf("kind of repository %q is not known", r.Kind)
	}
	return nil
}

// Entry is a file of a repository.
type Entry struct {
	Name    string // path within the repository
	Size    int64  // bytes; 0: not told
	SHA256  string // of the content of a file in LFS; "": not told
	GitSHA1 string // git's id of any other; "": not told
}

// key names the content in the cache: its sha256, else its git id.
func (e Entry) key() string {
	if e.SHA256 != "" {
		return e.SHA256
	}
	return e.GitSHA1
}

// Listing is a repository at one commit.
type Listing struct {
	Repo   Repo
	Commit string
	Gated  bool // its files want an accepted licence and a token
	Files  []Entry
}

// apiInfo is the API's answer.
type apiInfo struct {
	SHA      string `json:"sha"`
	Gated    any    `json:"gated"` // false, "auto" or "manual"
	Siblings []struct {
		Name   string `json:"rfilename"`
		Size   int64  `json:"size"`
		BlobID string `json:"blobId"`
		LFS    *struct {
			SHA256 string `json:"sha256"`
			Size   int64  `json:"size"`
		} `json:"lfs"`
	} `json:"siblings"`
}

// List resolves a revision (branch, tag or commit) and lists the files of its commit.
func (h *Hub) List(ctx context.Context, repo Repo, revision string) (*Listing, error) {
	if err := repo.Validate(); err != nil {
		return nil, err
	}
	if h.Offline {
		return nil, ErrOffline
	}
	var info apiInfo
	address := h.Endpoint + "/api/" + repo.Kind + "/" + repo.ID + "/revision/" + url.PathEscape(revision) + "?blobs=true"
	if err := h.getJSON(ctx, address, h.Token, &info); err != nil {
		return nil, h.explain(repo, err)
	}
	if !commit.MatchString(info.SHA) {
		return nil, fmt.Errorf("%s: the server names no commit but %q", repo.ID, info.SHA)
	}
	l := &Listing{Repo: repo, Commit: info.SHA}
	l.Gated = info.Gated != nil && info.Gated != false
	for _, s := range info.Siblings {
		if !SafeName(s.Name) {
			return nil, fmt.Errorf("%s: file name %q is refused", repo.ID, s.Name)
		}
		e := Entry{Name: s.Name, Size: s.Size}
		if s.LFS != nil {
			e.Size, e.SHA256 = s.LFS.Size, strings.ToLower(s.LFS.SHA256)
		} else {
			e.GitSHA1 = strings.ToLower(s.BlobID)
		}
		if e.key() != "" && !hexKey.MatchString(e.key()) {
			return nil, fmt.Errorf("%s: %s: hash %q is refused", repo.ID, s.Name, e.key())
		}
		l.Files = append(l.Files, e)
	}
	return l, nil
}

var hexKey = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// url is where a file's content is.
func (h *Hub) url(l *Listing, name string) string {
	prefix := ""
	if l.Repo.Kind != ModelRepo {
		prefix = l.Repo.Kind + "/"
	}
	return h.Endpoint + "/" + prefix + l.Repo.ID + "/resolve/" + l.Commit + "/" + (&url.URL{Path: name}).EscapedPath()
}

// complete asks for size and hash of a file whose listing has none, which some
// mirrors leave out. The headers stand in the answer before its redirect.
func (h *Hub) complete(ctx context.Context, l *Listing, e Entry) (Entry, error) {
	if e.key() != "" && e.Size > 0 {
		return e, nil
	}
	t := tries{d: &h.Downloader}
	for {
		header, err := h.head(ctx, h.url(l, e.Name))
		if err == nil {
			return e.fromHeader(header), nil
		}
		if err := t.again(ctx, err); err != nil {
			return e, h.explain(l.Repo, err)
		}
	}
}

// head is the header of the answer that says what the file is: a redirect to
// where the content lies is not followed.
func (h *Hub) head(ctx context.Context, address string) (http.Header, error) {
	resp, err := h.send(ctx, http.MethodHead, address, h.Token, nil)
	if err != nil {
		return nil, err
	}
	return resp.Header, resp.Body.Close()
}

func (e Entry) fromHeader(header http.Header) Entry {
	tag, size := header.Get("X-Linked-Etag"), header.Get("X-Linked-Size")
	if tag == "" {
		tag = header.Get("ETag")
	}
	if size == "" {
		size = header.Get("Content-Length")
	}
	if n, err := strconv.ParseInt(size, 10, 64); err == nil && e.Size == 0 {
		e.Size = n
	}
	tag = strings.ToLower(strings.Trim(strings.TrimPrefix(tag, "W/"), `"`))
	if e.key() == "" && hexKey.MatchString(tag) {
		if len(tag) == 64 {
			e.SHA256 = tag
		} else {
			e.GitSHA1 = tag
		}
	}
	return e
}

// explain says what to do about an error of the hub.
func (h *Hub) explain(repo Repo, err error) error {
	var status *StatusError
	page := h.Endpoint + "/" + repo.ID
	if repo.Kind != ModelRepo {
		page = h.Endpoint + "/" + repo.Kind + "/" + repo.ID
	}
	switch {
	case errors.Is(err, ErrUnreachable):
		return fmt.Errorf("%w; a mirror can be named with HF_ENDPOINT", err)
	case !errors.As(err, &status):
		return err
	case status.Reason == "GatedRepo":
		return fmt.Errorf("%s is gated: accept its terms at %s and set HF_TOKEN to a token of that account: %w", repo.ID, page, err)
	case status.Code == http.StatusUnauthorized && h.Token == "", status.Reason == "RepoNotFound" && h.Token == "":
		return fmt.Errorf("%s does not exist, or is private or gated: then set HF_TOKEN: %w", repo.ID, err)
	case status.Is(ErrAccess):
		return fmt.Errorf("the token in use (HF_TOKEN, or the file of hf auth login) may not read %s: %w", repo.ID, err)
	}
	return err
}
