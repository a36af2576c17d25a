package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
)

// Tensor is an entry of the file's table of tensors.
type Tensor struct {
	Name   string
	Type   Type
	Shape  []int64 // row-major, the reverse of the file's order: (rows, columns)
	offset int64   // in the file
}

// rows counts the runs of the last dimension, which is what blocks fill.
func (t *Tensor) rows() int64 {
	n := int64(1)
	for _, d := range t.Shape[:len(t.Shape)-1] {
		n *= d
	}
	return n
}

// columns is the length of the last dimension.
func (t *Tensor) columns() int64 { return t.Shape[len(t.Shape)-1] }

// File is an open GGUF file; a tensor's data is read when it is asked for.
type File struct {
	Version uint32
	Tensors []Tensor // in the order of the file's table

	metadata map[string]any
	byName   map[string]int
	r        io.ReaderAt
	closer   io.Closer
}

// alignmentDefault is where tensors start, in bytes, without general.alignment.
const alignmentDefault = 32

// Open opens a file; Close ends it.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return opened(path, f)
}

// OpenFS opens a file of fsys; Close ends it.
func OpenFS(fsys fs.FS, path string) (*File, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	return opened(path, f)
}

// opened reads the header. A file without ReadAt is read whole.
func opened(path string, f fs.File) (*File, error) {
	g, err := func() (*File, error) {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if r, ok := f.(io.ReaderAt); ok {
			return New(r, info.Size())
		}
		all, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		return New(strings.NewReader(string(all)), int64(len(all)))
	}()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	g.closer = f
	return g, nil
}

// Close closes the file.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// New reads the header of a file of size bytes; r must work for as long as
// tensors are asked for. Truncated files, counts, sizes and offsets that do not
// fit the file, and tensor types that are not known are errors.
func New(r io.ReaderAt, size int64) (*File, error) {
	f := &File{metadata: map[string]any{}, byName: map[string]int{}, r: r}
	if err := f.read(newReader(r, size)); err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return f, nil
}

func (f *File) read(r *reader) error {
	var magic [4]byte
	if err := r.bytes(magic[:]); err != nil || string(magic[:]) != "GGUF" {
		return errors.New("not a GGUF file: it does not start with \"GGUF\"")
	}
	var err error
	if f.Version, err = r.uint32(); err != nil {
		return fmt.Errorf("version: %w", err)
	}
	switch {
	case f.Version == 2 || f.Version == 3:
	case f.Version&0xffff == 0:
		return errors.New("the file is big-endian, which is not supported")
	default:
		return fmt.Errorf("version %d is not supported, only 2 and 3", f.Version)
	}
	tensors, err := r.count("tensors", 8+4+8+4+8)
	if err != nil {
		return err
	}
	if err := f.readMetadata(r); err != nil {
		return err
	}
	for i := range tensors {
		if err := f.readTensor(r); err != nil {
			return fmt.Errorf("tensor %d of %d: %w", i, tensors, err)
		}
	}
	return f.place(r)
}

// readMetadata reads the key-value pairs.
func (f *File) readMetadata(r *reader) error {
	n, err := r.count("metadata entries", 8+4+1)
	if err != nil {
		return err
	}
	for i := range n {
		key, err := r.string()
		if err != nil {
			return fmt.Errorf("metadata entry %d of %d: %w", i, n, err)
		}
		if _, ok := f.metadata[key]; ok {
			return fmt.Errorf("metadata names %q twice", key)
		}
		kind, err := r.uint32()
		if err != nil {
			return fmt.Errorf("metadata %q: %w", key, err)
		}
		if f.metadata[key], err = r.value(kind, 0); err != nil {
			return fmt.Errorf("metadata %q: %w", key, err)
		}
	}
	return nil
}

// readTensor reads one entry of the table; its offset is still relative to the data.
func (f *File) readTensor(r *reader) error {
	name, err := r.string()
	if err != nil {
		return err
	}
	if _, ok := f.byName[name]; ok {
		return fmt.Errorf("%q stands twice", name)
	}
	dims, err := r.uint32()
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if dims < 1 || dims > 4 {
		return fmt.Errorf("%q has %d dimensions", name, dims)
	}
	t := Tensor{Name: name, Shape: make([]int64, dims)}
	elements := int64(1)
	for i := range t.Shape {
		d, err := r.uint64()
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		if d < 1 || d > math.MaxInt32 || int64(d) > math.MaxInt64/8/elements {
			return fmt.Errorf("%q: dimension %d is %d", name, i, d)
		}
		elements *= int64(d)
		t.Shape[len(t.Shape)-1-i] = int64(d)
	}
	kind, err := r.uint32()
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	t.Type = Type(kind)
	if err := t.Type.check(t.columns()); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	offset, err := r.uint64()
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if offset > uint64(r.size) {
		return fmt.Errorf("%q starts at %d of a file of %d bytes", name, offset, r.size)
	}
	t.offset = int64(offset)
	f.byName[name] = len(f.Tensors)
	f.Tensors = append(f.Tensors, t)
	return nil
}

// place turns offsets into places in the file and holds them against its size and each other.
func (f *File) place(r *reader) error {
	alignment, ok, err := f.Uint("general.alignment")
	if err != nil {
		return err
	}
	if !ok {
		alignment = alignmentDefault
	}
	if alignment == 0 || alignment%8 != 0 || alignment > 1<<20 {
		return fmt.Errorf("general.alignment is %d", alignment)
	}
	align := int64(alignment)
	data := (r.at + align - 1) / align * align
	order := make([]*Tensor, len(f.Tensors))
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if t.offset%align != 0 {
			return fmt.Errorf("%q starts at %d, which is no multiple of the alignment %d", t.Name, t.offset, align)
		}
		t.offset += data
		if end := t.offset + t.rows()*t.Type.rowBytes(t.columns()); end > r.size {
			return fmt.Errorf("%q ends at byte %d of a file of %d: truncated?", t.Name, end, r.size)
		}
		order[i] = t
	}
	slices.SortFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.offset, b.offset) })
	for i := 1; i < len(order); i++ {
		before, t := order[i-1], order[i]
		if before.offset+before.rows()*before.Type.rowBytes(before.columns()) > t.offset {
			return fmt.Errorf("%q and %q overlap", before.Name, t.Name)
		}
	}
	return nil
}

// Tensor looks a tensor up.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Rows dequantises n rows (runs of the last dimension) of a tensor from row from
// on; a vector is one row.
func (f *File) Rows(name string, from, n int64) ([]float32, error) {
	i, ok := f.byName[name]
	if !ok {
		return nil, fmt.Errorf("gguf: no tensor %q", name)
	}
	t := &f.Tensors[i]
	if from < 0 || n < 0 || from > t.rows()-n {
		return nil, fmt.Errorf("gguf: tensor %q: rows %d to %d of %d", name, from, from+n, t.rows())
	}
	width := t.Type.rowBytes(t.columns())
	raw := make([]byte, n*width)
	if k, err := f.r.ReadAt(raw, t.offset+from*width); k < len(raw) {
		return nil, fmt.Errorf("gguf: tensor %q: %w", name, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	out := make([]float32, n*t.columns())
	types[t.Type].dequantise(raw, out)
	return out, nil
}
