package hub

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const tinyName = "org/tiny"

// fetch asks for a model and fails the test where that fails.
func fetch(t *testing.T, h *Hub, r Request) Fetched {
	t.Helper()
	r.Model = KnownModel{Name: "tiny", Repo: tinyName}
	got, err := h.Model(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// wanted are the files of tiny that a model needs.
var wanted = []string{"chat_template.jinja", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}

// TestModelIntoCache: the right files, in Hugging Face's layout, and no request
// the second time.
func TestModelIntoCache(t *testing.T) {
	f := newFakeHub(t)
	repo := tiny()
	f.put(repo)
	h := f.client(t)
	h.Token = "hf_secret"
	var started []string
	got := fetch(t, h, Request{Started: func(name string, _ int64) { started = append(started, name) }})
	folder := filepath.Join(h.Cache, "models--org--tiny")
	if got != (Fetched{Dir: filepath.Join(folder, "snapshots", commitA), Commit: commitA}) {
		t.Errorf("%+v", got)
	}
	if files := f.downloads(); !slices.Equal(files, wanted) {
		t.Errorf("downloaded %q", files)
	}
	if started[len(started)-1] != "model.safetensors" {
		t.Errorf("the weights do not come last: %q", started)
	}
	for _, name := range wanted {
		isFile(t, filepath.Join(got.Dir, name), repo.files[name])
		key := gitBlob(repo.files[name])
		if len(repo.files[name]) >= repo.large {
			key = sha256Hex(repo.files[name])
		}
		if link, err := os.Readlink(filepath.Join(got.Dir, name)); err != nil || link != filepath.Join("..", "..", "blobs", key) {
			t.Errorf("%s links to %q, %v", name, link, err)
		}
	}
	if ref, err := os.ReadFile(filepath.Join(folder, "refs", "main")); err != nil || string(ref) != commitA {
		t.Errorf("refs/main is %q, %v", ref, err)
	}
	for _, token := range f.tokens[strings.TrimPrefix(f.URL, "http://")] {
		if token != "Bearer hf_secret" {
			t.Errorf("the hub got %q", token)
		}
	}
	for _, token := range f.tokens[strings.TrimPrefix(f.cdn.URL, "http://")] {
		if token != "" {
			t.Errorf("the CDN got %q", token)
		}
	}
	if again := fetch(t, h, Request{}); !again.Already || again.Dir != got.Dir || len(f.taken()) != 0 {
		t.Errorf("asked again: %+v", again)
	}
	h.Offline = true
	if again := fetch(t, h, Request{Revision: commitA}); again.Dir != got.Dir {
		t.Errorf("offline: %+v", again)
	}
}

// TestNewCommit: only --refresh looks, and only what changed is downloaded.
func TestNewCommit(t *testing.T) {
	f := newFakeHub(t)
	f.put(tiny())
	h := f.client(t)
	fetch(t, h, Request{})
	next := tiny()
	next.commit, next.files["config.json"] = commitB, []byte(`{"model_type":"qwen2"}`)
	f.put(next)
	f.taken()
	if got := fetch(t, h, Request{}); got.Commit != commitA {
		t.Errorf("without refresh: %+v", got)
	}
	got := fetch(t, h, Request{Refresh: true})
	if files := f.downloads(); got.Commit != commitB || !slices.Equal(files, []string{"config.json"}) {
		t.Errorf("%+v, downloaded %q", got, files)
	}
	isFile(t, filepath.Join(got.Dir, "config.json"), next.files["config.json"])
	if got := fetch(t, h, Request{}); got.Commit != commitB {
		t.Errorf("main is at %s", got.Commit)
	}
	f.Server.Close()
	if got := fetch(t, h, Request{Refresh: true}); got.Commit != commitB || !got.Already {
		t.Errorf("not reachable: %+v", got)
	}
}

// TestInterrupted: half a model does not count as one, and is gone on with.
func TestInterrupted(t *testing.T) {
	f := newFakeHub(t)
	repo := tiny()
	repo.files["model.safetensors"] = content(1, 5_000_000) // more than the buffers on the way hold
	f.put(repo)
	h := f.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.Progress = func(done, total int64) {
		if total == 5_000_000 && done > 100_000 {
			cancel()
		}
	}
	model := KnownModel{Name: "tiny", Repo: tinyName}
	if _, err := h.Model(ctx, Request{Model: model}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if dir, ok := h.Cached(Repo{ModelRepo, tinyName}, "main"); ok {
		t.Errorf("half of it counts: %s", dir)
	}
	var first int64 = -1
	h.Progress = func(done, total int64) {
		if total == 5_000_000 && first < 0 {
			first = done
		}
	}
	f.taken()
	got := fetch(t, h, Request{})
	isFile(t, filepath.Join(got.Dir, "model.safetensors"), repo.files["model.safetensors"])
	if files := f.downloads(); first <= 100_000 || !slices.Equal(files, []string{"model.safetensors"}) {
		t.Errorf("went on from %d with %q", first, files)
	}
}

// TestParts: the files that the index names, and the weights only once.
func TestParts(t *testing.T) {
	f := newFakeHub(t)
	repo := tiny()
	delete(repo.files, "model.safetensors")
	parts := []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
	for i, name := range parts {
		repo.files[name] = content(uint64(20+i), 5000)
	}
	repo.files["model.safetensors.index.json"] = []byte(`{"weight_map":{"a":"` + parts[1] + `","b":"` + parts[0] + `","c":"` + parts[1] + `"}}`)
	f.put(repo)
	h := f.client(t)
	got := fetch(t, h, Request{})
	for _, name := range parts {
		isFile(t, filepath.Join(got.Dir, name), repo.files[name])
	}
	if files := f.downloads(); slices.Contains(files, "consolidated.safetensors") || len(files) != 8 {
		t.Errorf("downloaded %q", files)
	}
	if !Whole(got.Dir) {
		t.Error("not whole with all parts")
	}
	if err := os.Remove(filepath.Join(got.Dir, parts[0])); err != nil {
		t.Fatal(err)
	}
	if Whole(got.Dir) {
		t.Error("whole without a part")
	}
	for index, word := range map[string]string{
		`{"weight_map":{"a":"../../x"}}`: "refused", `{"weight_map":{"a":"other.safetensors"}}`: "not found", `{"weight_map":{}}`: "names no files", `[]`: "json",
	} {
		repo.files["model.safetensors.index.json"] = []byte(index)
		_, err := f.client(t).Model(t.Context(), Request{Model: KnownModel{Repo: tinyName}})
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", index, err)
		}
	}
}

// TestModelIntoFolder: plain files, checked anew each time.
func TestModelIntoFolder(t *testing.T) {
	f := newFakeHub(t)
	repo := tiny()
	f.put(repo)
	h := f.client(t)
	dir := filepath.Join(t.TempDir(), "m")
	for range 2 {
		if got := fetch(t, h, Request{Dir: dir}); got.Dir != dir || got.Commit != commitA {
			t.Errorf("%+v", got)
		}
		for _, name := range wanted {
			isFile(t, filepath.Join(dir, name), repo.files[name])
		}
	}
	if files := f.downloads(); len(files) != len(wanted) {
		t.Errorf("downloaded %q", files)
	}
	h.Offline = true
	if got := fetch(t, h, Request{Dir: dir}); !got.Already {
		t.Errorf("offline: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(h.Cache, "models--org--tiny")); err == nil {
		t.Error("the cache was written too")
	}
}

// TestFiles: what is asked for by name, and nothing that is not there.
func TestFiles(t *testing.T) {
	f := newFakeHub(t)
	f.put(tiny())
	h := f.client(t)
	fetch(t, h, Request{Files: []string{"onnx/*.onnx", "README.md", "*.md"}})
	if files := f.downloads(); !slices.Equal(files, []string{"README.md", "model.onnx"}) {
		t.Errorf("downloaded %q", files)
	}
	if _, err := h.Model(t.Context(), Request{Model: KnownModel{Repo: tinyName}, Files: []string{"*.gguf"}}); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	repo := tiny()
	delete(repo.files, "model.safetensors")
	f.put(repo)
	if _, err := f.client(t).Model(t.Context(), Request{Model: KnownModel{Repo: tinyName}}); err == nil || !strings.Contains(err.Error(), "pytorch_model.bin") {
		t.Errorf("no safetensors: %v", err)
	}
	repo.files = map[string][]byte{"a.gguf": content(9, 2000)}
	if got := fetch(t, f.client(t), Request{}); !Whole(got.Dir) {
		t.Error("one GGUF is a model")
	}
}

// TestBareListing: hashes come from each file's header where the list has none,
// and a content that is not of that hash is refused.
func TestBareListing(t *testing.T) {
	f := newFakeHub(t)
	repo := tiny()
	f.put(repo)
	f.bare = true
	got := fetch(t, f.client(t), Request{})
	for _, name := range wanted {
		isFile(t, filepath.Join(got.Dir, name), repo.files[name])
	}
	f.wrong = func(w http.ResponseWriter, r *http.Request) bool {
		wrong := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/config.json")
		if wrong {
			_, _ = w.Write([]byte(`{"model_type":"other"}`))
		}
		return wrong
	}
	if _, err := f.client(t).Model(t.Context(), Request{Model: KnownModel{Repo: tinyName}}); !errors.Is(err, ErrMismatch) {
		t.Errorf("got %v", err)
	}
}

// TestRefusals: each error says what to do.
func TestRefusals(t *testing.T) {
	f := newFakeHub(t)
	gated, private := tiny(), tiny()
	gated.gated, gated.token, private.token = true, "hf_good", "hf_good"
	f.repos["models/org/gated"], f.repos["models/org/private"], f.repos["models/"+tinyName] = gated, private, tiny()
	for _, c := range []struct {
		repo, token, revision string
		is                    error
		words                 []string
	}{
		{"org/gated", "", "", ErrAccess, []string{"org/gated is gated", "accept", "/org/gated", "HF_TOKEN"}},
		{"org/gated", "hf_bad", "", ErrAccess, []string{"is gated", "HF_TOKEN"}},
		{"org/gated", "hf_good", "", nil, nil},
		{"org/private", "hf_bad", "", ErrAccess, []string{"may not read org/private", "HF_TOKEN"}},
		{"org/private", "hf_good", "", nil, nil},
		{"org/absent", "", "", ErrAccess, []string{"org/absent does not exist", "HF_TOKEN"}},
		{tinyName, "", "v9", ErrNotFound, []string{"RevisionNotFound", "v9"}},
		{tinyName, "", "../x", nil, []string{"revision", "refused"}},
	} {
		h := f.client(t)
		h.Token = c.token
		_, err := h.Model(t.Context(), Request{Model: KnownModel{Repo: c.repo}, Revision: c.revision})
		if (err == nil) != (c.words == nil) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s with %q: %v", c.repo, c.token, err)
			continue
		}
		for _, word := range c.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s with %q: %q is not in %v", c.repo, c.token, word, err)
			}
		}
		if err != nil && c.token != "" && strings.Contains(err.Error(), c.token) {
			t.Errorf("the error shows the token: %v", err)
		}
	}
	h := f.client(t)
	h.Offline = true
	if _, err := h.Model(t.Context(), Request{Model: KnownModel{Repo: tinyName}}); !errors.Is(err, ErrOffline) || len(f.repos) == 0 {
		t.Errorf("offline: %v", err)
	}
	f.Server.Close()
	_, err := f.client(t).Model(t.Context(), Request{Model: KnownModel{Repo: tinyName}})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "HF_ENDPOINT") || !strings.Contains(err.Error(), "HF_HOME") {
		t.Errorf("unreachable: %v", err)
	}
}

