package retriever

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
)

// BuildOptions says how an index is built; see [DefaultBuildOptions].
type BuildOptions struct {
	Analyser           Analyser // "": AnalyserPlain
	TitleBoost         float64  // weight of a match in the title, on top of the same match in the contents; 0: none
	DocumentsPerWrite  int      // analysed together and written as one segment; 0: 2000
	Replace            bool     // an index at the same place is replaced once the new one is whole
	Progress           func(documents int, bytes, totalBytes int64)
	DocumentsPerReport int // documents between two calls of Progress; 0: 500
}

// DefaultBuildOptions returns the options that the benchmark uses. The title's
// weight gave the best recall of 0, 0.25, 0.5, 1 and 2 on Natural Questions over
// 17,407 real passages (BenchmarkRealCorpus), and puts a document before those
// that mention its title.
func DefaultBuildOptions() BuildOptions {
	return BuildOptions{Analyser: AnalyserPlain, TitleBoost: 0.25, DocumentsPerWrite: 2000, DocumentsPerReport: 500}
}

// Build writes the documents of a corpus into a new index at dir, whose parent
// folder must be there, and returns its manifest. The work is done in the folder
// dir + ".building", which is renamed at the very end: dir never holds half an
// index. When ctx ends, Build stops, removes what it wrote and returns the
// context's error. Two builds of one index exclude each other ([ErrBusy]).
//
// A document whose ID was there before is a [*RecordError], or is skipped, as
// the corpus's options say.
func Build(ctx context.Context, dir string, c *Corpus, o BuildOptions) (*Manifest, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("build index: %w", err)
	}
	m, err := build(ctx, filepath.Clean(dir), c, o)
	if err != nil {
		return nil, fmt.Errorf("build index %s: %w", dir, err)
	}
	return m, nil
}

func (o *BuildOptions) fill() error {
	d := DefaultBuildOptions()
	if o.Analyser == "" {
		o.Analyser = d.Analyser
	}
	if o.DocumentsPerWrite <= 0 {
		o.DocumentsPerWrite = d.DocumentsPerWrite
	}
	if o.DocumentsPerReport <= 0 {
		o.DocumentsPerReport = d.DocumentsPerReport
	}
	if o.TitleBoost < 0 || math.IsNaN(o.TitleBoost) || math.IsInf(o.TitleBoost, 0) {
		return fmt.Errorf("title boost %g is not a weight", o.TitleBoost)
	}
	return o.Analyser.check()
}

func build(ctx context.Context, dir string, c *Corpus, o BuildOptions) (m *Manifest, err error) {
	if err := mayBuild(dir, o.Replace); err != nil {
		return nil, err
	}
	lock, err := lockBuilding(buildingPath(dir))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(buildingPath(dir)))
		}
		err = errors.Join(err, lock.Close())
	}()
	if err := clearDir(buildingPath(dir)); err != nil {
		return nil, err
	}
	// Within the folder that is locked, so that nothing is left elsewhere.
	work := filepath.Join(buildingPath(dir), "index")
	m = &Manifest{
		FormatVersion: FormatVersion, BleveVersion: bleveVersion,
		Scoring: ScoringBleveBM25, K1: search.BM25_k1, B: search.BM25_b,
		Analyser: o.Analyser, TitleBoost: o.TitleBoost,
	}
	if m.Documents, err = fill(ctx, work, c, o); err != nil {
		return nil, err
	}
	m.Inputs = c.Inputs()
	m.Skipped, _ = c.Skipped()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.write(work); err != nil {
		return nil, err
	}
	return m, moveIntoPlace(work, dir)
}

// fill indexes the documents and returns how many there were.
func fill(ctx context.Context, work string, c *Corpus, o BuildOptions) (n int, err error) {
	defer recoverBleve(&err)
	mapping, err := newMapping(o.Analyser)
	if err != nil {
		return 0, err
	}
	b, err := bleve.NewBuilder(work, mapping, map[string]any{
		"buildPathPrefix": filepath.Dir(work), "batchSize": o.DocumentsPerWrite,
	})
	if err != nil {
		return 0, err
	}
	seen := newIDSet()
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		d, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if !seen.add(d.ID) {
			err := c.place(fmt.Errorf("document ID %q was there before", d.ID))
			if !c.options.SkipBad {
				return 0, err
			}
			c.Skip(err)
			continue
		}
		if err := b.Index(d.ID, fieldsOf(d)); err != nil {
			return 0, fmt.Errorf("document %q: %w", d.ID, err)
		}
		if n++; n%o.DocumentsPerReport == 0 {
			o.report(n, c)
		}
	}
	if n == 0 { // bleve's builder panics
		return 0, errors.New("the corpus has no documents")
	}
	if err := b.Close(); err != nil {
		return 0, err
	}
	o.report(n, c)
	return n, nil
}

func (o *BuildOptions) report(n int, c *Corpus) {
	if o.Progress != nil {
		read, total := c.Progress()
		o.Progress(n, read, total)
	}
}

// mayBuild refuses to touch anything that is not an index of ours.
func mayBuild(dir string, replace bool) error {
	_, err := os.Stat(filepath.Join(dir, manifestName))
	entries, dirErr := os.ReadDir(dir)
	switch {
	case err == nil && !replace:
		return fmt.Errorf("%w: an index is there; replace it, or choose another folder", ErrExists)
	case err == nil, errors.Is(dirErr, fs.ErrNotExist), dirErr == nil && len(entries) == 0:
		return nil
	case dirErr != nil:
		return dirErr
	}
	return fmt.Errorf("%w: the folder holds other files and is left alone; choose another folder", ErrForeign)
}

// moveIntoPlace renames the finished index; an index that is there goes away
// after. Those who have it open keep reading it.
func moveIntoPlace(work, dir string) error {
	old := filepath.Join(filepath.Dir(work), "old")
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(work, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return errors.Join(os.RemoveAll(filepath.Dir(work)), syncDir(filepath.Dir(dir)))
}

// idSet remembers IDs by 128 bits of hash: bounded memory for long IDs, and no
// false duplicate in practice.
type idSet struct {
	seeds [2]maphash.Seed
	set   map[[2]uint64]struct{}
}

func newIDSet() *idSet {
	return &idSet{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, map[[2]uint64]struct{}{}}
}

// add reports whether the ID is new.
func (s *idSet) add(id string) bool {
	key := [2]uint64{maphash.String(s.seeds[0], id), maphash.String(s.seeds[1], id)}
	if _, ok := s.set[key]; ok {
		return false
	}
	s.set[key] = struct{}{}
	return true
}
