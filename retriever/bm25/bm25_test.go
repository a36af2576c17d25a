package bm25

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// corpus is documents as their terms, by field.
type corpus struct {
	ids    []string
	fields [][][]string // by document and field

	counted [][]map[string]int // the same as counts, made once
	df      []map[string]float64
	idfs    []float64 // sums of plain logarithms
	average []float64
}

func (c *corpus) count() {
	if c.counted != nil {
		return
	}
	n := float64(len(c.ids))
	c.average, c.idfs = make([]float64, len(fieldNames)), make([]float64, len(fieldNames))
	for range fieldNames {
		c.df = append(c.df, map[string]float64{})
	}
	for _, d := range c.fields {
		var all []map[string]int
		for f, text := range d {
			c.average[f] += float64(len(text)) / n
			all = append(all, counts(text))
			for w := range all[f] {
				c.df[f][w]++
			}
		}
		c.counted = append(c.counted, all)
	}
	for f, df := range c.df {
		for _, d := range df {
			c.idfs[f] += math.Log((n - d + 0.5) / (d + 0.5))
		}
	}
}

// random makes n documents of two fields; words have a steep distribution.
func random(rng *rand.Rand, n, words, length int) corpus {
	var c corpus
	draw := func(n int) []string {
		text := make([]string, n)
		for i := range text {
			text[i] = fmt.Sprintf("w%d", int(math.Pow(float64(words), rng.Float64()))-1)
		}
		return text
	}
	for i := range n {
		c.ids = append(c.ids, fmt.Sprintf("%07d", i*7))
		c.fields = append(c.fields, [][]string{draw(rng.IntN(length + 1)), draw(rng.IntN(4)), {fmt.Sprintf("world%d", rng.IntN(9))}})
	}
	return c
}

var fieldNames = []string{"contents", "title", "world"}

