package retriever

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Passage is a passage that a query should find. An empty text means any passage of
// the title.
type Passage struct{ Title, Text string }

// Judged is a query with the passages that it should find, each of them different.
type Judged struct {
	Query string
	Gold  []Passage
}

// Quality is how well queries find their passages.
type Quality struct {
	Queries int
	Recall  []float64 // at each k: the mean share of a query's gold passages among its first k hits
	MRR     float64   // mean reciprocal rank of the first gold passage, 0 beyond the largest k
}

// Measure asks every query and returns the quality at each k, which are ascending.
// White space does not tell texts apart.
func Measure(ctx context.Context, s Searcher, queries []Judged, ks []int) (Quality, error) {
	q := Quality{Queries: len(queries), Recall: make([]float64, len(ks))}
	if len(queries) == 0 || len(ks) == 0 || !slices.IsSorted(ks) || ks[0] < 1 {
		return q, errors.New("recall: no queries, or no ascending numbers of hits")
	}
	for _, judged := range queries {
		hits, err := s.Search(ctx, "", judged.Query, ks[len(ks)-1])
		if err != nil {
			return q, fmt.Errorf("recall: %w", err)
		}
		q.add(judged, hits, ks)
	}
	return q, nil
}

func (q *Quality) add(judged Judged, hits []Hit, ks []int) {
	all := float64(q.Queries)
	found := make([]bool, len(judged.Gold))
	first := true
	for i, h := range hits {
		g := slices.IndexFunc(judged.Gold, h.is)
		if g < 0 || found[g] {
			continue
		}
		found[g] = true
		if first {
			q.MRR += 1 / float64(i+1) / all
			first = false
		}
		for j, k := range ks {
			if i < k {
				q.Recall[j] += 1 / float64(len(judged.Gold)) / all
			}
		}
	}
}

func (h Hit) is(p Passage) bool {
	return h.Title == p.Title && (p.Text == "" || squeeze(h.Text) == squeeze(p.Text))
}

// squeeze is a text without its white space.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}
