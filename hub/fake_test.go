package hub

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// content is repeatable bytes that do not compress.
func content(seed uint64, n int) []byte {
	data := make([]byte, n)
	r := rand.NewPCG(seed, 7)
	for i := range data {
		data[i] = byte(r.Uint64())
	}
	return data
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func gitBlob(data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// fileServer serves one content with ranges, and what a test makes it do wrong.
type fileServer struct {
	*httptest.Server
	mu       sync.Mutex
	data     []byte
	etag     string
	requests []*http.Request // without their bodies
	sent     int             // bytes of content
	// wrong is asked before the nth request (from 0) is served; true: it has been dealt with.
	wrong func(n int, w http.ResponseWriter, r *http.Request) bool
}

func newFileServer(t *testing.T, data []byte) *fileServer {
	t.Helper()
	s := &fileServer{data: data, etag: `"v1"`}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *fileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	s.requests = append(s.requests, r.Clone(r.Context()))
	if s.wrong != nil && s.wrong(n, w, r) {
		return
	}
	s.serve(w, r, -1)
}

// serve answers as a server with ranges does, and cuts the connection after so
// many bytes; -1: it does not.
func (s *fileServer) serve(w http.ResponseWriter, r *http.Request, cut int) {
	start, status := 0, http.StatusOK
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		if v := r.Header.Get("If-Range"); v == "" || v == s.etag {
			start, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
			status = http.StatusPartialContent
		}
	}
	w.Header().Set("ETag", s.etag)
	if start > len(s.data) || start == len(s.data) && start > 0 {
		http.Error(w, "nothing there", http.StatusRequestedRangeNotSatisfiable)
		return
	}
	if status == http.StatusPartialContent {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(s.data)-1, len(s.data)))
	}
	body := s.data[start:]
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if cut >= 0 && cut < len(body) {
		body = body[:cut]
	}
	n, _ := w.Write(body)
	s.sent += n
	if cut >= 0 {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
}

// total is how many bytes of content were sent, once no request is under way.
func (s *fileServer) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// quick is a Downloader for tests: no waiting between tries.
func quick(t *testing.T) *Downloader {
	return &Downloader{FirstPause: time.Nanosecond, Stall: 20 * time.Second, Note: func(line string) { t.Log(line) }}
}

// fakeHub serves repositories as huggingface.co does: an API, and contents that
// it redirects to another host.
type fakeHub struct {
	*httptest.Server
	cdn      *httptest.Server
	mu       sync.Mutex
	repos    map[string]*fakeRepo // "models/ORG/NAME"
	requests []string             // "METHOD path", the CDN's with "cdn" before it
	tokens   map[string][]string  // host: the Authorization headers that it got
	wrong    func(w http.ResponseWriter, r *http.Request) bool
	bare     bool // the API tells neither sizes nor hashes
}

type fakeRepo struct {
	commit string
	files  map[string][]byte
	large  int // bytes from which a file is in LFS
	gated  bool
	token  string // wanted; "": none
}

func newFakeHub(t *testing.T) *fakeHub {
	t.Helper()
	f := &fakeHub{repos: map[string]*fakeRepo{}, tokens: map[string][]string{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.hub))
	f.cdn = httptest.NewServer(http.HandlerFunc(f.content))
	t.Cleanup(f.Server.Close)
	t.Cleanup(f.cdn.Close)
	return f
}

// put makes the model org/tiny this one.
func (f *fakeHub) put(repo *fakeRepo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repos["models/"+tinyName] = repo
}

func (f *fakeHub) seen(where string, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, where+r.Method+" "+r.URL.Path)
	f.tokens[r.Host] = append(f.tokens[r.Host], r.Header.Get("Authorization"))
}

func (f *fakeHub) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", message)
	w.WriteHeader(status)
}

// hub answers /api/KIND/ORG/NAME[/revision/REV] and [/datasets]/ORG/NAME/resolve/COMMIT/FILE.
func (f *fakeHub) hub(w http.ResponseWriter, r *http.Request) {
	f.seen("", r)
	if f.wrong != nil && f.wrong(w, r) {
		return
	}
	words := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	kind := "models"
	api := words[0] == "api"
	if api {
		kind, words = words[1], words[2:]
	} else if words[0] == "datasets" {
		kind, words = "datasets", words[1:]
	}
	f.mu.Lock()
	repo := f.repos[kind+"/"+strings.Join(words[:min(2, len(words))], "/")]
	f.mu.Unlock()
	switch {
	case repo == nil:
		refuse(w, http.StatusUnauthorized, "RepoNotFound", "Repository not found")
	case api:
		f.api(w, repo, words[2:])
	case len(words) < 5 || words[2] != "resolve" || words[3] != repo.commit:
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id")
	default:
		f.resolve(w, r, repo, strings.Join(words[4:], "/"))
	}
}