// write writes documents [from, to) as a shard.
func (c corpus) write(t testing.TB, dir string, from, to int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lengths := make([][]uint32, len(fieldNames))
	postings := make([]map[string][]Posting, len(fieldNames))
	for f := range fieldNames {
		postings[f] = map[string][]Posting{}
		for d := from; d < to; d++ {
			text := c.fields[d][f]
			lengths[f] = append(lengths[f], uint32(len(text)))
			count := map[string]uint32{}
			for _, w := range text {
				count[w]++
			}
			for w, n := range count {
				postings[f][w] = append(postings[f][w], Posting{uint32(d - from), n})
			}
		}
	}
	w, err := NewWriter(dir, fieldNames, c.ids[from:to], lengths)
	if err != nil {
		t.Fatal(err)
	}
	for f := range fieldNames {
		for _, term := range sortedKeys(postings[f]) {
			if err := w.Term(f, []byte(term), postings[f][term]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// index writes the documents in shards and opens them.
func (c corpus) index(t testing.TB, p Parameters, shards int) *Index {
	t.Helper()
	var dirs []string
	for i := range shards {
		dirs = append(dirs, filepath.Join(t.TempDir(), fmt.Sprint("shard-", i)))
		c.write(t, dirs[i], i*len(c.ids)/shards, (i+1)*len(c.ids)/shards)
	}
	s, err := Finish(dirs, p)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(dirs, p, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// plain is BM25 as the formula is written, over all documents.
func (c *corpus) plain(p Parameters, q Query, k int) []result {
	c.count()
	n := float64(len(c.ids))
	idf := func(f int, w string) float64 {
		d := c.df[f][w]
		v := math.Log((n - d + 0.5) / (d + 0.5))
		switch {
		case p.Formula == Lucene:
			return math.Log(1 + (n-d+0.5)/(d+0.5))
		case v < 0:
			return p.Epsilon * c.idfs[f] / float64(len(c.df[f]))
		}
		return v
	}
	var all []result
	for d, text := range c.fields {
		score, found := 0.0, false
		for _, t := range q.Terms {
			tf := float64(c.counted[d][t.Field][t.Text])
			if tf == 0 {
				continue
			}
			found = true
			v := tf / (tf + p.K1*(1-p.B+p.B*float64(len(text[t.Field]))/c.average[t.Field]))
			if p.Formula == Robertson {
				v *= p.K1 + 1
			}
			score += t.Weight * idf(t.Field, t.Text) * v
		}
		if found && (q.Only == nil || c.counted[d][q.Only.Field][q.Only.Text] > 0) {
			all = append(all, result{c.ids[d], score})
		}
	}
	slices.SortFunc(all, func(a, b result) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	return all[:min(k, len(all))]
}

func counts(text []string) map[string]int {
	m := map[string]int{}
	for _, w := range text {
		m[w]++
	}
	return m
}

type result struct {
	id    string
	score float64
}

// Every way through a search gives what the formula gives: shards, fields, restricted
// searches, negative weights, long queries, few and many hits.
func TestSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		p      Parameters
		n      int
		shards int
	}{
		"lucene":               {Parameters{Lucene, 0.9, 0.4, 0}, 3000, 1},
		"lucene in shards":     {Parameters{Lucene, 1.2, 0.75, 0}, 3000, 4},
		"robertson":            {Parameters{Robertson, 1.5, 0.75, 0.25}, 2000, 2},
		"a negative floor":     {Parameters{Robertson, 1.5, 0.75, 0.25}, 3, 1},
		"no length, no bounds": {Parameters{Lucene, 0, 0, 0}, 500, 2},
	} {
		t.Run(name, func(t *testing.T) {
			docs := random(rng, c.n, 400, 40)
			x := docs.index(t, c.p, c.shards)
			for trial := range 120 {
				q := Query{}
				said := map[string]bool{}
				for range 1 + rng.IntN([]int{3, 9, 200}[trial%3]) {
					term := Term{rng.IntN(2), fmt.Sprintf("w%d", int(math.Pow(400, rng.Float64()))-1), []float64{1, 2, 0.25}[rng.IntN(3)]}
					if key := fmt.Sprint(term.Field, term.Text); !said[key] {
						said[key] = true
						q.Terms = append(q.Terms, term)
					}
				}
				if trial%4 == 3 {
					q.Only = &Term{Field: 2, Text: fmt.Sprintf("world%d", rng.IntN(10))}
				}
				k := []int{1, 3, 10, 1000}[rng.IntN(4)]
				got, err := x.Search(t.Context(), q, k)
				if err != nil {
					t.Fatal(err)
				}
				want := docs.plain(c.p, q, k)
				if len(got) != len(want) {
					t.Fatalf("%+v, k %d: %d hits, want %d", q, k, len(got), len(want))
				}
				for i, h := range got {
					// Robertson's mean is summed in another order here, and can part equals.
					if x.ID(h) != want[i].id && c.p.Formula == Lucene || math.Abs(h.Score-want[i].score) > 1e-9 {
						t.Fatalf("%+v, k %d, hit %d: %s %v, want %s %v", q, k, i, x.ID(h), h.Score, want[i].id, want[i].score)
					}
				}
			}
		})
	}
}

// More than one window of documents.
func TestWindows(t *testing.T) {
	var c corpus
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 1<<windowBits + 4000 {
		text := []string{"all"}
		if rng.IntN(1000) == 0 {
			text = append(text, "rare")
		}
		if rng.IntN(10) == 0 {
			text = append(text, "some", "some")
		}
		c.ids = append(c.ids, fmt.Sprintf("%07d", i))
		c.fields = append(c.fields, [][]string{text, nil, nil})
	}
	x := c.index(t, Parameters{Lucene, 0.9, 0.4, 0}, 1)
	for _, words := range [][]string{{"rare"}, {"all", "rare"}, {"all", "some", "rare"}, {"all"}, {"some", "all"}} {
		q := Query{}
		for _, w := range words {
			q.Terms = append(q.Terms, Term{0, w, 1})
		}
		got, err := x.Search(t.Context(), q, 20)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.plain(Parameters{Lucene, 0.9, 0.4, 0}, q, 20) {
			if x.ID(got[i]) != want.id || math.Abs(got[i].Score-want.score) > 1e-9 {
				t.Fatalf("%v, hit %d: %s %v, want %s %v", words, i, x.ID(got[i]), got[i].Score, want.id, want.score)
			}
		}
	}
}

// So many different lengths that a code needs four bytes.
func TestWideCodes(t *testing.T) {
	const n = 1<<windowBits + 9
	dir := t.TempDir()
	ids, lengths, postings := make([]string, n), make([]uint32, n), make([]Posting, n)
	for i := range n {
		ids[i], lengths[i], postings[i] = fmt.Sprintf("%07d", i), uint32(n-i), Posting{uint32(i), 1}
	}
	w, err := NewWriter(dir, []string{"contents"}, ids, [][]uint32{lengths})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Term(0, []byte("a"), postings); err != nil {
		t.Fatal(err)
	}
	counts, err := w.Close()
	if err != nil || !counts.WideCodes {
		t.Fatalf("%+v, %v", counts, err)
	}
	p := Parameters{Lucene, 0.9, 0.4, 0}
	s, err := Finish([]string{dir}, p)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open([]string{dir}, p, s)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	got, err := x.Search(t.Context(), Query{Terms: []Term{{0, "a", 1}}}, 3)
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	for i, h := range got { // the shortest first
		length := float64(i + 1)
		want := p.idf(n, n) / (1 + 0.9*(0.6+0.4*length/(float64(n+1)/2)))
		if x.ID(h) != ids[n-1-i] || math.Abs(h.Score-want) > 1e-15 {
			t.Errorf("hit %d: %s %v, want %s %v", i, x.ID(h), h.Score, ids[n-1-i], want)
		}
	}
}

func TestSeekIsABinarySearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	for n := range 300 {
		lows := make([]uint16, n)
		limit := 1 + rng.IntN(1<<16)
		for i := range lows {
			lows[i] = uint16(rng.IntN(limit))
		}
		slices.Sort(lows)
		lows = slices.Compact(lows)
		for _, low := range append(slices.Clone(lows), 0, 1, 65535, uint16(rng.IntN(1<<16)), uint16(rng.IntN(limit))) {
			for _, x := range []uint16{low - 1, low, low + 1} {
				if want, _ := slices.BinarySearch(lows, x); seek(lows, x) != want {
					t.Fatalf("%v: seek(%d) = %d, want %d", lows, x, seek(lows, x), want)
				}
			}
		}
	}
}
