package bm25

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Term is one term of a query.
type Term struct {
	Field  int
	Text   string
	Weight float64 // how often it is said, times the field's weight
}

// Hit is a document found.
type Hit struct {
	Shard    int
	Document uint32 // its number in the shard
	Score    float64
}

// Query is what is searched for.
type Query struct {
	// Terms are the query's, each of a field once, in the order in which a score is summed.
	Terms []Term
	// Only restricts the hits to documents that have this term, without changing
	// their scores; its weight is not read.
	Only *Term
}

// Search returns the k best of the documents that have any of the query's terms, by
// descending score, then ascending ID.
func (x *Index) Search(ctx context.Context, q Query, k int) ([]Hit, error) {
	s, err := x.prepare(q, k)
	if err != nil || s == nil {
		return nil, err
	}
	defer s.release()
	for i := range s.windows {
		w := &s.windows[i]
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s.best.full() && w.bound < s.best.least() {
			break // the windows after it can give less
		}
		s.visit(w)
	}
	return s.best.sorted(), nil
}

// search is one search.
type search struct {
	*scratch
	x            *Index
	weights      []float64 // by term: idf and the query's
	lists        [][]list  // by shard and term
	only         []list    // by shard
	windows      []window
	best         top
	all          bool // score every document that has a term: some weight is not above 0
	unrestricted bool
}

// list is a term's postings in one shard; empty if it has none.
type list struct {
	field  int
	chunks []chunkRecord // with one more, where the last ends
	bounds []float32
}

func (l *list) windows() int { return max(len(l.chunks)-1, 0) }

// window is a run of documents in one shard with what the best of them could score.
type window struct {
	shard  int
	number uint32
	bound  float64
}

// prepare looks the terms up; nil if no document has one.
func (x *Index) prepare(q Query, k int) (*search, error) {
	s := &search{x: x, unrestricted: q.Only == nil, best: top{k: k}, lists: make([][]list, len(x.shards)), only: make([]list, len(x.shards))}
	dfs := make([]uint64, len(q.Terms))
	for i, shard := range x.shards {
		s.lists[i] = make([]list, len(q.Terms))
		for j, t := range q.Terms {
			l, df, err := shard.list(t)
			if err != nil {
				return nil, err
			}
			s.lists[i][j] = l
			dfs[j] += df
		}
		if q.Only != nil {
			var err error
			if s.only[i], _, err = shard.list(*q.Only); err != nil {
				return nil, err
			}
		}
	}
	for j, t := range q.Terms {
		s.weights = append(s.weights, x.weight(t, dfs[j]))
		s.all = s.all || !(s.weights[j] > 0)
	}
	for i := range x.shards {
		s.addWindows(i)
	}
	if len(s.windows) == 0 {
		return nil, nil
	}
	slices.SortFunc(s.windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(b.bound, a.bound), cmp.Compare(a.shard, b.shard), cmp.Compare(a.number, b.number))
	})
	s.best.less = s.worse
	s.scratch = x.scratch.Get().(*scratch)
	return s, nil
}

func (s *search) release() { s.x.scratch.Put(s.scratch) }

// weight is a term's factor: how often it is said, times idf.
func (x *Index) weight(t Term, df uint64) float64 {
	if df == 0 {
		return t.Weight
	}
	idf := x.parameters.idf(x.statistics.Documents, df)
	if x.parameters.Formula == Robertson && idf < 0 {
		idf = x.parameters.Epsilon * x.statistics.Fields[t.Field].MeanIDF
	}
	return t.Weight * idf
}

// list is a term's postings and its document frequency in the shard.
func (s *shard) list(t Term) (list, uint64, error) {
	if t.Field < 0 || t.Field >= len(s.fsts) {
		return list{}, 0, fmt.Errorf("field %d of %d", t.Field, len(s.fsts))
	}
	ordinal, ok, err := s.find(t.Field, t.Text)
	if err != nil || !ok {
		return list{field: t.Field}, 0, err
	}
	from, to := s.terms[ordinal].Chunk, s.terms[ordinal+1].Chunk
	return list{t.Field, s.chunks[from : to+1], s.bounds[from:to]}, uint64(s.terms[ordinal].DF), nil
}

// addWindows lists a shard's windows in which a term stands, and, where the hits
// are restricted, that term too.
func (s *search) addWindows(shard int) {
	bounds := make([]float64, s.x.shards[shard].counts.Documents>>windowBits+1)
	for i := range bounds {
		bounds[i] = -1
	}
	for j, l := range s.lists[shard] {
		for c := range l.windows() {
			at := &bounds[l.chunks[c].Window]
			*at = max(*at, 0) + max(s.weights[j], 0)*float64(l.bounds[c])
		}
	}
	add := func(number uint32) {
		if bounds[number] >= 0 {
			bound := bounds[number] * roundingUp(len(s.weights))
			if s.all {
				bound = math.Inf(1)
			}
			s.windows = append(s.windows, window{shard, number, bound})
		}
	}
	if !s.unrestricted {
		for c := range s.only[shard].windows() {
			add(s.only[shard].chunks[c].Window)
		}
		return
	}
	for number := range bounds {
		add(uint32(number))
	}
}

// roundingUp is a factor that makes a float64 sum of n positive terms in any order
// no smaller than that in another.
func roundingUp(n int) float64 { return 1 + float64(n+2)*4e-16 }

// worse orders hits: by score, among equals the later ID is worse.
func (s *search) worse(a, b Hit) bool {
	switch {
	case a.Score != b.Score:
		return a.Score < b.Score
	case a.Shard == b.Shard:
		return a.Document > b.Document
	}
	return s.x.ID(a) > s.x.ID(b)
}
