package retriever

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/blevesearch/bleve/v2"
)

var smallCorpus = []Document{
	{ID: "turing", Title: "Alan Turing", Text: "Born in 1912 in London. He wrote about machines; the machines think."},
	{ID: "lovelace", Title: "Ada Lovelace", Text: "Born in 1815. She wrote the first program for a machine."},
	{ID: "london", Title: "London", Text: "A city on the Thames."},
	{ID: "heroes", World: "music", Title: `"Heroes" (song)`, Text: "A song of 1977: foo:bar +x -y ~2^3 C++ a&b"},
	{ID: "other", World: "music", Title: "Low", Text: "An album of 1977"},
}

func ids(hits []Hit) []string {
	var s []string
	for _, h := range hits {
		s = append(s, h.ID)
	}
	return s
}

func TestSearchFindsDocuments(t *testing.T) {
	x := indexOf(t, smallCorpus)
	for query, want := range map[string]string{
		"1912": "turing", "1815": "lovelace", "the thames": "london", "ADA": "lovelace", "heroes": "heroes",
		`who wrote "machines think"?`: "turing", "+london -(city": "london",
	} {
		hits, err := x.Search(t.Context(), "", query, 1)
		if err != nil || len(hits) != 1 || hits[0].ID != want {
			t.Errorf("%q: %v, %v, want %s", query, ids(hits), err, want)
			continue
		}
		i := slices.IndexFunc(smallCorpus, func(d Document) bool { return d.ID == want })
		if hits[0].Document != smallCorpus[i] || hits[0].Score <= 0 {
			t.Errorf("%q: %+v, want %+v", query, hits[0], smallCorpus[i])
		}
	}
}

// hostile queries would be syntax, or a fault, somewhere.
var hostile = []string{
	`"unbalanced`, `foo:bar`, `+must -not`, `~2^3`, `(a OR`, `title:`, `*`, `a* ?b`, `/re[/`, `\`, `{}[]`, "a\x00b", "\xff\xfe",
	"machine\nmachine\tmachine", "ﬁ é e\u0301 日本語 😀", "_id:turing", "<search> x </search>", "AND OR NOT", "world:music",
}

func TestSearchAnswersEveryQuery(t *testing.T) {
	x := indexOf(t, smallCorpus)
	for _, q := range hostile {
		if _, err := x.Search(t.Context(), "", q, 3); err != nil {
			t.Errorf("%q: %v", q, err)
		}
	}
	for _, q := range []string{"", " \n\t", "?!.,;:-()[]{}\"'`~^*/\\|&%$#@+=<>", "absentword"} {
		for _, world := range []string{"", "music", "absent"} {
			if hits, err := x.Search(t.Context(), world, q, 3); err != nil || len(hits) != 0 {
				t.Errorf("%q: %v, %v, want no hits", q, ids(hits), err)
			}
		}
	}
	var terms []string
	for i := range 10_000 {
		terms = append(terms, fmt.Sprintf("word%d", i))
	}
	terms[5000] = "thames"
	for _, q := range []string{strings.Join(terms, " "), strings.Repeat("the ", 10_000) + "thames"} {
		hits, err := x.Search(t.Context(), "", q, 1)
		if err != nil || len(hits) != 1 || hits[0].ID != "london" {
			t.Errorf("10,000 terms: %v, %v", ids(hits), err)
		}
	}
	if _, err := x.Search(t.Context(), "", "a", 0); err == nil {
		t.Error("k 0: no error")
	}
	if hits, err := x.Search(t.Context(), "", "born", math.MaxInt); err != nil || len(hits) != 2 {
		t.Errorf("greatest k: %v, %v", ids(hits), err)
	}
}

func FuzzSearch(f *testing.F) {
	for _, q := range hostile {
		f.Add("music", q)
	}
	x := indexOf(f, smallCorpus)
	f.Fuzz(func(t *testing.T, world, q string) {
		hits, err := x.Search(t.Context(), world, q, 3)
		if err != nil {
			t.Fatalf("%q in %q: %v", q, world, err)
		}
		for _, h := range hits {
			if world != "" && h.World != world {
				t.Errorf("%q in %q: hit of %q", q, world, h.World)
			}
		}
	})
}

// tied is a corpus where 40 documents score the same and come in no order of ID.
func tied() []Document {
	docs := []Document{{ID: "best", World: "w", Title: "x", Text: "x x x"}}
	for i := range 40 {
		docs = append(docs, Document{ID: fmt.Sprintf("d%02d", i*17%40), World: fmt.Sprint("w", i%2), Title: "t", Text: "x y"})
	}
	return docs
}

