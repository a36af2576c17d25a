package main

import (
	"context"
	"fmt"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval/metrics"
	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/trace"
)

// searcher makes a retriever the agent's searcher.
type searcher struct{ index retriever.Searcher }

var _ agent.Searcher = searcher{}

// Search implements agent.Searcher.
func (s searcher) Search(ctx context.Context, world, query string, k int) ([]agent.Document, error) {
	hits, err := s.index.Search(ctx, world, query, k)
	if err != nil {
		return nil, err
	}
	docs := make([]agent.Document, len(hits))
	for i, h := range hits {
		docs[i] = agent.Document{ID: h.ID, Title: h.Title, Text: h.Text}
	}
	return docs, nil
}

// golds are a task's right answers, a list a question.
func golds(t datasets.Task) [][]string {
	out := make([][]string, len(t.Questions))
	for i, q := range t.Questions {
		out[i] = q.Golds
	}
	return out
}

// reward writes the scores of trajectories, and as reward the metric that
// evaluation reports under the same name: em or f1.
func reward(name string, tasks []datasets.Task, trajectories []*trace.Trajectory) error {
	for i, t := range trajectories {
		s := metrics.SQuAD(t.Answers, golds(tasks[i]))
		t.Scores = map[string]float64{"em": s.EM, "f1": s.F1}
		value, ok := t.Scores[name]
		if !ok {
			return fmt.Errorf("unknown reward %q (known: em, f1)", name)
		}
		t.Reward = value
	}
	return nil
}
