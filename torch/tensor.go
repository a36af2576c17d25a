package torch

import (
	"fmt"
	"unsafe"

	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

// Tensor is a handle on a tensor of libtorch. A nil *Tensor is an absent optional argument.
type Tensor struct {
	h     ctorch.Handle
	scope *Scope
	slot  int
}

// DType is an element type, numbered as libtorch's ScalarType.
type DType int

// The element types in use.
const (
	Uint8    DType = 0
	Int8     DType = 1
	Int16    DType = 2
	Int32    DType = 3
	Int64    DType = 4
	Float16  DType = 5
	Float32  DType = 6
	Float64  DType = 7
	Bool     DType = 11
	BFloat16 DType = 15
)

var dtypes = map[DType]struct {
	name  string
	bytes int
}{
	Uint8: {"uint8", 1}, Int8: {"int8", 1}, Int16: {"int16", 2}, Int32: {"int32", 4}, Int64: {"int64", 8},
	Float16: {"float16", 2}, Float32: {"float32", 4}, Float64: {"float64", 8}, Bool: {"bool", 1}, BFloat16: {"bfloat16", 2},
}

// String is PyTorch's name of the type.
func (d DType) String() string {
	if k, ok := dtypes[d]; ok {
		return k.name
	}
	return fmt.Sprintf("dtype(%d)", int(d))
}

// Size is the bytes of an element, 0 for a type not listed here.
func (d DType) Size() int { return dtypes[d].bytes }

// wrap registers a new handle in the innermost scope; an undefined one is nil.
func wrap(h ctorch.Handle) *Tensor {
	if h == 0 {
		return nil
	}
	t := &Tensor{h: h}
	innermost.adopt(t)
	live.Add(1)
	return t
}

// handle is the libtorch handle, 0 for nil; a freed tensor panics.
func (t *Tensor) handle() ctorch.Handle {
	if t == nil {
		return 0
	}
	if t.h == 0 {
		panic(&Error{Op: "tensor", Message: "used after it was freed"})
	}
	return t.h
}

// must is handle for a receiver that cannot be nil.
func (t *Tensor) must(op string) ctorch.Handle {
	if t == nil {
		panic(&Error{Op: op, Message: "nil tensor"})
	}
	return t.handle()
}

func (t *Tensor) meta() ctorch.Meta { return ctorch.MetaOf(t.must("meta")) }

// Shape is a new slice with the size of each dimension.
func (t *Tensor) Shape() []int64 {
	m := t.meta()
	return append([]int64{}, m.Sizes()...)
}

// Dims is the number of dimensions.
func (t *Tensor) Dims() int {
	m := t.meta()
	return m.Dims
}

// Dim is the size of dimension i; a negative i counts from the end.
func (t *Tensor) Dim(i int) int64 {
	m := t.meta()
	sizes := m.Sizes()
	j := i
	if j < 0 {
		j += len(sizes)
	}
	if j < 0 || j >= len(sizes) {
		panic(&Error{Op: "Dim", Args: t.String(), Message: fmt.Sprintf("no dimension %d", i)})
	}
	return sizes[j]
}

// Numel is the number of elements.
func (t *Tensor) Numel() int64 {
	m := t.meta()
	n := int64(1)
	for _, d := range m.Sizes() {
		n *= d
	}
	return n
}

// DType is the element type.
func (t *Tensor) DType() DType {
	m := t.meta()
	return DType(m.DType)
}

// Device is "cpu", or "cuda:0" and the like.
func (t *Tensor) Device() string {
	m := t.meta()
	return deviceName(m.DeviceType, m.DeviceIndex)
}

// String is the type and shape, such as "float32[2 3]".
func (t *Tensor) String() string {
	if t == nil {
		return "none"
	}
	if t.h == 0 {
		return "freed"
	}
	m := t.meta()
	return fmt.Sprintf("%v%d", DType(m.DType), m.Sizes())
}

// Bytes copies the elements, row-major, in libtorch's own layout (little-endian on every machine that libtorch runs on).
func (t *Tensor) Bytes() []byte {
	return read(t, func(c *Tensor) []byte {
		out := make([]byte, int(c.Numel())*c.DType().Size())
		raise("copy", ctorch.ToBytes(c.handle(), out), c)
		return out
	})
}

// SetBytes overwrites the elements of a contiguous CPU tensor with data of its size, in libtorch's own layout. Unlike Copy_ it makes
// no second tensor, and autograd does not see it.
func (t *Tensor) SetBytes(data []byte) {
	raise("set_bytes", ctorch.SetBytes(t.must("set_bytes"), data), t)
}

// SetFloat32s is SetBytes of a float32 tensor.
func (t *Tensor) SetFloat32s(data []float32) {
	if d := t.DType(); d != Float32 {
		raise("set_float32s", "wants a float32 tensor, not "+d.String(), t)
	}
	t.SetBytes(asBytes(data))
}

// read hands f a contiguous CPU version of t, which dies afterwards.
func read[T any](t *Tensor, f func(*Tensor) T) T {
	s := NewScope()
	defer s.Close()
	c := t
	if m := t.meta(); m.DeviceType != 0 {
		c = c.ToDevice("cpu")
	}
	return f(c.Contiguous())
}

// values copies the elements after conversion to dtype, whose Go type is T.
func values[T any](t *Tensor, dtype DType) []T {
	return read(t, func(c *Tensor) []T {
		c = c.To(dtype).Contiguous()
		out := make([]T, c.Numel())
		raise("copy", ctorch.ToBytes(c.handle(), asBytes(out)), c)
		return out
	})
}

// Float32s copies the elements, row-major, converted to float32.
func (t *Tensor) Float32s() []float32 { return values[float32](t, Float32) }

// Float64s copies the elements, row-major, converted to float64.
func (t *Tensor) Float64s() []float64 { return values[float64](t, Float64) }

// Int64s copies the elements, row-major, converted to int64 (floats are cut toward zero).
func (t *Tensor) Int64s() []int64 { return values[int64](t, Int64) }

// Bools copies the elements, row-major; what is not zero is true.
func (t *Tensor) Bools() []bool { return values[bool](t, Bool) }

// asBytes is the memory of v.
func asBytes[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}