// TestHostileListing: names and hashes that would lead out of the cache.
func TestHostileListing(t *testing.T) {
	for _, body := range []string{
		`{"sha":"` + commitA + `","siblings":[{"rfilename":"../../evil","size":1,"blobId":"` + commitA + `"}]}`,
		`{"sha":"` + commitA + `","siblings":[{"rfilename":"/etc/passwd","size":1,"blobId":"` + commitA + `"}]}`,
		`{"sha":"` + commitA + `","siblings":[{"rfilename":"config.json","size":1,"blobId":"../../../evil"}]}`,
		`{"sha":"` + commitA + `","siblings":[{"rfilename":"config.json","lfs":{"sha256":"../../x","size":1}}]}`,
		`{"sha":"../../x","siblings":[]}`, `{"siblings":[]}`, `<html>`,
	} {
		f := newFakeHub(t)
		f.wrong = func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(body))
			return true
		}
		h := f.client(t)
		if l, err := h.List(t.Context(), Repo{ModelRepo, tinyName}, "main"); err == nil {
			t.Errorf("taken: %s as %+v", body, l)
		}
		if left, _ := os.ReadDir(h.Cache); len(left) != 0 {
			t.Errorf("%s left %v", body, left)
		}
	}
	for id, want := range map[string]bool{
		"org/name": true, "Qwen/Qwen2.5-7B": true, "a/b.c_d": true, "name": false, "a/b/c": false, "../b": false, "a/..": false,
		"a/b--c": false, "a/.b": false, "-a/b": false, "a b/c": false, "": false, "a/": false,
	} {
		if (Repo{ModelRepo, id}.Validate() == nil) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}

