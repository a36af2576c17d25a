package retriever

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// miniNames are single-token names, as the mini-wiki has them.
func miniNames(n int) []string {
	var names []string
	for _, a := range "bdfgklmnprst" {
		for _, b := range "aeiou" {
			for _, c := range "bdfgklmnprst" {
				names = append(names, string([]rune{a, b, c, 'e'}))
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:n]
}

// miniWorlds generates documents in the mini-wiki's form: in each world the names
// are shared out anew between people, towns, companies, countries and rivers,
// with one document each that states its relations in random order.
func miniWorlds(worlds, names int) []Document {
	pool := miniNames(names)
	rng := rand.New(rand.NewPCG(2, 3))
	var docs []Document
	for w := range worlds {
		order := rng.Perm(names)
		name := func(share, of int) string { // of group share, sixths of the names
			size := names / 6
			return pool[order[share*size+rng.IntN(of*size)]]
		}
		for i, p := range order {
			var facts []string
			switch i / (names / 6) {
			case 0, 1: // people
				facts = []string{"birth " + name(2, 1), "employer " + name(3, 1), "spouse " + name(0, 2)}
			case 2: // towns
				facts = []string{"country " + name(4, 1), "mayor " + name(0, 2), "river " + name(5, 1)}
			case 3: // companies
				facts = []string{"base " + name(2, 1), "founder " + name(0, 2), "rival " + name(3, 1)}
			}
			rng.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
			text := "."
			if len(facts) > 0 {
				text = strings.Join(facts, " ; ") + " ;"
			}
			world := fmt.Sprintf("w%d", w)
			docs = append(docs, Document{ID: world + "/" + pool[p], World: world, Title: pool[p], Text: text})
		}
	}
	return docs
}

// writeDocuments writes documents.jsonl in a fresh folder.
func writeDocuments(t testing.TB, docs []Document) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	for _, d := range docs {
		if err := enc.Encode(d); err != nil {
			t.Fatal(err)
		}
	}
	return writeFile(t, "documents.jsonl", b.String())
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildFrom builds an index over files in a fresh folder and returns its path.
func buildFrom(t testing.TB, o BuildOptions, paths ...string) string {
	t.Helper()
	c, err := OpenCorpus(paths, CorpusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "index")
	if _, err := Build(t.Context(), dir, c, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openIndex(t testing.TB, dir string) *Index {
	t.Helper()
	x, err := Open(dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func indexOf(t testing.TB, docs []Document) *Index {
	t.Helper()
	return openIndex(t, buildFrom(t, DefaultBuildOptions(), writeDocuments(t, docs)))
}

// setTitleBoost changes the weight of titles in an open index.
func setTitleBoost(x *Index, boost float64) {
	switch r := x.ranker.(type) {
	case *bleveRanker:
		r.titleBoost = boost
	case *exactRanker:
		r.titleBoost = boost
	}
}

// bleveIndexOf builds and opens an index with bleve's own scoring.
func bleveIndexOf(t testing.TB, docs []Document) *Index {
	t.Helper()
	o := DefaultBuildOptions()
	o.Scoring = BleveScoring()
	return openIndex(t, buildFrom(t, o, writeDocuments(t, docs)))
}

// nameSearches is what searches for names of the mini-wiki give.
type nameSearches struct {
	first  float64    // share of names whose own document comes first
	margin float64    // least ratio of the titled document's score to the next
	tokens [4]float64 // words of a mean observation of the k best, at k
}

func searchNames(t testing.TB, x *Index, docs []Document) nameSearches {
	t.Helper()
	r, n := nameSearches{margin: math.Inf(1)}, float64(len(docs))
	for _, d := range docs {
		hits, err := x.Search(t.Context(), d.World, d.Title, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) > 0 && hits[0].ID == d.ID {
			r.first += 1 / n
		}
		if len(hits) > 1 {
			r.margin = min(r.margin, hits[0].Score/hits[1].Score)
		}
		for i, h := range hits {
			for k := i + 1; k <= 3; k++ {
				r.tokens[k] += float64(len(strings.Fields("title "+h.Title+" : "+h.Text))) / n
			}
		}
	}
	return r
}

// A search for a name gives the document of that name first; the log says what
// the weight of titles does, and how long observations are.
func TestMiniWikiTitledFirst(t *testing.T) {
	worlds := 70
	if raceEnabled() { // many times slower, and one goroutine has no races
		worlds = 2
	}
	docs := miniWorlds(worlds, 120)
	x := indexOf(t, docs)
	r := searchNames(t, x, docs)
	t.Logf("%d names: %.2f %% titled first, margin %.2f; tokens an observation: k=1 %.1f, k=2 %.1f, k=3 %.1f",
		len(docs), 100*r.first, r.margin, r.tokens[1], r.tokens[2], r.tokens[3])
	if math.Round(r.first*float64(len(docs))) != float64(len(docs)) {
		t.Errorf("%.2f %% of the titled documents come first", 100*r.first)
	}
	for _, boost := range []float64{0, 0.01, 0.1, 0.5, 1, 2} {
		setTitleBoost(x, boost)
		r := searchNames(t, x, docs[:240])
		t.Logf("title boost %.2f: %.2f %% titled first, margin %.2f", boost, 100*r.first, r.margin)
	}
}

func BenchmarkMiniSearch(b *testing.B) {
	docs := miniWorlds(75, 120)
	x := indexOf(b, docs)
	for k := 1; k <= 3; k++ {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			start, n := cpuSeconds(b), 0
			for ; b.Loop(); n++ {
				d := docs[n*7919%len(docs)]
				if _, err := x.Search(b.Context(), d.World, d.Title, k); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(1e6*(cpuSeconds(b)-start)/float64(n), "cpu-µs/search")
		})
	}
}

// cpuSeconds is the CPU time of the process, which a busy machine does not blur
// as it does the clock.
func cpuSeconds(t testing.TB) float64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
