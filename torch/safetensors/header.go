// Package safetensors reads and writes safetensors files in pure Go, without libtorch. The format is that of
// github.com/huggingface/safetensors: eight bytes with the header's length, a JSON object, and the data.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// MaxHeader is the longest header in bytes, as in the reference implementation.
const MaxHeader = 100_000_000

// Entry is one tensor of the file. Begin and End are offsets in bytes from the start of the data.
type Entry struct {
	Name       string
	DType      string // "F32" and the like
	Shape      []int64
	Begin, End int64
}

// Header is a file's table of contents. Entries are in order of their data.
type Header struct {
	Metadata map[string]string
	Entries  []Entry
	Data     int64 // where the data starts in the file
}

// sizes is the bytes of an element by the format's names of types.
var sizes = map[string]int64{"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4,
	"F32": 4, "I64": 8, "U64": 8, "F64": 8}

// Bytes is the size of an entry's data by its type and shape.
func (e Entry) Bytes() (int64, error) {
	n, ok := sizes[e.DType]
	if !ok {
		return 0, fmt.Errorf("tensor %q: unknown dtype %q", e.Name, e.DType)
	}
	for _, d := range e.Shape {
		if d < 0 {
			return 0, fmt.Errorf("tensor %q: negative size in shape %v", e.Name, e.Shape)
		}
	}
	if slices.Contains(e.Shape, 0) {
		return 0, nil
	}
	for _, d := range e.Shape {
		if n > math.MaxInt64/d {
			return 0, fmt.Errorf("tensor %q: shape %v is too large", e.Name, e.Shape)
		}
		n *= d
	}
	return n, nil
}

// Read reads the header of a file of size bytes and checks that the tensors fill the data without gap or overlap.
func Read(r io.ReaderAt, size int64) (*Header, error) {
	var prefix [8]byte
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, fmt.Errorf("safetensors: header length: %w", err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > MaxHeader || int64(length) > size-8 {
		return nil, fmt.Errorf("safetensors: header of %d bytes in a file of %d", length, size)
	}
	raw := make([]byte, length)
	if err := readFull(r, raw, 8); err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	h, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	h.Data = 8 + int64(length)
	if err := h.check(size - h.Data); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return h, nil
}

// readFull reads all of b at offset; a file's end inside b is io.ErrUnexpectedEOF.
func readFull(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parse reads the JSON object key by key: encoding/json would take the last of two equal keys in silence.
func parse(raw []byte) (*Header, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("header is no JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	h, seen := &Header{}, map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		name := key.(string) // a decoder inside an object gives no other key
		if seen[name] {
			return nil, fmt.Errorf("header names %q twice", name)
		}
		seen[name] = true
		if err := h.member(d, name); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if rest := bytes.TrimLeft(raw[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, errors.New("header goes on after its JSON object")
	}
	return h, nil
}

// member reads one value of the object.
func (h *Header) member(d *json.Decoder, name string) error {
	if name == "__metadata__" {
		if err := d.Decode(&h.Metadata); err != nil {
			return fmt.Errorf("__metadata__: %w", err)
		}
		return nil
	}
	var v struct {
		DType   string  `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	if v.Shape == nil || len(v.Offsets) != 2 {
		return fmt.Errorf("tensor %q: dtype, shape and two data_offsets are needed", name)
	}
	h.Entries = append(h.Entries, Entry{name, v.DType, v.Shape, v.Offsets[0], v.Offsets[1]})
	return nil
}

// check sorts the entries by their data and holds them against the data's size.
func (h *Header) check(data int64) error {
	slices.SortFunc(h.Entries, func(a, b Entry) int {
		if a.Begin != b.Begin {
			return compare(a.Begin, b.Begin)
		}
		if a.End != b.End {
			return compare(a.End, b.End)
		}
		return strings.Compare(a.Name, b.Name)
	})
	at := int64(0)
	for _, e := range h.Entries {
		n, err := e.Bytes()
		if err != nil {
			return err
		}
		if e.Begin != at {
			return fmt.Errorf("tensor %q: data starts at %d, want %d", e.Name, e.Begin, at)
		}
		if e.End < e.Begin || e.End-e.Begin != n {
			return fmt.Errorf("tensor %q: data_offsets [%d %d], but %s%v has %d bytes", e.Name, e.Begin, e.End, e.DType, e.Shape, n)
		}
		at = e.End
	}
	if at != data {
		return fmt.Errorf("tensors hold %d bytes, the file has %d", at, data)
	}
	return nil
}

func compare(a, b int64) int {
	if a < b {
		return -1
	}
	return 1
}
