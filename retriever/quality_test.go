package retriever

import (
	"context"
	"math"
	"testing"
)

// listed is a searcher that knows its answers.
type listed map[string][]Hit

func (l listed) Search(_ context.Context, _, query string, k int) ([]Hit, error) {
	return l[query][:min(k, len(l[query]))], nil
}

func TestMeasure(t *testing.T) {
	hit := func(title, text string) Hit { return Hit{Document: Document{Title: title, Text: text}} }
	s := listed{
		"two golds": {hit("A", "x"), hit("B", " y\tz"), hit("B", "yz"), hit("C", "")},
		"late":      {hit("D", "other"), hit("E", "e"), hit("D", "d")},
		"none":      {hit("F", "f")},
	}
	queries := []Judged{
		{"two golds", []Passage{{"B", "y z"}, {"C", ""}}},
		{"late", []Passage{{"D", "d"}}},
		{"none", []Passage{{"G", ""}}},
		{"nothing", []Passage{{"G", ""}}},
	}
	q, err := Measure(t.Context(), s, queries, []int{1, 2, 4})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0, 0.5 / 4, 2.0 / 4} {
		if math.Abs(q.Recall[i]-want) > 1e-12 {
			t.Errorf("recall %v", q.Recall)
		}
	}
	if want := (1.0/2 + 1.0/3) / 4; math.Abs(q.MRR-want) > 1e-12 || q.Queries != 4 {
		t.Errorf("MRR %v of %d, want %v", q.MRR, q.Queries, want)
	}
	if _, err := Measure(t.Context(), s, nil, []int{1}); err == nil {
		t.Error("no queries: no error")
	}
}
