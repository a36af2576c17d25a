// Package ctorch is the plain C face of libtorch, one to one, and the only package with cgo and C++.
// Editing Go elsewhere never compiles libtorch's headers again.
//
// A plain `go build` takes Debian's libtorch-dev (link_debian.go). For any other libtorch build with `-tags libtorch_env`, which
// drops Debian's flags, and give all of them in the environment. For the wheel of a Python that imports torch, with
// T=$(python3 -c 'import torch; print(torch.__path__[0])'):
//
//	GOFLAGS=-tags=libtorch_env
//	CGO_CXXFLAGS="-O2 -std=c++20 -I$T/include -I$T/include/torch/csrc/api/include"
//	CGO_LDFLAGS="-L$T/lib -Wl,-rpath,$T/lib -Wl,--no-as-needed -ltorch -ltorch_cpu -lc10 -ldl"
//
// C++20 suits every libtorch from 1.13 on, newer ones want it. A CUDA build, which has $T/lib/libtorch_cuda.so, adds -ltorch_cuda -lc10_cuda after
// --no-as-needed: nothing names them, and the linker would drop them.
package ctorch

/*
#cgo CXXFLAGS: -O2 -Wall
#cgo noescape mb_call
#cgo nocallback mb_call
#cgo noescape mb_free
#cgo nocallback mb_free
#cgo noescape mb_meta
#cgo nocallback mb_meta
#include <stdlib.h>
#include "ctorch.h"
*/
import "C"

import (
	"math"
	"unsafe"
)

// Handle is a tensor of libtorch that owns one reference; 0 is an undefined tensor.
type Handle uintptr

// maxArgs is above the argument count of any operator in use.
const maxArgs = 10

// Arg is one boxed argument of an operator.
type Arg struct {
	tag  int32
	bits uint64
	list []int64
	text string
}

// None is an absent optional.
func None() Arg { return Arg{} }

// Tensor is a tensor argument; handle 0 is an absent optional.
func Tensor(h Handle) Arg {
	if h == 0 {
		return Arg{}
	}
	return Arg{tag: C.MB_TENSOR, bits: uint64(h)}
}

// Int is an int, a dtype, a layout or a memory format.
func Int(v int64) Arg { return Arg{tag: C.MB_INT, bits: uint64(v)} }

// Double is a float.
func Double(v float64) Arg { return Arg{tag: C.MB_DOUBLE, bits: math.Float64bits(v)} }

// Bool is a bool.
func Bool(v bool) Arg {
	if v {
		return Arg{tag: C.MB_BOOL, bits: 1}
	}
	return Arg{tag: C.MB_BOOL}
}

// Scalar is a number: an int where it is whole and the first argument is an integral tensor, else a float.
func Scalar(v float64) Arg { return Arg{tag: C.MB_SCALAR, bits: math.Float64bits(v)} }

// Device is a device by libtorch's type number (0 CPU, 1 CUDA) and index (-1: the current one).
func Device(kind, index int) Arg {
	return Arg{tag: C.MB_DEVICE, bits: uint64(kind)<<8 | uint64(index+1)&255}
}

// Ints is an int list.
func Ints(v []int64) Arg { return Arg{tag: C.MB_INTS, list: v} }

// Tensors is a list of tensors, given as handles.
func Tensors(handles []int64) Arg { return Arg{tag: C.MB_TENSORS, list: handles} }

// OptTensors is a list of optional tensors, given as handles.
func OptTensors(handles []int64) Arg { return Arg{tag: C.MB_OPT_TENSORS, list: handles} }

// String is a text.
func String(s string) Arg { return Arg{tag: C.MB_STRING, text: s} }

// Op is an operator by its name and overload, looked up once when first needed.
type Op struct {
	Name, Overload string
	ptr            unsafe.Pointer
	missing        bool
}

// Exists says whether this libtorch has the operator.
func (o *Op) Exists() bool {
	if o.ptr == nil && !o.missing {
		o.find()
	}
	return o.ptr != nil
}

func (o *Op) find() {
	name, overload := C.CString(o.Name), C.CString(o.Overload)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(overload))
	if msg := text(C.mb_find(name, overload, &o.ptr)); msg != "" || o.ptr == nil {
		o.missing = true
	}
}

