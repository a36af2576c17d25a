package retriever

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func mustCorpus(t testing.TB, o CorpusOptions, paths ...string) *Corpus {
	t.Helper()
	c, err := OpenCorpus(paths, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// names lists a folder.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestBuildManifest(t *testing.T) {
	a := writeDocuments(t, smallCorpus)
	b := writeFile(t, "b.tsv", "id\ttext\ttitle\n1\tx\tA\n2\tbad\n3\ty\tB\n3\tagain\tB\n")
	o := DefaultBuildOptions()
	o.TitleBoost, o.DocumentsPerWrite, o.DocumentsPerReport = 1.5, 2, 3
	var reports [][3]int64
	o.Progress = func(documents int, read, total int64) {
		reports = append(reports, [3]int64{int64(documents), read, total})
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "index")
	c := mustCorpus(t, CorpusOptions{SkipBad: true}, a, b)
	m, err := Build(t.Context(), dir, c, o)
	if err != nil {
		t.Fatal(err)
	}
	if m.Documents != 7 || m.Skipped != 2 || m.TitleBoost != 1.5 || m.Analyser != AnalyserPlain ||
		m.Scoring != (Scoring{"bm25-lucene", 0.9, 0.4, 0}) || len(m.Inputs) != 2 || m.Inputs[1].Documents != 2 {
		t.Errorf("manifest %+v", m)
	}
	_, total := c.Progress()
	want := [][3]int64{{3, reports[0][1], total}, {6, reports[1][1], total}, {7, total, total}}
	if !reflect.DeepEqual(reports, want) {
		t.Errorf("progress %v, want %v", reports, want)
	}
	if got := openIndex(t, dir).Manifest(); !reflect.DeepEqual(got, *m) {
		t.Errorf("opened %+v, built %+v", got, *m)
	}
	if got := names(t, parent); !reflect.DeepEqual(got, []string{"index"}) {
		t.Errorf("the build left %v", got)
	}
}

// The version in the manifest is the one that go.mod asks for.
func TestBleveVersion(t *testing.T) {
	raw, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "blevesearch/bleve/v2 "+bleveVersion+"\n") {
		t.Errorf("go.mod does not ask for bleve %s", bleveVersion)
	}
}

func TestBuildErrors(t *testing.T) {
	good := writeDocuments(t, smallCorpus)
	line := `{"id":"a","title":"t","text":"x"}` + "\n"
	cases := []struct {
		name, path, says string
		o                BuildOptions
	}{
		{"duplicate", writeFile(t, "d.jsonl", line+"\n"+line), `d.jsonl:3: document ID "a" was there before`, BuildOptions{}},
		{"bad record", writeFile(t, "d.jsonl", line+"{\n"), "d.jsonl:2: ", BuildOptions{}},
		{"empty", writeFile(t, "d.jsonl", "\n\n"), "no documents", BuildOptions{}},
		{"format", writeFile(t, "d.txt", "hello\n"), "format not recognised", BuildOptions{}},
		{"analyser", good, "unknown analyser", BuildOptions{Analyser: "simple"}},
		{"boost", good, "not a weight", BuildOptions{TitleBoost: -1}},
	}
	for _, c := range cases {
		parent := t.TempDir()
		_, err := Build(t.Context(), filepath.Join(parent, "index"), mustCorpus(t, CorpusOptions{}, c.path), c.o)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if left := names(t, parent); len(left) > 0 {
			t.Errorf("%s: left %v", c.name, left)
		}
	}
	if _, err := Build(t.Context(), filepath.Join(t.TempDir(), "no", "index"), mustCorpus(t, CorpusOptions{}, good), BuildOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no parent folder: %v", err)
	}
}

// An index is replaced only when asked for, anything else never; who has the old
// one open goes on.
func TestBuildReplace(t *testing.T) {
	first, second := writeDocuments(t, smallCorpus), writeDocuments(t, smallCorpus[:2])
	dir := buildFrom(t, DefaultBuildOptions(), first)
	old := openIndex(t, dir)
	if _, err := Build(t.Context(), dir, mustCorpus(t, CorpusOptions{}, second), BuildOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("second build: %v", err)
	}
	if _, err := Build(t.Context(), dir, mustCorpus(t, CorpusOptions{}, second), BuildOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	if n := openIndex(t, dir).Manifest().Documents; n != 2 {
		t.Errorf("%d documents after the replacement", n)
	}
	if hits, err := old.Search(t.Context(), "", "thames", 1); err != nil || len(hits) != 1 {
		t.Errorf("the old index: %v, %v", ids(hits), err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), foreign, mustCorpus(t, CorpusOptions{}, second), BuildOptions{Replace: true}); !errors.Is(err, ErrForeign) {
		t.Errorf("foreign folder: %v", err)
	}
	if got := names(t, foreign); !reflect.DeepEqual(got, []string{"thesis.txt"}) {
		t.Errorf("the foreign folder has %v", got)
	}
}

// A build that is cancelled at any point leaves nothing, and the next succeeds.
func TestBuildCancelled(t *testing.T) {
	path := writeDocuments(t, miniWorlds(3, 60))
	rng := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		at := 1 + rng.IntN(180)
		ctx, cancel := context.WithCancel(t.Context())
		o := BuildOptions{DocumentsPerWrite: 16, DocumentsPerReport: 1}
		o.Progress = func(documents int, _, _ int64) {
			if documents == at {
				cancel()
			}
		}
		parent := t.TempDir()
		dir := filepath.Join(parent, "index")
		if _, err := Build(ctx, dir, mustCorpus(t, CorpusOptions{}, path), o); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %d: %v", at, err)
		}
		if left := names(t, parent); len(left) > 0 {
			t.Errorf("cancelled at %d: left %v", at, left)
		}
		if _, err := Open(dir, OpenOptions{}); !errors.Is(err, ErrNoIndex) {
			t.Errorf("cancelled at %d: open says %v", at, err)
		}
		cancel()
	}
}

// While one build runs, another says so and does not wait; the remains of one
// that was killed do not stand in the way.
func TestBuildsExclude(t *testing.T) {
	path := writeDocuments(t, smallCorpus)
	dir := filepath.Join(t.TempDir(), "index")
	o := BuildOptions{DocumentsPerReport: 1}
	o.Progress = func(documents int, _, _ int64) {
		if documents != 1 {
			return
		}
		if _, err := Build(t.Context(), dir, mustCorpus(t, CorpusOptions{}, path), BuildOptions{}); !errors.Is(err, ErrBusy) {
			t.Errorf("second build: %v", err)
		}
		if _, err := Open(dir, OpenOptions{}); !errors.Is(err, ErrHalfBuilt) {
			t.Errorf("open while it is built: %v", err)
		}
	}
	remains := filepath.Join(buildingPath(dir), "index", "store")
	if err := os.MkdirAll(remains, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), dir, mustCorpus(t, CorpusOptions{}, path), o); err != nil {
		t.Fatal(err)
	}
	openIndex(t, dir)
}

func TestIDSet(t *testing.T) {
	s := newIDSet()
	for i := range 10_000 {
		if !s.add(fmt.Sprint(i)) {
			t.Fatalf("%d is not new", i)
		}
	}
	if s.add("77") {
		t.Error("77 is new again")
	}
}
