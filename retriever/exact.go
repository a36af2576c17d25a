package retriever

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/memopd/memopd-bench/retriever/bm25"
)

// exactRanker ranks by BM25; bleve holds the documents and parts queries into terms.
type exactRanker struct {
	index      *bm25.Index
	stores     []*bleveRanker // by shard
	titleBoost float64
}

func openExact(dir string, m *Manifest, timeout time.Duration) (_ *exactRanker, err error) {
	r := &exactRanker{titleBoost: m.TitleBoost}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	defer faultsPanic()()
	defer recoverBleve(&err)
	var dirs []string
	for _, s := range m.Shards {
		store, err := openBleve(filepath.Join(dir, s.Name, bleveFolder), s.Documents, m, timeout)
		if err != nil {
			return r, fmt.Errorf("shard %s: %w", s.Name, err)
		}
		r.stores = append(r.stores, store)
		dirs = append(dirs, filepath.Join(dir, s.Name, postingsFolder))
	}
	if r.index, err = bm25.Open(dirs, m.Scoring.parameters(), m.Statistics); err != nil {
		return r, fmt.Errorf("%w: %v; build it again", ErrCorrupt, err)
	}
	return r, nil
}

func (r *exactRanker) close() error {
	var errs []error
	if r.index != nil {
		errs = append(errs, r.index.Close())
	}
	for _, s := range r.stores {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// rank gives a term that is said n times n times its score, and with a title boost
// adds that many times the term's score in the title field.
func (r *exactRanker) rank(ctx context.Context, world, text string, k int) ([]Ranked, error) {
	terms, counts, err := r.stores[0].terms(text)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	var q bm25.Query
	for _, t := range terms {
		q.Terms = append(q.Terms, bm25.Term{Field: contentsAt, Text: t, Weight: float64(counts[t])})
	}
	for _, t := range terms {
		if r.titleBoost > 0 {
			q.Terms = append(q.Terms, bm25.Term{Field: titleAt, Text: t, Weight: r.titleBoost * float64(counts[t])})
		}
	}
	if world != "" {
		q.Only = &bm25.Term{Field: worldAt, Text: world}
	}
	found, err := r.index.Search(ctx, q, k)
	if err != nil {
		return nil, err
	}
	ranked := make([]Ranked, len(found))
	for i, f := range found {
		ranked[i] = Ranked{r.index.ID(f), f.Score, f.Shard}
	}
	return ranked, nil
}

func (r *exactRanker) document(at Ranked) (Document, error) { return r.stores[at.shard].document(at) }
