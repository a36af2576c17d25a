package retriever

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// BuildOptions says how an index is built; see [DefaultBuildOptions].
type BuildOptions struct {
	Scoring            Scoring  // the zero value: DefaultScoring
	Analyser           Analyser // "": AnalyserPlain
	FoldASCII          bool     // letters lose their accents
	TitleBoost         float64  // weight of a match in the title, on top of the same match in the contents; 0: none
	DocumentsPerWrite  int      // analysed together and written as one segment; 0: 2000
	DocumentsPerShard  int      // what bounds the memory of a build; 0: 1,000,000
	Replace            bool     // an index at the same place is replaced once the new one is whole, and what a stopped build left is thrown away
	Resume             bool     // go on after the last whole shard of a build that was stopped
	Progress           func(documents int, bytes, totalBytes int64)
	DocumentsPerReport int // documents between two calls of Progress; 0: 500
}

// DefaultBuildOptions returns the options that the benchmark uses. The title's
// weight puts a document before those that mention its title.
func DefaultBuildOptions() BuildOptions {
	return BuildOptions{
		Scoring: DefaultScoring(), Analyser: AnalyserPlain, TitleBoost: 0.25,
		DocumentsPerWrite: 2000, DocumentsPerShard: 1_000_000, DocumentsPerReport: 500,
	}
}

// Build writes the documents of a corpus into a new index at dir, whose parent
// folder must be there, and returns its manifest. The work is done in the folder
// dir + ".building", which is renamed at the very end: dir never holds half an
// index. It goes shard by shard, so its memory does not grow with the corpus but
// for 30 bytes a document. When ctx ends, or a record is bad, Build stops and
// returns the error; shards that were whole are kept for a build with Resume, and
// nothing else is left. Two builds of one index exclude each other ([ErrBusy]).
//
// A document whose ID was there before is a [*RecordError], or is skipped, as
// the corpus's options say. bleve's own scoring has one shard whatever its size.
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
	if o.Scoring == (Scoring{}) {
		o.Scoring = d.Scoring
	}
	if o.Analyser == "" {
		o.Analyser = d.Analyser
	}
	if o.DocumentsPerWrite <= 0 {
		o.DocumentsPerWrite = d.DocumentsPerWrite
	}
	if o.DocumentsPerShard <= 0 {
		o.DocumentsPerShard = d.DocumentsPerShard
	}
	if o.DocumentsPerReport <= 0 {
		o.DocumentsPerReport = d.DocumentsPerReport
	}
	if !o.Scoring.exact() {
		o.DocumentsPerShard = math.MaxInt
	}
	if o.TitleBoost < 0 || math.IsNaN(o.TitleBoost) || math.IsInf(o.TitleBoost, 0) {
		return fmt.Errorf("title boost %g is not a weight", o.TitleBoost)
	}
	if o.Resume && o.Replace {
		return errors.New("a build is resumed or begun anew, not both")
	}
	return errors.Join(o.Scoring.check(), o.Analyser.check())
}

func build(ctx context.Context, dir string, c *Corpus, o BuildOptions) (_ *Manifest, err error) {
	if err := mayBuild(dir, o.Replace); err != nil {
		return nil, err
	}
	lock, err := lockBuilding(buildingPath(dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	b := &builder{ctx: ctx, options: o, corpus: c, work: filepath.Join(buildingPath(dir), "index"), seen: newIDSet()}
	if err := b.begin(); err != nil {
		return nil, b.stopped(err)
	}
	m, err := b.run()
	if err == nil {
		err = moveIntoPlace(b.work, dir)
	}
	if err != nil {
		return nil, b.stopped(err)
	}
	return m, nil
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
