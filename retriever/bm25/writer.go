package bm25

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blevesearch/vellum"
)

// Posting is one document of a term.
type Posting struct {
	Document  uint32 // its number in the shard
	Frequency uint32 // how often the term stands in its field
}

// Field is what a shard says of one field.
type Field struct {
	Name        string `json:"name"`
	Terms       uint64 `json:"terms"`
	TotalLength uint64 `json:"total_length"` // terms of all documents, with repetitions
	Pairs       int    `json:"pairs"`        // different pairs of frequency and length
}

// Counts is what a shard says of itself.
type Counts struct {
	Documents uint64  `json:"documents"`
	Postings  uint64  `json:"postings"`
	Chunks    uint64  `json:"chunks"`
	WideCodes bool    `json:"wide_codes"` // codes have four bytes, not two
	Fields    []Field `json:"fields"`
}

// Writer writes one shard. Fields are written one after another, the terms of each
// in ascending order.
type Writer struct {
	dir     string
	counts  Counts
	lengths [][]uint32

	terms, chunks, lows, codes *file

	fst     *vellum.Builder
	fstFile *file
	pairs   map[pair]uint32
	pairOut *file
	field   int
	ordinal uint64
	most    int // pairs of the field that has most
}

// wideCodesName is the codes before it is known how many bytes they need.
const wideCodesName = codesName + ".wide"

// NewWriter begins a shard in an empty folder. IDs are ascending and all
// different; lengths[f][d] is the number of terms in field f of document d.
func NewWriter(dir string, fields []string, ids []string, lengths [][]uint32) (*Writer, error) {
	if len(ids) == 0 || len(ids) > 1<<31 || len(fields) == 0 || len(lengths) != len(fields) {
		return nil, fmt.Errorf("a shard of %d documents with %d fields and lengths of %d", len(ids), len(fields), len(lengths))
	}
	w := &Writer{dir: dir, lengths: lengths, field: -1}
	w.counts.Documents = uint64(len(ids))
	for f, name := range fields {
		field := Field{Name: name}
		if len(lengths[f]) != len(ids) {
			return nil, fmt.Errorf("field %s: %d lengths of %d documents", name, len(lengths[f]), len(ids))
		}
		for _, n := range lengths[f] {
			field.TotalLength += uint64(n)
		}
		w.counts.Fields = append(w.counts.Fields, field)
	}
	if err := writeIDs(dir, ids); err != nil {
		return nil, err
	}
	for name, to := range map[string]**file{termsName: &w.terms, chunksName: &w.chunks, lowsName: &w.lows, wideCodesName: &w.codes} {
		var err error
		if *to, err = create(dir, name); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func writeIDs(dir string, ids []string) error {
	text, err := create(dir, idsName)
	if err != nil {
		return err
	}
	offsets, err := create(dir, offsetsName)
	if err != nil {
		return err
	}
	end := uint64(0)
	offsets.uint64(end)
	for i, id := range ids {
		if i > 0 && ids[i-1] >= id {
			return fmt.Errorf("document %d: ID %q after %q", i, id, ids[i-1])
		}
		text.WriteString(id)
		end += uint64(len(id))
		offsets.uint64(end)
	}
	return errors.Join(text.close(), offsets.close())
}

// Term writes a term of a field with its documents in ascending order.
func (w *Writer) Term(field int, term []byte, postings []Posting) error {
	for w.field < field {
		if err := w.nextField(); err != nil {
			return err
		}
	}
	if field != w.field || len(postings) == 0 {
		return fmt.Errorf("term %q of field %d with %d documents, while at field %d", term, field, len(postings), w.field)
	}
	if err := w.fst.Insert(term, w.ordinal); err != nil {
		return fmt.Errorf("term %q: %w", term, err)
	}
	w.ordinal++
	w.counts.Fields[field].Terms++
	w.terms.uint32(uint32(w.counts.Chunks))
	w.terms.uint32(uint32(len(postings)))
	window := -1
	for i, p := range postings {
		if uint64(p.Document) >= w.counts.Documents || i > 0 && postings[i-1].Document >= p.Document {
			return fmt.Errorf("term %q: document %d of %d, out of order", term, p.Document, w.counts.Documents)
		}
		if at := int(p.Document >> windowBits); at != window {
			window = at
			w.chunk(uint32(at))
		}
		w.lows.uint16(uint16(p.Document))
		w.codes.uint32(w.code(pair{p.Frequency, w.lengths[field][p.Document]}))
		w.counts.Postings++
	}
	return nil
}

func (w *Writer) chunk(window uint32) {
	w.chunks.uint64(w.counts.Postings)
	w.chunks.uint32(window)
	w.chunks.uint32(0)
	w.counts.Chunks++
}

func (w *Writer) code(p pair) uint32 {
	code, ok := w.pairs[p]
	if !ok {
		code = uint32(len(w.pairs))
		w.pairs[p] = code
		w.pairOut.uint32(p.Frequency)
		w.pairOut.uint32(p.Length)
	}
	return code
}

func (w *Writer) nextField() (err error) {
	if err := w.endField(); err != nil {
		return err
	}
	w.field++
	if w.field >= len(w.counts.Fields) {
		return fmt.Errorf("field %d of %d", w.field, len(w.counts.Fields))
	}
	w.pairs = map[pair]uint32{}
	if w.pairOut, err = create(w.dir, pairsName(w.field)); err != nil {
		return err
	}
	if w.fstFile, err = create(w.dir, fstName(w.field)); err != nil {
		return err
	}
	w.fst, err = vellum.New(w.fstFile, nil)
	return err
}

func (w *Writer) endField() error {
	if w.field < 0 {
		return nil
	}
	w.counts.Fields[w.field].Pairs = len(w.pairs)
	w.most = max(w.most, len(w.pairs))
	return errors.Join(w.fst.Close(), w.fstFile.close(), w.pairOut.close())
}

// Close ends the shard.
func (w *Writer) Close() (*Counts, error) {
	for w.field < len(w.counts.Fields)-1 {
		if err := w.nextField(); err != nil {
			return nil, err
		}
	}
	if err := w.endField(); err != nil {
		return nil, err
	}
	if w.counts.Chunks > 1<<32-1 {
		return nil, fmt.Errorf("%d chunks do not fit a shard: fewer documents a shard are needed", w.counts.Chunks)
	}
	w.terms.uint32(uint32(w.counts.Chunks)) // where the last ones end
	w.terms.uint32(0)
	w.chunk(0)
	w.counts.Chunks--
	if err := errors.Join(w.terms.close(), w.chunks.close(), w.lows.close(), w.codes.close(), w.fitCodes()); err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(w.counts, "", "  ")
	if err != nil {
		return nil, err
	}
	return &w.counts, os.WriteFile(filepath.Join(w.dir, shardName), append(raw, '\n'), 0o644)
}

// fitCodes gives codes two bytes where that suffices.
func (w *Writer) fitCodes() error {
	wide := filepath.Join(w.dir, wideCodesName)
	if w.counts.WideCodes = w.most > 1<<16; w.counts.WideCodes {
		return os.Rename(wide, filepath.Join(w.dir, codesName))
	}
	from, err := os.Open(wide)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := create(w.dir, codesName)
	if err != nil {
		return err
	}
	return errors.Join(narrow(to, from, w.counts.Postings), to.close(), os.Remove(wide))
}
