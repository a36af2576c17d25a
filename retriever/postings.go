package retriever

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/blevesearch/bleve/v2"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/memopd/memopd-bench/retriever/bm25"
)

// The fields of the exact index, in their order in a shard.
const (
	contentsAt = iota
	titleAt
	worldAt
)

var rankedFields = []string{contentsAt: fieldContents, titleAt: fieldTitle, worldAt: fieldWorld}

// writePostings reads the postings of a bleve index and writes the shard that
// searches rank by.
func writePostings(ctx context.Context, bleveDir, dir string) (counts *bm25.Counts, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	x, err := bleve.OpenUsing(bleveDir, map[string]any{"read_only": true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	inner, err := x.Advanced()
	if err != nil {
		return nil, err
	}
	reader, err := inner.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	p := &postingsReader{ctx: ctx, reader: reader}
	ids, err := p.number()
	if err != nil {
		return nil, err
	}
	lengths := make([][]uint32, len(rankedFields))
	for f, name := range rankedFields {
		lengths[f] = make([]uint32, len(ids))
		err := p.terms(name, func(_ string, postings []bm25.Posting) error {
			for _, at := range postings {
				lengths[f][at.Document] += at.Frequency
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	w, err := bm25.NewWriter(dir, rankedFields, ids, lengths)
	if err != nil {
		return nil, err
	}
	for f, name := range rankedFields {
		err := p.terms(name, func(term string, postings []bm25.Posting) error { return w.Term(f, []byte(term), postings) })
		if err != nil {
			return nil, err
		}
	}
	return w.Close()
}

// postingsReader reads bleve's postings with documents numbered by their IDs.
type postingsReader struct {
	ctx     context.Context
	reader  index.IndexReader
	numbers []uint32 // by bleve's number
}

// number orders the documents by ID and returns the IDs in order.
func (p *postingsReader) number() (ids []string, err error) {
	all, err := p.reader.DocIDReaderAll()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	type document struct {
		id    string
		bleve uint64
	}
	var documents []document
	most := uint64(0)
	for {
		internal, err := all.Next()
		if err != nil {
			return nil, err
		}
		if internal == nil {
			break
		}
		id, err := p.reader.ExternalID(internal)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document{id, internal.Value()})
		most = max(most, internal.Value())
	}
	slices.SortFunc(documents, func(a, b document) int { return cmp.Compare(a.id, b.id) })
	p.numbers = make([]uint32, most+1)
	for i, d := range documents {
		p.numbers[d.bleve] = uint32(i)
		ids = append(ids, d.id)
	}
	return ids, nil
}

// terms calls f with each term of a field, in order, and its postings, which f
// must not keep.
func (p *postingsReader) terms(field string, f func(term string, postings []bm25.Posting) error) (err error) {
	dict, err := p.reader.FieldDict(field)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dict.Close()) }()
	var postings []bm25.Posting
	for {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		entry, err := dict.Next()
		if err != nil || entry == nil {
			return err
		}
		if postings, err = p.postings(postings[:0], field, entry.Term); err != nil {
			return fmt.Errorf("field %s, term %q: %w", field, entry.Term, err)
		}
		if len(postings) == 0 {
			continue
		}
		if err := f(entry.Term, postings); err != nil {
			return err
		}
	}
}

// postings appends the documents of a term, by number.
func (p *postingsReader) postings(list []bm25.Posting, field, term string) (_ []bm25.Posting, err error) {
	docs, err := p.reader.TermFieldReader(p.ctx, []byte(term), field, true, false, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, docs.Close()) }()
	var at index.TermFieldDoc
	for {
		d, err := docs.Next(&at)
		if err != nil {
			return nil, err
		}
		if d == nil {
			break
		}
		list = append(list, bm25.Posting{Document: p.numbers[d.ID.Value()], Frequency: uint32(d.Freq)})
	}
	slices.SortFunc(list, func(a, b bm25.Posting) int { return cmp.Compare(a.Document, b.Document) })
	return list, nil
}
