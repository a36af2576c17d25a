package bm25

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// BenchmarkSearch asks a generated collection for the 3 best documents.
func BenchmarkSearch(b *testing.B) {
	n := 1 << 17
	if s := os.Getenv("BM25_DOCUMENTS"); s != "" {
		fmt.Sscan(s, &n)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	const words = 300_000
	draw := func() int { // Zipf's law of exponent 1
		return int(math.Pow(words, rng.Float64())) - 1
	}
	lengths := make([]uint32, n)
	postings := map[int][]Posting{}
	for d := range n {
		length := 30 + rng.IntN(50)
		lengths[d] = uint32(length)
		count := map[int]uint32{}
		for range length {
			count[draw()]++
		}
		for w, c := range count {
			postings[w] = append(postings[w], Posting{uint32(d), c})
		}
	}
	ids := make([]string, n)
	for d := range ids {
		ids[d] = fmt.Sprintf("%08d", d)
	}
	dir := filepath.Join(b.TempDir(), "shard")
	os.Mkdir(dir, 0o755)
	w, err := NewWriter(dir, []string{"contents"}, ids, [][]uint32{lengths})
	if err != nil {
		b.Fatal(err)
	}
	names := map[string]int{}
	for word := range postings {
		names[fmt.Sprintf("w%d", word)] = word
	}
	for _, name := range sortedKeys(names) {
		if err := w.Term(0, []byte(name), postings[names[name]]); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		b.Fatal(err)
	}
	p := Parameters{Lucene, 0.9, 0.4, 0}
	s, err := Finish([]string{dir}, p)
	if err != nil {
		b.Fatal(err)
	}
	x, err := Open([]string{dir}, p, s)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	var queries []Query
	for range 1000 {
		q := Query{}
		said := map[int]bool{}
		for range 4 + rng.IntN(5) {
			if w := draw(); !said[w] {
				said[w] = true
				q.Terms = append(q.Terms, Term{0, fmt.Sprintf("w%d", w), 1})
			}
		}
		queries = append(queries, q)
	}
	slices.Reverse(queries)
	i, cpu := 0, cpuSeconds()
	for b.Loop() {
		if _, err := x.Search(b.Context(), queries[i%len(queries)], 3); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(1e6*(cpuSeconds()-cpu)/float64(i), "cpu-µs/search")
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
