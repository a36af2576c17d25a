package trace

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
)

// ErrSchema is wrapped by errors about a ledger of another schema version.
var ErrSchema = errors.New("unknown schema version")

// ErrTorn is wrapped by errors about a ledger whose writing was broken off.
var ErrTorn = errors.New("torn")

// Writer writes trajectories to a ledger file, one after another. The file stands
// under its name only after Close; until then, and after Discard, whatever stood
// there before still stands.
type Writer interface {
	// Write refuses a trajectory that does not Validate.
	Write(*Trajectory) error
	// Close finishes the file and puts it in place.
	Close() error
	// Discard drops what was written. After Close it does nothing, so it can be
	// deferred.
	Discard() error
}

// Reader reads a ledger file, one trajectory at a time.
type Reader interface {
	// Next returns the next trajectory, or io.EOF at the end. Errors name the file
	// and the record. A trajectory that does not Validate is an error.
	Next() (*Trajectory, error)
	Close() error
}

// Create opens a new ledger file. The extension says its form: .jsonl or .parquet.
func Create(path string) (Writer, error) {
	switch extension(path) {
	case ".jsonl":
		return newJSONLWriter(path)
	case ".parquet":
		return newParquetWriter(path)
	}
	return nil, fmt.Errorf("ledger %s: the name ends in neither .jsonl nor .parquet", path)
}

// Open opens a ledger file for reading. The extension says its form.
func Open(path string) (Reader, error) { return open(path, true) }

// OpenUnchecked opens a ledger file like Open, but its trajectories need not
// Validate: for whoever says what is wrong with them.
func OpenUnchecked(path string) (Reader, error) { return open(path, false) }

func open(path string, check bool) (Reader, error) {
	switch extension(path) {
	case ".jsonl":
		return newJSONLReader(path, check)
	case ".parquet":
		return newParquetReader(path, check)
	}
	return nil, fmt.Errorf("ledger %s: the name ends in neither .jsonl nor .parquet", path)
}

// All iterates over the trajectories of a ledger file. An error comes last.
func All(path string) iter.Seq2[*Trajectory, error] {
	return func(yield func(*Trajectory, error) bool) {
		r, err := Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.Close()
		for {
			t, err := r.Next()
			if err == io.EOF {
				return
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// ReadAll reads a whole ledger file.
func ReadAll(path string) ([]*Trajectory, error) {
	var all []*Trajectory
	for t, err := range All(path) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// WriteAll writes a whole ledger file.
func WriteAll(path string, all []*Trajectory) error {
	w, err := Create(path)
	if err != nil {
		return err
	}
	defer w.Discard()
	for _, t := range all {
		if err := w.Write(t); err != nil {
			return err
		}
	}
	return w.Close()
}

func extension(path string) string { return strings.ToLower(filepath.Ext(path)) }

// normalise makes empty lists nil, so that all forms of a ledger read alike.
func (t *Trajectory) normalise() {
	t.Prefix = orNil(t.Prefix)
	t.Calls = orNil(t.Calls)
	t.Answers = orNil(t.Answers)
	t.Lacks = orNil(t.Lacks)
	if len(t.Scores) == 0 {
		t.Scores = nil
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		c.Context = orNil(c.Context)
		c.Spans = orNil(c.Spans)
		c.Output = orNil(c.Output)
		c.Observation = orNil(c.Observation)
		c.Documents = orNil(c.Documents)
	}
}

func orNil[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
