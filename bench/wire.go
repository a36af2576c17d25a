package main

import (
	"context"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/retriever"
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
