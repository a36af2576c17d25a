package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The kinds of a metadata value.
const (
	kindUint8 uint32 = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)

// kindBytes is the least that a value of a kind takes in the file.
var kindBytes = map[uint32]int64{
	kindUint8: 1, kindInt8: 1, kindUint16: 2, kindInt16: 2, kindUint32: 4, kindInt32: 4, kindFloat32: 4, kindBool: 1,
	kindString: 8, kindArray: 12, kindUint64: 8, kindInt64: 8, kindFloat64: 8,
}

// depthMax is how deep arrays may stand in arrays.
const depthMax = 4

// reader reads little-endian values and knows how much of the file is left.
type reader struct {
	r    *bufio.Reader
	at   int64
	size int64
}

func newReader(r io.ReaderAt, size int64) *reader {
	return &reader{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 1<<16), size: size}
}

func (r *reader) left() int64 { return r.size - r.at }

// bytes reads n bytes, n having been held against left.
func (r *reader) bytes(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	r.at += int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (r *reader) uint32() (uint32, error) {
	var b [4]byte
	err := r.bytes(b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

func (r *reader) uint64() (uint64, error) {
	var b [8]byte
	err := r.bytes(b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

// count reads how many items follow, each of which takes at least least bytes.
func (r *reader) count(what string, least int64) (int, error) {
	n, err := r.uint64()
	if err != nil {
		return 0, fmt.Errorf("number of %s: %w", what, err)
	}
	if n > uint64(r.left()/least) {
		return 0, fmt.Errorf("%d %s in the %d bytes that are left", n, what, r.left())
	}
	return int(n), nil
}

func (r *reader) string() (string, error) {
	n, err := r.count("bytes of a string", 1)
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	err = r.bytes(b)
	return string(b), err
}

// value reads a metadata value: uint64, int64, float64, bool, string, or a slice
// of one of them; arrays of arrays are []any.
func (r *reader) value(kind uint32, depth int) (any, error) {
	switch kind {
	case kindString:
		return r.string()
	case kindArray:
		return r.array(depth)
	}
	n, ok := kindBytes[kind]
	if !ok {
		return nil, fmt.Errorf("unknown kind of value %d", kind)
	}
	var b [8]byte
	if err := r.bytes(b[:n]); err != nil {
		return nil, err
	}
	bits := binary.LittleEndian.Uint64(b[:])
	switch kind {
	case kindInt8:
		return int64(int8(bits)), nil
	case kindInt16:
		return int64(int16(bits)), nil
	case kindInt32:
		return int64(int32(bits)), nil
	case kindInt64:
		return int64(bits), nil
	case kindFloat32:
		return float64(math.Float32frombits(uint32(bits))), nil
	case kindFloat64:
		return math.Float64frombits(bits), nil
	case kindBool:
		if bits > 1 {
			return nil, fmt.Errorf("a bool of value %d", bits)
		}
		return bits == 1, nil
	}
	return bits, nil
}

// array reads an array's kind, length and values.
func (r *reader) array(depth int) (any, error) {
	if depth >= depthMax {
		return nil, fmt.Errorf("arrays stand %d deep", depth+1)
	}
	kind, err := r.uint32()
	if err != nil {
		return nil, err
	}
	least, ok := kindBytes[kind]
	if !ok {
		return nil, fmt.Errorf("unknown kind of array values %d", kind)
	}
	n, err := r.count("array values", least)
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindUint8, kindUint16, kindUint32, kindUint64:
		return list[uint64](r, kind, n, depth)
	case kindInt8, kindInt16, kindInt32, kindInt64:
		return list[int64](r, kind, n, depth)
	case kindFloat32, kindFloat64:
		return list[float64](r, kind, n, depth)
	case kindBool:
		return list[bool](r, kind, n, depth)
	case kindString:
		return list[string](r, kind, n, depth)
	}
	return list[any](r, kind, n, depth)
}

// list reads n values that value gives as T.
func list[T any](r *reader, kind uint32, n, depth int) ([]T, error) {
	out := make([]T, 0, min(n, 1<<20))
	for i := range n {
		v, err := r.value(kind, depth+1)
		if err != nil {
			return nil, fmt.Errorf("array value %d of %d: %w", i, n, err)
		}
		out = append(out, v.(T))
	}
	return out, nil
}
