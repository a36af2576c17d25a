package retriever

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/blevesearch/bleve/v2"
)

const bleveMetaName = "index_meta.json"

// OpenOptions says how an index is opened; the zero value is a good choice.
type OpenOptions struct {
	SkipChecksums bool          // do not read every byte first; sizes are checked all the same, but an altered bit can change results unnoticed
	LockTimeout   time.Duration // how long to wait while another program writes to the folder; 0: 5 s
}

// Index is an open index. It is safe for many goroutines, and several processes
// may have the same folder open.
type Index struct {
	manifest Manifest
	dir      string
	ranker   ranker
	mu       sync.RWMutex // held for reading by searches, so that Close waits for them
	closed   bool
}

// Ranked is a document's place in a ranking, without the document.
type Ranked struct {
	ID    string
	Score float64
	shard int
}

// ranker is the part of an index that another scoring replaces.
type ranker interface {
	// rank returns the k best documents by score, then ID; see [Searcher].
	rank(ctx context.Context, world, query string, k int) ([]Ranked, error)
	document(r Ranked) (Document, error)
	close() error
}

// Open opens an index for reading and checks it: a folder that is missing,
// half-built, foreign, damaged, or of another version gives an error of that
// name (see [ErrNoIndex] and the others) that says what to do.
func Open(dir string, o OpenOptions) (*Index, error) {
	x, err := open(filepath.Clean(dir), o)
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", dir, err)
	}
	return x, nil
}

func open(dir string, o OpenOptions) (*Index, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := m.checkFiles(dir, !o.SkipChecksums); err != nil {
		return nil, err
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = 5 * time.Second
	}
	x := &Index{manifest: *m, dir: dir}
	if m.Scoring.exact() {
		x.ranker, err = openExact(dir, m, o.LockTimeout)
	} else {
		x.ranker, err = openBleve(filepath.Join(dir, m.Shards[0].Name, bleveFolder), m.Documents, m, o.LockTimeout)
	}
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Manifest returns what the index is made of.
func (x *Index) Manifest() Manifest { return x.manifest }

// Search implements [Searcher]. It stops with the context's error when ctx ends,
// and returns [ErrCorrupt] when the files turn out to be damaged.
func (x *Index) Search(ctx context.Context, world, query string, k int) (hits []Hit, err error) {
	err = x.guard(ctx, k, func() error {
		ranked, err := x.ranker.rank(ctx, world, query, min(k, x.manifest.Documents))
		hits = make([]Hit, len(ranked))
		for i, r := range ranked {
			hits[i].Score = r.Score
			if hits[i].Document, err = x.ranker.document(r); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// Rank is Search without reading the documents.
func (x *Index) Rank(ctx context.Context, world, query string, k int) (ranked []Ranked, err error) {
	err = x.guard(ctx, k, func() (err error) {
		ranked, err = x.ranker.rank(ctx, world, query, min(k, x.manifest.Documents))
		return err
	})
	return ranked, err
}

// guard runs a search on an index that stays open meanwhile, with faults as errors.
func (x *Index) guard(ctx context.Context, k int, search func() error) error {
	if k < 1 {
		return fmt.Errorf("search: k is %d, at least 1 is needed", k)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.closed {
		return fmt.Errorf("search: %w", ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := func() (err error) {
		defer faultsPanic()()
		defer recoverBleve(&err)
		return search()
	}()
	if err != nil {
		return fmt.Errorf("search index %s: %w", x.dir, err)
	}
	return nil
}

// Close waits for searches that are running and closes the index.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	return x.ranker.close()
}

// faultsPanic makes memory faults of this goroutine panics until the function that
// it returns is called: the files are mapped into memory, and one that is cut
// short meanwhile would end the process.
func faultsPanic() func() {
	before := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(before) }
}

// recoverBleve turns a panic, which is what bleve does with damaged files, into
// an error.
func recoverBleve(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: bleve panicked: %v; build it again", ErrCorrupt, p)
	}
}

func openBleve(dir string, documents int, m *Manifest, timeout time.Duration) (r *bleveRanker, err error) {
	defer faultsPanic()()
	defer recoverBleve(&err)
	x, err := bleve.OpenUsing(dir, map[string]any{"read_only": true, "bolt_timeout": timeout.String()})
	if err != nil {
		if strings.HasSuffix(err.Error(), "timeout") { // bbolt's, wrapped without its type
			return nil, fmt.Errorf("%w: another program writes to it (waited %s); end that program", ErrBusy, timeout)
		}
		return nil, fmt.Errorf("%w: %v; build it again", ErrCorrupt, err)
	}
	n, err := x.DocCount()
	if err == nil && n != uint64(documents) {
		err = fmt.Errorf("%w: %d documents, the manifest says %d; build it again", ErrCorrupt, n, documents)
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return &bleveRanker{index: x, analyser: m.Analyser, titleBoost: m.TitleBoost}, nil
}
