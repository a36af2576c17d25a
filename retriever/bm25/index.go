package bm25

import (
	"errors"
	"sync"
)

// Index is an open collection. It is safe for many goroutines.
type Index struct {
	shards     []*shard
	parameters Parameters
	statistics Statistics
	scratch    sync.Pool // of *scratch
}

// Open opens shards that Finish has seen, with what it returned.
func Open(dirs []string, p Parameters, s *Statistics) (*Index, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	shards, err := openShards(dirs, true)
	if err != nil {
		return nil, err
	}
	for _, x := range shards {
		if len(x.counts.Fields) != len(s.Fields) {
			return nil, errors.Join(errors.New("the shards' fields are not those of the statistics"), closeShards(shards))
		}
		x.tabulate(p, s.averages())
	}
	x := &Index{shards: shards, parameters: p, statistics: *s}
	x.scratch.New = func() any { return &scratch{} }
	return x, nil
}

// Close unmaps the files; no search may be running.
func (x *Index) Close() error { return closeShards(x.shards) }

// ID returns a hit's document ID.
func (x *Index) ID(h Hit) string { return x.shards[h.Shard].id(h.Document) }