// TestProcessesShareACache: several fetches at once download each file once.
func TestProcessesShareACache(t *testing.T) {
	f := newFakeHub(t)
	f.put(tiny())
	cache := t.TempDir()
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			h := f.client(t)
			h.Cache = cache
			if _, err := h.Model(t.Context(), Request{Model: KnownModel{Repo: tinyName}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if files := f.downloads(); !slices.Equal(files, wanted) {
		t.Errorf("downloaded %q", files)
	}
}

func TestResolve(t *testing.T) {
	for name, want := range map[string]string{
		"SmolLM2-135M-Instruct": "HuggingFaceTB/SmolLM2-135M-Instruct", "qwen2.5-3b-instruct": "Qwen/Qwen2.5-3B-Instruct", "Qwen/Qwen2.5-7B": "Qwen/Qwen2.5-7B",
		"MEM1-7B": "Mem-Lab/Qwen2.5-7B-RL-RAG-Q2-EM-Release", "some/thing": "some/thing",
	} {
		if m, err := Resolve(name); err != nil || m.Repo != want {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	if m, _ := Resolve("huggingfacetb/smollm2-135m-instruct"); m.Package == nil {
		t.Error("a name in full lost its package")
	}
	for _, name := range []string{"", "Qwen2.5", "../x", "a/b/c"} {
		if _, err := Resolve(name); err == nil || !strings.Contains(err.Error(), "Qwen2.5-0.5B-Instruct, ") || !strings.Contains(err.Error(), "ORG/NAME") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := len(KnownModels()); n != 10 {
		t.Errorf("%d models are known", n)
	}
}

func TestFromEnvironment(t *testing.T) {
	names := []string{"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME",
		"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN"}
	home := t.TempDir()
	token := filepath.Join(home, ".cache", "huggingface", "token")
	if err := os.MkdirAll(filepath.Dir(token), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(token, []byte("hf_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hf := filepath.Join(home, ".cache", "huggingface")
	for _, c := range []struct {
		env  map[string]string
		want Hub
	}{
		{nil, Hub{Endpoint: "https://huggingface.co", Token: "hf_file", Cache: hf + "/hub"}},
		{map[string]string{"HF_HOME": "~/h", "HF_TOKEN": " hf_env "}, Hub{Endpoint: "https://huggingface.co", Token: "hf_env", Cache: home + "/h/hub"}},
		{map[string]string{"HF_HOME": "/h", "HF_HUB_CACHE": "$HOME/c"}, Hub{Endpoint: "https://huggingface.co", Cache: home + "/c"}},
		{map[string]string{"XDG_CACHE_HOME": "/x", "HF_TOKEN_PATH": token}, Hub{Endpoint: "https://huggingface.co", Token: "hf_file", Cache: "/x/huggingface/hub"}},
		{map[string]string{"HF_ENDPOINT": "http://mirror:8/", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, Hub{Endpoint: "http://mirror:8", Cache: hf + "/hub", Offline: true}},
		{map[string]string{"TRANSFORMERS_OFFLINE": "yes", "HF_HUB_OFFLINE": "0"}, Hub{Endpoint: "https://huggingface.co", Token: "hf_file", Cache: hf + "/hub", Offline: true}},
	} {
		t.Setenv("HOME", home)
		for _, name := range names {
			t.Setenv(name, c.env[name])
		}
		h, err := FromEnvironment()
		if err != nil || h.Endpoint != c.want.Endpoint || h.Token != c.want.Token || h.Cache != c.want.Cache || h.Offline != c.want.Offline {
			t.Errorf("%v: %+v, %v", c.env, h, err)
		}
	}
	t.Setenv("HF_ENDPOINT", "huggingface.co")
	if _, err := FromEnvironment(); err == nil {
		t.Error("an endpoint without a scheme is taken")
	}
}
