package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// jsonlWriter writes one JSON object a line.
type jsonlWriter struct {
	file *atomicFile
	buf  *bufio.Writer
	enc  *json.Encoder
}

func newJSONLWriter(path string) (Writer, error) {
	f, err := createAtomic(path)
	if err != nil {
		return nil, err
	}
	buf := bufio.NewWriterSize(f, 1<<18)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false) // tags stay readable
	return &jsonlWriter{f, buf, enc}, nil
}

func (w *jsonlWriter) Write(t *Trajectory) error {
	if err := t.Validate(); err != nil {
		return fmt.Errorf("ledger %s: %w", w.file.path, err)
	}
	// encoding/json writes a float32 in the shortest form that reads back alike.
	if err := w.enc.Encode(t); err != nil {
		return fmt.Errorf("ledger %s: trajectory %q: %w", w.file.path, t.ID, err)
	}
	return nil
}

func (w *jsonlWriter) Close() error {
	if err := w.buf.Flush(); err != nil {
		w.file.discard()
		return fmt.Errorf("ledger %s: %w", w.file.path, err)
	}
	return w.file.commit()
}

func (w *jsonlWriter) Discard() error { return w.file.discard() }

// jsonlReader reads one JSON object a line.
type jsonlReader struct {
	path string
	file *os.File
	buf  *bufio.Reader
	line int

	check bool // trajectories must Validate
}

func newJSONLReader(path string, check bool) (Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return &jsonlReader{path: path, file: f, buf: bufio.NewReaderSize(f, 1<<18), check: check}, nil
}

func (r *jsonlReader) Next() (*Trajectory, error) {
	line, err := r.buf.ReadBytes('\n')
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	r.line++
	if err == io.EOF {
		return nil, r.fail(fmt.Errorf("%w: the last line has no end", ErrTorn))
	}
	if err != nil {
		return nil, r.fail(err)
	}
	t, err := parseLine(line, r.check)
	if err != nil {
		return nil, r.fail(err)
	}
	return t, nil
}

func (r *jsonlReader) fail(err error) error {
	return fmt.Errorf("ledger %s:%d: %w", r.path, r.line, err)
}

func (r *jsonlReader) Close() error { return r.file.Close() }

// parseLine reads one line. The schema is looked at first, for with another one no
// other complaint would mean anything.
func parseLine(line []byte, check bool) (*Trajectory, error) {
	var head struct{ Schema *int }
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, err
	}
	if head.Schema == nil {
		return nil, fmt.Errorf("%w: none is stated", ErrSchema)
	}
	if *head.Schema != SchemaVersion {
		return nil, fmt.Errorf("%w %d (this program reads %d)", ErrSchema, *head.Schema, SchemaVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	t := &Trajectory{}
	if err := dec.Decode(t); err != nil {
		return nil, err
	}
	t.normalise()
	if check {
		if err := t.Validate(); err != nil {
			return nil, err
		}
	}
	return t, nil
}
