package torch

import (
	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

var (
	opZeros  = op("aten::zeros")
	opOnes   = op("aten::ones")
	opEmpty  = op("aten::empty.memory_format")
	opFull   = op("aten::full")
	opArange = op("aten::arange.start_step")
	opRandn  = op("aten::randn")
	opRand   = op("aten::rand")
	opEye    = op("aten::eye")

	opZerosLike = op("aten::zeros_like")
	opOnesLike  = op("aten::ones_like")
	opEmptyLike = op("aten::empty_like")
)

// FromFloat32 copies data, row-major, into a CPU tensor. No shape makes a vector of len(data).
func FromFloat32(data []float32, shape ...int64) *Tensor { return from(data, Float32, shape) }

// FromFloat64 is FromFloat32 for float64.
func FromFloat64(data []float64, shape ...int64) *Tensor { return from(data, Float64, shape) }

// FromInt64 is FromFloat32 for int64.
func FromInt64(data []int64, shape ...int64) *Tensor { return from(data, Int64, shape) }

// FromInt32 is FromFloat32 for int32.
func FromInt32(data []int32, shape ...int64) *Tensor { return from(data, Int32, shape) }

// FromBool is FromFloat32 for bool.
func FromBool(data []bool, shape ...int64) *Tensor { return from(data, Bool, shape) }

// FromBytes copies elements in libtorch's own layout into a CPU tensor.
func FromBytes(data []byte, dtype DType, shape ...int64) *Tensor {
	return fromBytes(data, dtype, shape)
}

// Scalar is a tensor without dimensions, float32.
func Scalar(v float64) *Tensor { return fromBytes(asBytes([]float32{float32(v)}), Float32, []int64{}) }

func from[T any](data []T, dtype DType, shape []int64) *Tensor {
	if len(shape) == 0 {
		shape = []int64{int64(len(data))}
	}
	return fromBytes(asBytes(data), dtype, shape)
}

func fromBytes(data []byte, dtype DType, shape []int64) *Tensor {
	h, msg := ctorch.From(data, int(dtype), shape)
	if msg != "" {
		panic(&Error{Op: "from", Args: describe([]ctorch.Arg{li(shape)}), Message: firstLine(msg)})
	}
	return wrap(h)
}

// Zeros is a CPU tensor of zeros.
func Zeros(d DType, shape ...int64) *Tensor { return opZeros.one(li(shape), dt(d)) }

// ZerosOn is zeros on a device, "cpu", "cuda" or "cuda:N".
func ZerosOn(device string, d DType, shape ...int64) *Tensor {
	return opZeros.one(li(shape), dt(d), none(), place("zeros", device))
}

// Ones is a CPU tensor of ones.
func Ones(d DType, shape ...int64) *Tensor { return opOnes.one(li(shape), dt(d)) }

// Empty is a CPU tensor with no defined content.
func Empty(d DType, shape ...int64) *Tensor { return opEmpty.one(li(shape), dt(d)) }

// EmptyOn is Empty on a device, "cpu", "cuda" or "cuda:N".
func EmptyOn(device string, d DType, shape ...int64) *Tensor {
	return opEmpty.one(li(shape), dt(d), none(), place("empty", device))
}

// Full is a CPU tensor of one value.
func Full(d DType, v float64, shape ...int64) *Tensor { return opFull.one(li(shape), sc(v), dt(d)) }

// Arange is the vector 0 .. n-1, int64.
func Arange(n int64) *Tensor { return opArange.one(i64(0), i64(n), i64(1), dt(Int64)) }

// ArangeStep is the vector start, start+step, ... below end, int64.
func ArangeStep(start, end, step int64) *Tensor {
	return opArange.one(i64(start), i64(end), i64(step), dt(Int64))
}

// Randn draws from the standard normal distribution, float32, with libtorch's CPU generator (ManualSeed).
func Randn(shape ...int64) *Tensor { return opRandn.one(li(shape), dt(Float32)) }

// Rand draws uniformly from [0, 1), float32.
func Rand(shape ...int64) *Tensor { return opRand.one(li(shape), dt(Float32)) }

// Eye is the identity matrix (n, n).
func Eye(d DType, n int64) *Tensor { return opEye.one(i64(n), dt(d)) }

// ZerosLike is zeros in t's shape and type, where t lives.
func (t *Tensor) ZerosLike() *Tensor { return opZerosLike.one(tn(t)) }

// OnesLike is ones in t's shape and type, where t lives.
func (t *Tensor) OnesLike() *Tensor { return opOnesLike.one(tn(t)) }

// EmptyLike has t's shape and type, where t lives, and no defined content.
func (t *Tensor) EmptyLike() *Tensor { return opEmptyLike.one(tn(t)) }
