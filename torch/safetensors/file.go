package safetensors

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Tensor is a tensor with its data, little-endian and row-major.
type Tensor struct {
	Name  string
	DType string // "F32" and the like
	Shape []int64
	Data  []byte
}

// Element are the types of Go that tensors are made of and read as.
type Element interface {
	~int32 | ~int64 | ~float32 | ~float64 | ~bool
}

// dtypeOf is the format's name of an element's type.
func dtypeOf[T Element]() string {
	var zero T
	switch any(zero).(type) {
	case int32:
		return "I32"
	case int64:
		return "I64"
	case float32:
		return "F32"
	case float64:
		return "F64"
	}
	return "BOOL"
}

// Of makes a tensor of one dimension.
func Of[T Element](name string, values []T) Tensor {
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err) // every Element has a fixed size
	}
	return Tensor{Name: name, DType: dtypeOf[T](), Shape: []int64{int64(len(values))}, Data: data}
}

// Values are a tensor's elements. The error says that it holds another type.
func Values[T Element](t Tensor) ([]T, error) {
	if want := dtypeOf[T](); t.DType != want {
		return nil, fmt.Errorf("tensor %q holds %s, want %s", t.Name, t.DType, want)
	}
	size := int(sizes[t.DType])
	values := make([]T, len(t.Data)/size)
	if _, err := binary.Decode(t.Data, binary.LittleEndian, values); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return values, nil
}

// WriteFile writes a file, first beside path, then renamed, so that path is never half
// written. Wide types come before narrow ones, and each by name, as in Hugging Face's
// writer: the same tensors make the same bytes.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) error {
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(sizes[b.DType], sizes[a.DType]), cmp.Compare(a.Name, b.Name))
	})
	entries := make([]Entry, len(sorted))
	for i, t := range sorted {
		entries[i] = Entry{Name: t.Name, DType: t.DType, Shape: t.Shape}
		if n, err := entries[i].Bytes(); err == nil && n != int64(len(t.Data)) {
			return fmt.Errorf("%s: tensor %q has %d bytes, its shape %d", path, t.Name, len(t.Data), n)
		}
	}
	return Write(path, entries, metadata, func(w io.Writer) error {
		for _, t := range sorted {
			if _, err := w.Write(t.Data); err != nil {
				return err
			}
		}
		return nil
	})
}

// Write writes a file of the entries, whose bytes data gives one after another. It
// stands beside path until it is whole.
func Write(path string, entries []Entry, metadata map[string]string, data func(io.Writer) error) (err error) {
	header, err := Encode(entries, metadata)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(header); err != nil {
		return err
	}
	if err := data(w); err != nil {
		return err
	}
	if err := errors.Join(w.Flush(), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ReadFile reads all tensors of a file, and its metadata.
func ReadFile(path string) (map[string]Tensor, map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	h, err := Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	all := make(map[string]Tensor, len(h.Entries))
	for _, e := range h.Entries {
		all[e.Name] = Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, Data: data[h.Data+e.Begin : h.Data+e.End]}
	}
	return all, h.Metadata, nil
}