// Equal scores come by ID, also where k cuts among them, and each k gives the
// beginning of the whole ranking.
func TestSearchTies(t *testing.T) {
	x := indexOf(t, tied())
	all, err := x.Search(t.Context(), "", "x", 41)
	if err != nil || len(all) != 41 {
		t.Fatalf("%d hits, %v", len(all), err)
	}
	sorted := slices.IsSortedFunc(all, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	if !sorted || all[0].ID != "best" || all[1].Score != all[40].Score {
		t.Errorf("order: %v", ids(all))
	}
	for k := 1; k <= 41; k++ {
		hits, err := x.Search(t.Context(), "", "x", k)
		if err != nil || !slices.Equal(hits, all[:k]) {
			t.Errorf("k=%d: %v, %v, want %v", k, ids(hits), err, ids(all[:k]))
		}
	}
}

// sameHit allows for another order of summation.
func sameHit(a, b Hit) bool {
	return a.Document == b.Document && math.Abs(a.Score-b.Score) < 1e-12*b.Score
}

// A world restricts, and changes neither the order nor the scores.
func TestSearchWorld(t *testing.T) {
	x := indexOf(t, miniWorlds(4, 60))
	for _, name := range miniNames(60) {
		all, err := x.Search(t.Context(), "", name, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, world := range []string{"w0", "w3", "absent"} {
			var want []Hit
			for _, h := range all {
				if h.World == world {
					want = append(want, h)
				}
			}
			for _, k := range []int{1, 2, 3, 60} {
				hits, err := x.Search(t.Context(), world, name, k)
				if err != nil || !slices.EqualFunc(hits, want[:min(k, len(want))], sameHit) {
					t.Errorf("%s in %s, k=%d: %v, %v, want %v", name, world, k, hits, err, want)
				}
			}
		}
	}
}

// Without repeated words, and without a title field, ranking is bleve's match query.
func TestSearchIsMatchQuery(t *testing.T) {
	x := bleveIndexOf(t, miniWorlds(3, 60))
	r := x.ranker.(*bleveRanker)
	r.titleBoost = 0
	for _, text := range []string{"gabe", "spouse founder river", strings.Join(miniNames(5), " ")} {
		match := bleve.NewMatchQuery(text)
		match.SetField(fieldContents)
		request := bleve.NewSearchRequestOptions(match, 10, 0, false)
		request.SortBy([]string{"-_score", "_id"})
		result, err := r.index.Search(request)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := x.Search(t.Context(), "", text, 10)
		if err != nil || len(hits) != len(result.Hits) {
			t.Fatalf("%q: %d hits, %v; bleve has %d", text, len(hits), err, len(result.Hits))
		}
		for i, h := range hits {
			if m := result.Hits[i]; h.ID != m.ID || math.Abs(h.Score-m.Score) > 1e-12 {
				t.Errorf("%q, rank %d: %s %g, bleve has %s %g", text, i, h.ID, h.Score, m.ID, m.Score)
			}
		}
	}
}

// The scores are what the package comment says of bleve's variant of BM25: √tf,
// idf twice, the share of clauses that matched, distinct terms over documents as
// average length.
func TestScoringIsBlevesVariant(t *testing.T) {
	docs := []Document{{ID: "1", Text: "a a a b"}, {ID: "2", Text: "a c d e f g"}, {ID: "3", Text: "b c"}}
	x := bleveIndexOf(t, docs)
	setTitleBoost(x, 0)
	idf := func(df float64) float64 { return math.Log(1 + (3-df+0.5)/(df+0.5)) }
	average := math.Ceil(7.0 / 3) // of 7 distinct terms, where the true average is 4
	term := func(tf, df, length float64) float64 {
		tf = math.Sqrt(tf)
		return idf(df) * tf * 1.2 / (tf + 1.2*(1-0.75+0.75*length/average))
	}
	norm := 1 / math.Sqrt(idf(2)*idf(2)*2)
	weight := idf(2) * norm // of each clause; both terms are in two documents
	want := map[string]float64{
		"1": weight * (term(3, 2, 4) + term(1, 2, 4)),
		"2": weight * term(1, 2, 6) / 2,
		"3": weight * term(1, 2, 2) / 2,
	}
	hits, err := x.Search(t.Context(), "", "a b", 3)
	if err != nil || len(hits) != 3 {
		t.Fatalf("%v, %v", ids(hits), err)
	}
	for _, h := range hits {
		if math.Abs(h.Score-want[h.ID]) > 1e-6*want[h.ID] {
			t.Errorf("%s: score %.9f, want %.9f", h.ID, h.Score, want[h.ID])
		}
	}
}

// What is said more often weighs more.
func TestSearchRepeatedTerms(t *testing.T) {
	x := indexOf(t, []Document{{ID: "1", Text: "a c d e f g"}, {ID: "2", Text: "b c"}, {ID: "3", Text: "h"}})
	for query, want := range map[string]string{"a b": "2", "a a a a b": "1", "a a a a b b b b b": "2"} {
		if hits, err := x.Search(t.Context(), "", query, 1); err != nil || len(hits) != 1 || hits[0].ID != want {
			t.Errorf("%q: %v, %v, want %s", query, ids(hits), err, want)
		}
	}
}

func TestSearchEnglishAnalyser(t *testing.T) {
	o := DefaultBuildOptions()
	o.Analyser = AnalyserEnglish
	x := openIndex(t, buildFrom(t, o, writeDocuments(t, smallCorpus)))
	for query, want := range map[string]int{"the": 0, "thinking": 1, "1977": 2, "Lovelace's programs": 1} {
		if hits, err := x.Search(t.Context(), "", query, 5); err != nil || len(hits) != want {
			t.Errorf("%q: %v, %v, want %d hits", query, ids(hits), err, want)
		}
	}
}

// Many goroutines get what one gets; run with -race.
func TestSearchConcurrent(t *testing.T) {
	docs := miniWorlds(5, 60)
	x := indexOf(t, docs)
	want := make([][]Hit, len(docs))
	for i, d := range docs {
		hits, err := x.Search(t.Context(), d.World, d.Title, 3)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = hits
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range docs {
				i = (i*7 + g*31) % len(docs)
				hits, err := x.Search(t.Context(), docs[i].World, docs[i].Title, 3)
				if err != nil || !slices.Equal(hits, want[i]) {
					t.Errorf("%s: %v, %v, want %v", docs[i].ID, ids(hits), err, ids(want[i]))
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestSearchStops(t *testing.T) {
	x := indexOf(t, smallCorpus)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Search(ctx, "", "london", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := x.Search(t.Context(), "", "london", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
