package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"unicode/utf8"
)

// Options says how to read a file of questions.
type Options struct {
	Format Format // "" finds it out from the first record
	Source string // data set that the questions name; "" leaves it to the format or the records

	// SkipBad passes over bad records: each is counted and given to OnSkip. Without it the
	// first is the error that ends the file. Damage to the file itself (a cut
	// gzip stream, broken JSON around the records) always ends it.
	SkipBad bool
	OnSkip  func(*RecordError) // may be nil
}

// Reader streams the records of one file. It is not safe for several goroutines.
type Reader struct {
	path    string
	options Options
	layout  layout
	rows    rows
	close   func() error
	held    []byte   // the first record, read to find out the format
	pending []Record // of a multi-question record
	records int
	skipped int
	err     error
}

// Open opens a file of questions in any [Format]: a JSON array or one record a
// line, each also gzipped, or Parquet. The caller closes the reader.
func Open(path string, o Options) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := openFile(f, path, o)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func openFile(f *os.File, path string, o Options) (*Reader, error) {
	head := make([]byte, len(parquetMagic))
	if _, err := f.ReadAt(head, 0); err == nil && string(head) == parquetMagic {
		p, err := openParquet(f)
		if err != nil {
			return nil, err
		}
		return newReader(p, path, o, f.Close)
	}
	src, err := sniff(f)
	if err != nil {
		return nil, err
	}
	return newReader(src, path, o, f.Close)
}

// NewReader reads JSON records, plain or gzipped, from r; name stands in errors.
func NewReader(r io.Reader, name string, o Options) (*Reader, error) {
	src, err := sniff(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rd, err := newReader(src, name, o, func() error { return nil })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rd, nil
}

func newReader(src rows, path string, o Options, closeFile func() error) (*Reader, error) {
	r := &Reader{path: path, options: o, rows: src, close: closeFile}
	if o.Format == "" {
		raw, err := src.next()
		if err == io.EOF {
			return nil, errors.New("no records")
		}
		if err != nil {
			return nil, err
		}
		r.held = bytes.Clone(raw)
		if o.Format, err = detect(raw); err != nil {
			return nil, err
		}
	}
	l, err := layoutOf(o.Format)
	if err != nil {
		return nil, err
	}
	r.layout = l
	if r.options.Source == "" {
		r.options.Source = l.source
	}
	return r, nil
}

// Format returns the format that is read.
func (r *Reader) Format() Format { return r.layout.format }

// Records returns how many records were read so far, skipped ones apart.
func (r *Reader) Records() int { return r.records }

// Skipped returns how many bad records were passed over so far.
func (r *Reader) Skipped() int { return r.skipped }

// Close closes the file.
func (r *Reader) Close() error { return r.close() }

// Next returns the next question, io.EOF after the last. A bad record is a
// [*RecordError], after which reading cannot go on.
func (r *Reader) Next() (Record, error) {
	for len(r.pending) == 0 {
		e, n, err := r.nextEntry()
		if err != nil {
			return Record{}, err
		}
		for _, q := range e.questions {
			r.pending = append(r.pending, Record{Question: q, Number: n, Passages: e.passages})
		}
	}
	rec := r.pending[0]
	r.pending = r.pending[1:]
	return rec, nil
}

// All yields the questions that are left; an error is the last thing yielded.
func (r *Reader) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			rec, err := r.Next()
			if err == io.EOF {
				return
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// nextEntry returns the next good record and its number from 0.
func (r *Reader) nextEntry() (entry, int, error) {
	for r.err == nil {
		raw, err := r.held, error(nil)
		if r.held = nil; raw == nil {
			raw, err = r.rows.next()
		}
		if err != nil {
			if r.err = err; err != io.EOF {
				r.err = fmt.Errorf("%s: %w", r.path, err)
			}
			break
		}
		e, err := r.decode(raw)
		if err == nil {
			r.records++
			return e, r.records + r.skipped - 1, nil
		}
		bad := r.recordError(err)
		if !r.options.SkipBad {
			r.err = bad
			break
		}
		r.skipped++
		if r.options.OnSkip != nil {
			r.options.OnSkip(bad)
		}
	}
	return entry{}, 0, r.err
}

func (r *Reader) decode(raw []byte) (entry, error) {
	if !utf8.Valid(raw) {
		return entry{}, errors.New("invalid UTF-8")
	}
	return r.layout.decode(raw, r.options.Source)
}

func (r *Reader) recordError(err error) *RecordError {
	bad := &RecordError{Path: r.path, Err: err}
	bad.Unit, bad.N = r.rows.place()
	var f *fieldError
	if errors.As(err, &f) && f == err {
		bad.Field, bad.Err = f.field, f.err
	}
	return bad
}