// Call1 calls the operator for its first result. msg is empty on success.
func (o *Op) Call1(args []Arg) (h Handle, msg string) {
	var out [4]C.mb_value
	n, msg := o.call(out[:], args)
	if n == 0 || msg != "" {
		return 0, msg
	}
	for _, v := range out[1:n] { // none in practice: operators with more results go through Call
		if v.tag == C.MB_TENSOR {
			Free([]Handle{Handle(v.bits)})
		}
	}
	return Handle(out[0].bits), ""
}

// Call0 calls the operator and drops what it returns, as for in-place operators.
func (o *Op) Call0(args []Arg) (msg string) {
	_, msg = o.call(nil, args)
	return msg
}

// Call calls the operator for up to limit tensors; lists are flattened.
func (o *Op) Call(limit int, args []Arg) (handles []Handle, msg string) {
	out := make([]C.mb_value, limit)
	n, msg := o.call(out, args)
	handles = make([]Handle, n)
	for i, v := range out[:n] {
		handles[i] = Handle(v.bits)
	}
	return handles, msg
}

// CallFloat calls the operator for a number or a bool (0, 1).
func (o *Op) CallFloat(args []Arg) (v float64, msg string) {
	var out [1]C.mb_value
	n, msg := o.call(out[:], args)
	if n == 0 || msg != "" {
		return 0, msg
	}
	if out[0].tag == C.MB_DOUBLE {
		return math.Float64frombits(uint64(out[0].bits)), ""
	}
	return float64(int64(out[0].bits)), ""
}

// call boxes the arguments into fixed arrays without Go pointers, so that nothing is pinned, checked or allocated.
func (o *Op) call(out []C.mb_value, args []Arg) (int, string) {
	if !o.Exists() {
		return 0, "this libtorch lacks the operator"
	}
	if len(args) > maxArgs {
		return 0, "too many arguments"
	}
	var boxed [maxArgs]C.mb_value
	var small [12]int64
	side := small[:0]
	for i := range args {
		a, b := &args[i], &boxed[i]
		b.tag, b.bits = C.int32_t(a.tag), C.uint64_t(a.bits)
		switch a.tag {
		case C.MB_INTS, C.MB_TENSORS, C.MB_OPT_TENSORS:
			b.n, b.bits = C.int32_t(len(a.list)), C.uint64_t(len(side))
			side = append(side, a.list...)
		case C.MB_STRING:
			b.n, b.bits = C.int32_t(len(a.text)), C.uint64_t(len(side))
			side = appendText(side, a.text)
		}
	}
	var got C.int
	err := C.mb_call(o.ptr, &boxed[0], C.int(len(args)), (*C.int64_t)(unsafe.SliceData(side)), unsafe.SliceData(out), C.int(len(out)), &got)
	if err != nil {
		return 0, text(err)
	}
	return int(got), ""
}

// appendText packs the bytes of s into words.
func appendText(side []int64, s string) []int64 {
	words := make([]int64, (len(s)+7)/8)
	if len(s) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(s)), s)
	}
	return append(side, words...)
}

// text takes over a C message; nil is the empty text.
func text(s *C.char) string {
	if s == nil {
		return ""
	}
	defer C.free(unsafe.Pointer(s))
	if msg := C.GoString(s); msg != "" {
		return msg
	}
	return "libtorch failed without a message"
}

// Value is the argument as a Handle, a []Handle, or a plain Go value, for messages.
func (a Arg) Value() any {
	switch a.tag {
	case C.MB_TENSOR:
		return Handle(a.bits)
	case C.MB_INT:
		return int64(a.bits)
	case C.MB_DOUBLE, C.MB_SCALAR:
		return math.Float64frombits(a.bits)
	case C.MB_BOOL:
		return a.bits != 0
	case C.MB_INTS:
		return a.list
	case C.MB_STRING:
		return a.text
	case C.MB_DEVICE:
		return "device"
	case C.MB_TENSORS, C.MB_OPT_TENSORS:
		out := make([]Handle, len(a.list))
		for i, h := range a.list {
			out[i] = Handle(h)
		}
		return out
	}
	return "none"
}
