package torch

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/torch/safetensors"
)

// formatTypes are the types that files and libtorch 1.13 share, by the format's names.
var formatTypes = map[string]DType{"BOOL": Bool, "U8": Uint8, "I8": Int8, "I16": Int16, "I32": Int32, "I64": Int64,
	"F16": Float16, "BF16": BFloat16, "F32": Float32, "F64": Float64}

// Safetensors is an open safetensors file; a tensor's data is read when it is asked for.
type Safetensors struct {
	// Metadata is the file's __metadata__; nil when it has none.
	Metadata map[string]string
	header   *safetensors.Header
	byName   map[string]safetensors.Entry
	r        io.ReaderAt
	closer   io.Closer
	path     string
}

// OpenSafetensors opens a file; Close ends it.
func OpenSafetensors(path string) (*Safetensors, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return openFile(path, f)
}

// OpenSafetensorsFS opens a file of fsys, such as an embedded one; Close ends it.
func OpenSafetensorsFS(fsys fs.FS, path string) (*Safetensors, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	return openFile(path, f)
}

// openFile reads the header. A file without ReadAt is read whole.
func openFile(path string, f fs.File) (*Safetensors, error) {
	s, err := func() (*Safetensors, error) {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if r, ok := f.(io.ReaderAt); ok {
			return NewSafetensors(r, info.Size())
		}
		all, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		return NewSafetensors(strings.NewReader(string(all)), int64(len(all)))
	}()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.path, s.closer = path, f
	return s, nil
}

// NewSafetensors reads the header of a file of size bytes; r must work for as long as tensors are asked for.
func NewSafetensors(r io.ReaderAt, size int64) (*Safetensors, error) {
	h, err := safetensors.Read(r, size)
	if err != nil {
		return nil, err
	}
	s := &Safetensors{Metadata: h.Metadata, header: h, byName: map[string]safetensors.Entry{}, r: r, path: "safetensors"}
	for _, e := range h.Entries {
		s.byName[e.Name] = e
	}
	return s, nil
}

// Close closes the file. Tensors that were read live on.
func (s *Safetensors) Close() error {
	if s.closer == nil {
		return nil
	}
	return s.closer.Close()
}

// Names is the tensors of the file in order of their data.
func (s *Safetensors) Names() []string {
	names := make([]string, len(s.header.Entries))
	for i, e := range s.header.Entries {
		names[i] = e.Name
	}
	return names
}

// Shape is a tensor's shape without its data; false where the file lacks it.
func (s *Safetensors) Shape(name string) ([]int64, bool) {
	e, ok := s.byName[name]
	return slices.Clone(e.Shape), ok
}

// Section is a tensor's bytes, as FromBytes takes them, and its type, for reading it piece by piece.
func (s *Safetensors) Section(name string) (*io.SectionReader, DType, error) {
	e, dtype, err := s.entry(name)
	if err != nil {
		return nil, 0, err
	}
	return io.NewSectionReader(s.r, s.header.Data+e.Begin, e.End-e.Begin), dtype, nil
}

func (s *Safetensors) entry(name string) (e safetensors.Entry, dtype DType, err error) {
	e, ok := s.byName[name]
	if !ok {
		return e, 0, fmt.Errorf("%s: no tensor %q", s.path, name)
	}
	if dtype, ok = formatTypes[e.DType]; !ok {
		return e, 0, fmt.Errorf("%s: tensor %q: libtorch %s has no type %s", s.path, name, Version(), e.DType)
	}
	return e, dtype, nil
}

// Tensor reads one tensor to the CPU, in the file's type.
func (s *Safetensors) Tensor(name string) (*Tensor, error) {
	e, dtype, err := s.entry(name)
	if err != nil {
		return nil, err
	}
	data := make([]byte, e.End-e.Begin)
	if n, err := s.r.ReadAt(data, s.header.Data+e.Begin); n < len(data) {
		return nil, fmt.Errorf("%s: tensor %q: %w", s.path, name, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	var t *Tensor
	err = Try(func() error {
		t = fromBytes(data, dtype, e.Shape)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", s.path, name, err)
	}
	return t, nil
}

// ReadSafetensors reads all tensors of a file, and its metadata.
func ReadSafetensors(path string) (map[string]*Tensor, map[string]string, error) {
	s, err := OpenSafetensors(path)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	all := map[string]*Tensor{}
	for _, name := range s.Names() {
		t, err := s.Tensor(name)
		if err != nil {
			for _, t := range all {
				t.Free()
			}
			return nil, nil, err
		}
		all[name] = t
	}
	return all, s.Metadata, nil
}

// WriteSafetensors writes a file: first beside path, then renamed, so that path is never half written. As Hugging Face's writer does, it
// lays wide types before narrow ones, and each by name, so that the same tensors make the same bytes. transformers wants the
// metadata {"format": "pt"}.
func WriteSafetensors(path string, tensors []Named, metadata map[string]string) error {
	sorted, entries, err := layout(tensors)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return safetensors.Write(path, entries, metadata, func(w io.Writer) error { return writeAll(w, sorted) })
}

// layout orders the tensors and describes them.
func layout(tensors []Named) ([]Named, []safetensors.Entry, error) {
	names := map[DType]string{}
	for name, d := range formatTypes {
		names[d] = name
	}
	sorted := slices.Clone(tensors)
	for _, n := range sorted {
		if n.Tensor == nil {
			return nil, nil, fmt.Errorf("tensor %q is nil", n.Name)
		}
		if _, ok := names[n.Tensor.DType()]; !ok {
			return nil, nil, fmt.Errorf("tensor %q: the format has no type %v", n.Name, n.Tensor.DType())
		}
	}
	slices.SortFunc(sorted, func(a, b Named) int {
		return cmp.Or(cmp.Compare(b.Tensor.DType().Size(), a.Tensor.DType().Size()), cmp.Compare(a.Name, b.Name))
	})
	entries := make([]safetensors.Entry, len(sorted))
	for i, n := range sorted {
		entries[i] = safetensors.Entry{Name: n.Name, DType: names[n.Tensor.DType()], Shape: n.Tensor.Shape()}
	}
	return sorted, entries, nil
}

func writeAll(w io.Writer, tensors []Named) error {
	for _, n := range tensors {
		var data []byte
		if err := Try(func() error { data = n.Tensor.Bytes(); return nil }); err != nil {
			return fmt.Errorf("tensor %q: %w", n.Name, err)
		}
		if _, err := w.Write(data); err != nil {
			return fmt.Errorf("tensor %q: %w", n.Name, err)
		}
	}
	return nil
}
