package results

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// AppendJSONL adds rows to a file of one JSON value a line, made when absent, in
// one write that is on disk when it returns. Rows that have a Validate method
// are asked first; then all are written or none. A file whose last line is
// unfinished is an error: see RepairJSONL.
func AppendJSONL[T any](path string, rows ...T) error {
	data, err := encodeJSONL(path, rows)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if err = finished(f); err == nil {
		err = writeAll(f, data)
	}
	return errors.Join(err, f.Close())
}

// WriteJSONL replaces a file of one JSON value a line, whole or not at all,
// compressed where its name ends in .gz; the same rows give the same bytes.
func WriteJSONL[T any](path string, rows ...T) error {
	data, err := encodeJSONL(path, rows)
	if err != nil {
		return err
	}
	if filepath.Ext(path) != ".gz" {
		return WriteFile(path, data)
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return WriteFile(path, b.Bytes())
}

// encodeJSONL makes a line of each row, once it validates.
func encodeJSONL[T any](path string, rows []T) ([]byte, error) {
	var b bytes.Buffer
	encode := json.NewEncoder(&b)
	encode.SetEscapeHTML(false)
	for i, r := range rows {
		if err := validate(r); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i, err)
		}
		if err := encode.Encode(r); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i, err)
		}
	}
	return b.Bytes(), nil
}

func validate(row any) error {
	if v, ok := row.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

func writeAll(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

// finished is an error unless the file is empty or ends in a line feed.
func finished(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		return fmt.Errorf("%s: the last line is unfinished", f.Name())
	}
	return nil
}

// RepairJSONL cuts off an unfinished last line, which an interrupted write
// leaves, and returns the number of bytes cut. An absent file needs no repair.
func RepairJSONL(path string) (int, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	keep := bytes.LastIndexByte(data, '\n') + 1
	if keep == len(data) {
		return 0, nil
	}
	return len(data) - keep, os.Truncate(path, int64(keep))
}

// ReadJSONL reads a file of one JSON value a line, compressed where it ends in
// .gz. Blank, unfinished and malformed lines, unknown fields, and rows that do
// not validate are errors with file and line.
func ReadJSONL[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from := io.Reader(f)
	if filepath.Ext(path) == ".gz" {
		if from, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	var rows []T
	for r, n := bufio.NewReader(from), 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return rows, nil
		}
		if err == io.EOF {
			err = errors.New("the line is unfinished")
		}
		var row T
		if err == nil {
			err = decode(line, &row)
		}
		if err == nil {
			err = validate(row)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		rows = append(rows, row)
	}
}

func decode(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}

// WriteJSON writes a value as indented JSON, whole or not at all.
func WriteJSON(path string, value any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return WriteFile(path, b.Bytes())
}

// WriteFile replaces a file whole or not at all: the data goes to a temporary
// file in the same folder, which then takes the name.
func WriteFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(writeAll(f, data), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a rename durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
