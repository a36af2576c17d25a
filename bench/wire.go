package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/retriever/client"
)

// passages are what agents search: an index, or a server.
type passages interface {
	retriever.Searcher
	Close() error
}

// openPassages opens the index in a folder, or the server that is named in its place,
// which has to answer once.
func (s speaking) openPassages(ctx context.Context, folder string) (passages, error) {
	if s.Retriever == "" {
		return retriever.Open(folder, retriever.OpenOptions{})
	}
	o := client.DefaultOptions()
	o.AttemptsMax = s.RetrieverAttempts
	var c remoteSearcher
	var err error
	if strings.HasPrefix(s.Retriever, client.OpenSearchScheme) {
		c, err = client.NewOpenSearch(s.Retriever, o)
	} else {
		c, err = client.New(s.Retriever, o)
	}
	if err != nil {
		return nil, err
	}
	if err := c.Check(ctx); err != nil {
		return nil, fmt.Errorf("--retriever: %w", err)
	}
	return served{c}, nil
}

// remoteSearcher is a searcher that counts.
type remoteSearcher interface {
	retriever.Searcher
	Stats() client.Stats
	Check(context.Context) error
}

// served is a server as passages; how its searches went is told at the end.
type served struct{ remoteSearcher }

func (s served) Close() error {
	if n := s.Stats(); n.Retries+n.Failures > 0 {
		note("retrieval server: %d searches, %d tried again, %d failed and were told to the agent", n.Searches, n.Retries, n.Failures)
	}
	return nil
}

// searcher makes a retriever the agent's searcher.
type searcher struct{ index retriever.Searcher }

var _ agent.Searcher = searcher{}

// Search implements agent.Searcher. That a server refuses one query, of more words than
// it takes, is told to the agent too: the server answered when the run began.
func (s searcher) Search(ctx context.Context, world, query string, k int) ([]agent.Document, error) {
	hits, err := s.index.Search(ctx, world, query, k)
	if errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrRefused) {
		return nil, fmt.Errorf("%w: %w", agent.ErrSearchUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	docs := make([]agent.Document, len(hits))
	for i, h := range hits {
		docs[i] = agent.Document{ID: h.ID, Title: h.Title, Text: h.Text}
	}
	return docs, nil
}
