package retriever

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/blevesearch/bleve/v2"

	"github.com/memopd/memopd-bench/retriever/bm25"
)

// builder builds an index shard by shard.
type builder struct {
	ctx     context.Context
	options BuildOptions
	corpus  *Corpus
	work    string // the folder that becomes the index
	seen    *idSet
	state   buildState
	count   int // documents so far
	ended   bool
}

// begin makes the folder, or takes up what a stopped build left.
func (b *builder) begin() error {
	left, err := readBuildState(filepath.Dir(b.work))
	if err != nil {
		return err
	}
	b.state = newBuildState(b.options, b.corpus)
	switch {
	case b.options.Resume && left != nil:
		if err := left.sameAs(&b.state); err != nil {
			return err
		}
		b.state.Shards = left.Shards
		return b.skipWhole()
	case left != nil && len(left.Shards) > 0 && !b.options.Replace:
		return fmt.Errorf("%w: a stopped build left %d whole shards in %s; resume it, or replace it", ErrHalfBuilt, len(left.Shards), filepath.Dir(b.work))
	}
	if err := clearDir(filepath.Dir(b.work)); err != nil {
		return err
	}
	if err := os.Mkdir(b.work, 0o755); err != nil {
		return err
	}
	return b.state.write(filepath.Dir(b.work))
}

// skipWhole reads on to where the last whole shard ended, and removes what came of
// the next.
func (b *builder) skipWhole() error {
	entries, err := os.ReadDir(b.work)
	for _, e := range entries {
		if !b.state.has(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(b.work, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	for b.count < b.state.documents() {
		_, ok, err := b.next()
		if err == nil && !ok {
			err = fmt.Errorf("the corpus ends after %d documents, and the stopped build had %d", b.count, b.state.documents())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stopped removes what is of no use to a later build, and says what is kept.
func (b *builder) stopped(err error) error {
	switch {
	case errors.Is(err, ErrHalfBuilt):
		return err
	case len(b.state.Shards) == 0:
		return errors.Join(err, os.RemoveAll(filepath.Dir(b.work)))
	}
	return fmt.Errorf("%w (%d whole shards are kept in %s: resume the build to go on after them)", err, len(b.state.Shards), filepath.Dir(b.work))
}

// ErrNoDocuments is the error of a build from an empty corpus.
var ErrNoDocuments = errors.New("the corpus has no documents")

// run builds the shards that are missing and writes the manifest.
func (b *builder) run() (*Manifest, error) {
	for !b.ended {
		if err := b.shard(); err != nil {
			return nil, err
		}
	}
	if len(b.state.Shards) == 0 {
		return nil, ErrNoDocuments
	}
	o := &b.options
	m := &Manifest{
		FormatVersion: FormatVersion, BleveVersion: bleveVersion, Scoring: o.Scoring, Analyser: o.Analyser, FoldASCII: o.FoldASCII,
		TitleBoost: o.TitleBoost, Documents: b.count, Shards: b.state.Shards, Inputs: b.corpus.Inputs(),
	}
	m.Skipped, _ = b.corpus.Skipped()
	if o.Scoring.exact() {
		var dirs []string
		for _, s := range m.Shards {
			dirs = append(dirs, filepath.Join(b.work, s.Name, postingsFolder))
		}
		var err error
		if m.Statistics, err = bm25.Finish(dirs, o.Scoring.parameters()); err != nil {
			return nil, err
		}
	}
	if err := b.ctx.Err(); err != nil {
		return nil, err
	}
	return m, m.write(b.work)
}

// shard builds the next shard under another name and renames it when it is whole.
// At the corpus's end there is none.
func (b *builder) shard() (err error) {
	name := fmt.Sprintf("shard-%04d", len(b.state.Shards))
	part := filepath.Join(b.work, name+".part")
	if err := os.Mkdir(part, 0o755); err != nil {
		return err
	}
	n, err := b.fill(filepath.Join(part, bleveFolder))
	if err != nil {
		return err
	}
	if n == 0 {
		return os.RemoveAll(part)
	}
	if b.options.Scoring.exact() {
		if err := b.rankBy(part); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Rename(part, filepath.Join(b.work, name)), syncDir(b.work)); err != nil {
		return err
	}
	b.state.Shards = append(b.state.Shards, Shard{Name: name, Documents: n})
	return b.state.write(filepath.Dir(b.work))
}

func (b *builder) rankBy(part string) (err error) {
	defer recoverBleve(&err)
	_, err = writePostings(b.ctx, filepath.Join(part, bleveFolder), filepath.Join(part, postingsFolder))
	return err
}

// fill indexes a shard's documents with bleve and returns how many there were.
func (b *builder) fill(dir string) (n int, err error) {
	defer recoverBleve(&err)
	d, ok, err := b.next()
	if err != nil || !ok { // bleve's builder panics without a document
		return 0, err
	}
	mapping, err := newMapping(b.options.Analyser, b.options.FoldASCII)
	if err != nil {
		return 0, err
	}
	into, err := bleve.NewBuilder(dir, mapping, map[string]any{
		"buildPathPrefix": filepath.Dir(dir), "batchSize": b.options.DocumentsPerWrite,
	})
	if err != nil {
		return 0, err
	}
	for ; ok; d, ok, err = b.next() {
		if err := into.Index(d.ID, fieldsOf(d)); err != nil {
			return 0, fmt.Errorf("document %q: %w", d.ID, err)
		}
		if n++; b.count%b.options.DocumentsPerReport == 0 {
			b.options.report(b.count, b.corpus)
		}
		if n == b.options.DocumentsPerShard {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	if err := into.Close(); err != nil {
		return 0, err
	}
	b.options.report(b.count, b.corpus)
	return n, nil
}

// next is the next document whose ID is new; false at the corpus's end.
func (b *builder) next() (Document, bool, error) {
	for {
		if err := b.ctx.Err(); err != nil {
			return Document{}, false, err
		}
		d, err := b.corpus.Next()
		if errors.Is(err, io.EOF) {
			b.ended = true
			return Document{}, false, nil
		}
		if err != nil {
			return Document{}, false, err
		}
		if b.seen.add(d.ID) {
			b.count++
			return d, true, nil
		}
		err = b.corpus.place(fmt.Errorf("document ID %q was there before", d.ID))
		if !b.corpus.options.SkipBad {
			return Document{}, false, err
		}
		b.corpus.Skip(err)
	}
}