func (f *fakeHub) api(w http.ResponseWriter, repo *fakeRepo, words []string) {
	if len(words) == 2 && words[0] == "revision" && words[1] != "main" && words[1] != repo.commit {
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+words[1])
		return
	}
	type lfs struct {
		SHA256  string `json:"sha256,omitempty"`
		OID     string `json:"oid,omitempty"`
		Size    int    `json:"size"`
		Pointer int    `json:"pointerSize"`
	}
	var siblings, tree []map[string]any
	for name, data := range repo.files {
		s := map[string]any{"rfilename": name}
		e := map[string]any{"type": "file", "path": name, "size": len(data), "oid": gitBlob(data)}
		if !f.bare {
			s["size"], s["blobId"] = len(data), gitBlob(data)
		}
		if len(data) >= repo.large {
			// The blob id of a file in LFS is that of its pointer.
			s["blobId"], e["oid"] = gitBlob([]byte(name)), gitBlob([]byte(name))
			if !f.bare {
				s["lfs"] = lfs{SHA256: sha256Hex(data), Size: len(data)}
			} else {
				delete(s, "blobId")
			}
			e["lfs"] = lfs{OID: sha256Hex(data), Size: len(data)}
		}
		siblings, tree = append(siblings, s), append(tree, e)
	}
	var answer any = map[string]any{"id": "x/y", "modelId": "x/y", "sha": repo.commit, "gated": any(false), "siblings": siblings, "tags": []string{}}
	if words[0] == "tree" {
		answer = tree
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fakeHub) resolve(w http.ResponseWriter, r *http.Request, repo *fakeRepo, name string) {
	data, ok := repo.files[name]
	switch {
	case repo.token != "" && r.Header.Get("Authorization") != "Bearer "+repo.token && repo.gated:
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to model is restricted")
	case repo.token != "" && r.Header.Get("Authorization") != "Bearer "+repo.token:
		refuse(w, http.StatusForbidden, "", "Forbidden")
	case !ok:
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
	case len(data) >= repo.large:
		w.Header().Set("X-Repo-Commit", repo.commit)
		w.Header().Set("X-Linked-Etag", `"`+sha256Hex(data)+`"`)
		w.Header().Set("X-Linked-Size", strconv.Itoa(len(data)))
		http.Redirect(w, r, f.cdn.URL+"/"+sha256Hex(data)+"?Signature=secret", http.StatusFound)
	default:
		w.Header().Set("X-Repo-Commit", repo.commit)
		w.Header().Set("ETag", `"`+gitBlob(data)+`"`)
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(data)
		}
	}
}

// content is the CDN: contents by their sha256.
func (f *fakeHub) content(w http.ResponseWriter, r *http.Request) {
	f.seen("cdn ", r)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, repo := range f.repos {
		for _, data := range repo.files {
			if "/"+sha256Hex(data) == r.URL.Path {
				w.Header().Set("ETag", `"cdn-`+sha256Hex(data)[:8]+`"`)
				http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
				return
			}
		}
	}
	http.NotFound(w, r)
}

// client is a Hub with a cache of its own on this server.
func (f *fakeHub) client(t *testing.T) *Hub {
	t.Helper()
	return &Hub{Downloader: *quick(t), Endpoint: f.URL, Cache: t.TempDir()}
}

const (
	commitA = "0123456789012345678901234567890123456789"
	commitB = "abcdefabcdefabcdefabcdefabcdefabcdefabcd"
)

// tiny is a model of one file of weights, with what is not to be downloaded.
func tiny() *fakeRepo {
	return &fakeRepo{commit: commitA, large: 1000, files: map[string][]byte{
		"config.json": []byte(`{"model_type":"llama"}`), "generation_config.json": []byte(`{}`), "tokenizer.json": content(2, 3000),
		"tokenizer_config.json": []byte(`{"a":1}`), "chat_template.jinja": []byte("{{ x }}"), "model.safetensors": content(1, 300_000),
		"pytorch_model.bin": content(3, 2000), "README.md": []byte("read me"), "onnx/model.onnx": content(4, 2000), "consolidated.safetensors": content(5, 2000),
	}}
}

func (f *fakeHub) downloads() []string {
	var out []string
	for _, line := range f.taken() {
		if name, ok := strings.CutPrefix(line, "GET "); ok && !strings.HasPrefix(name, "/api/") {
			out = append(out, name[strings.LastIndex(name, "/")+1:])
		}
	}
	slices.Sort(out)
	return out
}
