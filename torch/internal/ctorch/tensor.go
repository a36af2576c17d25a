package ctorch

/*
#include <stdlib.h>
#include "ctorch.h"
*/
import "C"

import "unsafe"

// From copies data (bytes of libtorch's own layout, row-major) into a new CPU tensor.
func From(data []byte, dtype int, shape []int64) (Handle, string) {
	var h C.mb_tensor
	msg := text(C.mb_from(unsafe.Pointer(unsafe.SliceData(data)), C.int64_t(len(data)), C.int(dtype),
		(*C.int64_t)(unsafe.SliceData(shape)), C.int(len(shape)), &h))
	return Handle(h), msg
}

// ToBytes copies a contiguous CPU tensor into data, which has its size exactly.
func ToBytes(h Handle, data []byte) string {
	return text(C.mb_to_bytes(C.mb_tensor(h), unsafe.Pointer(unsafe.SliceData(data)), C.int64_t(len(data))))
}

// SetBytes copies data over a contiguous CPU tensor, which has its size exactly.
func SetBytes(h Handle, data []byte) string {
	return text(C.mb_set_bytes(C.mb_tensor(h), unsafe.Pointer(unsafe.SliceData(data)), C.int64_t(len(data))))
}

// Linear is x (rows, in) times w (out, in) transposed, plus bias unless 0, by the kernels of kernels.cc; 0 where they have nothing for
// these tensors. lanes is 0 but in tests.
func Linear(x, w, bias Handle, lanes int) (Handle, string) {
	var h C.mb_tensor
	msg := text(C.mb_linear(C.mb_tensor(x), C.mb_tensor(w), C.mb_tensor(bias), C.int(lanes), &h))
	return Handle(h), msg
}

// Attend is the attention of q (rows, heads, size) to the first lengths[row] places of keys and values (rows or more, places, kv * size).
// lanes is 0 but in tests.
func Attend(q, keys, values Handle, lengths []int64, lanes int) (Handle, string) {
	var h C.mb_tensor
	list := (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(lengths)))
	msg := text(C.mb_attend(C.mb_tensor(q), C.mb_tensor(keys), C.mb_tensor(values), list, C.int(lanes), &h))
	return Handle(h), msg
}

// Attends says whether Attend has a kernel for heads of size floats.
func Attends(size int64, lanes int) bool { return C.mb_attends(C.int64_t(size), C.int(lanes)) != 0 }

// Free gives the references back.
func Free(handles []Handle) {
	if len(handles) > 0 {
		C.mb_free((*C.mb_tensor)(unsafe.Pointer(unsafe.SliceData(handles))), C.int(len(handles)))
	}
}

// Meta is what libtorch says about a tensor without touching its data.
type Meta struct {
	DType        int
	DeviceType   int // 0 CPU, 1 CUDA
	DeviceIndex  int // -1 on the CPU
	RequiresGrad bool
	Leaf         bool
	Contiguous   bool
	Dims         int
	sizes        [12]int64
}

// Sizes is the shape; tensors of more than 12 dimensions are cut.
func (m *Meta) Sizes() []int64 { return m.sizes[:min(m.Dims, len(m.sizes))] }

// MetaOf reads a tensor's Meta.
func MetaOf(h Handle) Meta {
	var raw [19]int64
	C.mb_meta(C.mb_tensor(h), (*C.int64_t)(&raw[0]), C.int(len(raw)))
	m := Meta{DType: int(raw[0]), DeviceType: int(raw[1]), DeviceIndex: int(raw[2]), RequiresGrad: raw[3] != 0,
		Leaf: raw[4] != 0, Contiguous: raw[5] != 0, Dims: int(raw[6])}
	copy(m.sizes[:], raw[7:])
	return m
}

// Backward runs the autograd engine from root; gradient 0 is a one for a scalar root.
func Backward(root, gradient Handle, keepGraph bool) string {
	return text(C.mb_backward(C.mb_tensor(root), C.mb_tensor(gradient), cbool(keepGraph)))
}

// RequiresGrad sets the flag of a leaf.
func RequiresGrad(h Handle, on bool) string {
	return text(C.mb_requires_grad(C.mb_tensor(h), cbool(on)))
}

// Grad is a new reference to the accumulated gradient, 0 when there is none.
func Grad(h Handle) Handle { return Handle(C.mb_grad(C.mb_tensor(h))) }

// SetGrad replaces the accumulated gradient; 0 drops it.
func SetGrad(h, grad Handle) string { return text(C.mb_set_grad(C.mb_tensor(h), C.mb_tensor(grad))) }

// GradMode sets the calling OS thread's gradient mode and returns the one before.
func GradMode(on bool) bool { return C.mb_grad_mode(cbool(on)) != 0 }

// SetThreads sets the threads of an operator, in libtorch and in OpenBLAS.
func SetThreads(n int) { C.mb_set_threads(C.int(n)) }

// Threads is the number of threads of an operator.
func Threads() int { return int(C.mb_threads()) }

// Seed seeds the generators of all devices.
func Seed(seed uint64) string { return text(C.mb_seed(C.uint64_t(seed))) }

// CUDADevices counts the CUDA devices that answer; 0 in a CPU build.
func CUDADevices() int { return int(C.mb_cuda_devices()) }

// Synchronize waits for a CUDA device; -1 is the current one.
func Synchronize(index int) string { return text(C.mb_synchronize(C.int(index))) }

// CUDAMemory is the bytes in use on the current CUDA device and all that it has, 0 where no CUDA runtime is linked.
func CUDAMemory() (used, total int64) {
	var free, all C.size_t
	C.mb_cuda_memory(&free, &all)
	return int64(all - free), int64(all)
}

// Version is the libtorch that the package was compiled against.
func Version() string { return C.GoString(C.mb_version()) }

// BLASCore is the processor that OpenBLAS takes this one for, "" without OpenBLAS.
func BLASCore() string { return C.GoString(C.mb_blas_core()) }

func cbool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
