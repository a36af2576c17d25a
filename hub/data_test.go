package hub

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestData: a file gets its hash beside it, and is compared with it from then on.
func TestData(t *testing.T) {
	data := content(1, 50_000)
	s := newFileServer(t, data)
	h := &Hub{Downloader: *quick(t)}
	d := DataFile{Name: "x", URL: s.URL + "/dir/x.jsonl"}
	dir := t.TempDir()
	noted := filepath.Join(dir, "x.jsonl.sha256")
	for i, requests := range []int{1, 0} {
		s.requests = nil
		file, got, err := h.Data(t.Context(), d, dir)
		if err != nil || got.SHA256 != sha256Hex(data) || got.Already != (i == 1) || len(s.requests) != requests {
			t.Errorf("%d: %+v, %v, %d requests", i, got, err, len(s.requests))
		}
		isFile(t, file, data)
		if text, err := os.ReadFile(noted); err != nil || string(text) != sha256Hex(data)+"  x.jsonl\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "x.jsonl"), data[:100], 0o644); err != nil {
		t.Fatal(err)
	}
	if file, got, err := h.Data(t.Context(), d, dir); err != nil || got.Already {
		t.Errorf("a damaged file: %s %+v, %v", file, got, err)
	}
	isFile(t, filepath.Join(dir, "x.jsonl"), data)

	// The publisher changed the file: what is noted no longer fits.
	if err := os.Remove(filepath.Join(dir, "x.jsonl")); err != nil {
		t.Fatal(err)
	}
	s.data = content(2, 50_000)
	if _, _, err := h.Data(t.Context(), d, dir); !errors.Is(err, ErrMismatch) {
		t.Errorf("another content: %v", err)
	}
}

// TestDataThatIsThere: a file from elsewhere is taken and its hash noted.
func TestDataThatIsThere(t *testing.T) {
	dir := t.TempDir()
	data := content(3, 1000)
	if err := os.WriteFile(filepath.Join(dir, "x.jsonl"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	h := &Hub{Downloader: *quick(t), Offline: true}
	d := DataFile{Name: "x", URL: "http://127.0.0.1:1/x.jsonl"}
	if _, got, err := h.Data(t.Context(), d, dir); err != nil || got != (Got{1000, sha256Hex(data), true}) {
		t.Errorf("%+v, %v", got, err)
	}
	d.URL = "http://127.0.0.1:1/y.jsonl"
	if _, _, err := h.Data(t.Context(), d, dir); !errors.Is(err, ErrOffline) {
		t.Errorf("offline: %v", err)
	}
	h.Offline = false
	if _, _, err := h.Data(t.Context(), d, dir); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), filepath.Join(dir, "y.jsonl")) {
		t.Errorf("unreachable: %v", err)
	}
}

// TestDataOfTheHub: the hub's own hash is what counts where none is known.
func TestDataOfTheHub(t *testing.T) {
	f := newFakeHub(t)
	repo := &fakeRepo{commit: flashRAGAt, large: 1000, files: map[string][]byte{"nq/dev.jsonl": content(1, 5000), "nq/test.jsonl": content(2, 500)}}
	f.repos["datasets/"+flashRAG] = repo
	for _, name := range []string{"flashrag-nq-dev", "flashrag-nq-test"} {
		h := f.client(t)
		found, err := ResolveData(name)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		d, dir := found[0], t.TempDir()
		file, _, err := h.Data(t.Context(), d, dir)
		if err != nil {
			t.Fatal(err)
		}
		isFile(t, file, repo.files[d.Path])
		if want := strings.ReplaceAll(d.Path, "/", "-"); filepath.Base(file) != want {
			t.Errorf("%s is called %s", d.Path, file)
		}
		f.taken()
		if _, got, err := h.Data(t.Context(), d, dir); err != nil || !got.Already || len(f.taken()) != 0 {
			t.Errorf("again: %+v, %v", got, err)
		}
	}
	repo.gated, repo.token = true, "hf_good"
	d, _ := ResolveData("flashrag-nq-dev")
	if _, _, err := f.client(t).Data(t.Context(), d[0], t.TempDir()); !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), "/datasets/"+flashRAG) {
		t.Errorf("gated: %v", err)
	}
}

// TestKnownData: the table holds together.
func TestKnownData(t *testing.T) {
	var names, files []string
	for _, d := range KnownData() {
		names, files = append(names, d.Name), append(files, d.File())
		if (d.URL == "") == (d.Repo == "") || d.Repo != "" && (!commit.MatchString(d.Commit) || d.Path == "" || Repo{DatasetRepo, d.Repo}.Validate() != nil) {
			t.Errorf("%s: not one place", d.Name)
		}
		if d.SHA256 != "" && (len(d.SHA256) != 64 || !hexKey.MatchString(d.SHA256) || d.Size == 0) || !SafeName(d.File()) || strings.Contains(d.File(), "/") {
			t.Errorf("%s: %+v", d.Name, d)
		}
		if slices.Contains(names, d.Group) {
			t.Errorf("%s is a file and a group", d.Group)
		}
	}
	slices.Sort(names)
	slices.Sort(files)
	if len(slices.Compact(names)) != 11 || len(slices.Compact(files)) != 11 {
		t.Errorf("names %q, files %q", names, files)
	}
	for name, want := range map[string]int{"hotpotqa": 2, "NQ-open": 2, "flashrag": 5, "wiki-18": 1, "psgs_w100.tsv.gz": 1, "hotpot_dev_distractor_v1.json": 1} {
		if found, err := ResolveData(name); err != nil || len(found) != want {
			t.Errorf("%s: %d files, %v", name, len(found), err)
		}
	}
	if _, err := ResolveData("squad"); err == nil || !strings.Contains(err.Error(), "hotpotqa-train, ") || !strings.Contains(err.Error(), "flashrag") {
		t.Errorf("got %v", err)
	}
}
