package torch

import (
	"fmt"
	"math"
	"strings"

	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

// operator is an ATen operator, looked up when first called.
type operator struct{ ctorch.Op }

// operators is all that the package names, so that a test can ask the installed libtorch for each.
var operators []*operator

// op names an operator as in its schema, "aten::add.Tensor".
func op(schema string) *operator {
	name, overload, _ := strings.Cut(schema, ".")
	o := &operator{ctorch.Op{Name: name, Overload: overload}}
	operators = append(operators, o)
	return o
}

// one calls the operator for its one tensor.
func (o *operator) one(args ...ctorch.Arg) *Tensor {
	h, msg := o.Call1(args)
	if msg != "" {
		o.fail(msg, args)
	}
	return wrap(h)
}

// void calls the operator for its effect.
func (o *operator) void(args ...ctorch.Arg) {
	if msg := o.Call0(args); msg != "" {
		o.fail(msg, args)
	}
}

// in calls an in-place operator and returns the tensor it changed.
func (o *operator) in(t *Tensor, args ...ctorch.Arg) *Tensor {
	o.void(args...)
	return t
}

// two calls the operator for a pair.
func (o *operator) two(args ...ctorch.Arg) (a, b *Tensor) {
	l := o.many(2, args...)
	return l[0], l[1]
}

// many calls the operator for at most limit tensors.
func (o *operator) many(limit int, args ...ctorch.Arg) []*Tensor {
	handles, msg := o.Call(limit, args)
	if msg != "" {
		o.fail(msg, args)
	}
	out := make([]*Tensor, len(handles))
	for i, h := range handles {
		out[i] = wrap(h)
	}
	return out
}

// number calls the operator for a number or a bool.
func (o *operator) number(args ...ctorch.Arg) float64 {
	v, msg := o.CallFloat(args)
	if msg != "" {
		o.fail(msg, args)
	}
	return v
}

// fail panics with the operator, its arguments and the message.
func (o *operator) fail(msg string, args []ctorch.Arg) {
	name := o.Name
	if o.Overload != "" {
		name += "." + o.Overload
	}
	panic(&Error{Op: name, Args: describe(args), Message: firstLine(msg)})
}

// describe writes arguments as "float32[2 3], 1, [0 1]"; a long list is cut.
func describe(args []ctorch.Arg) string {
	words := make([]string, len(args))
	for i, a := range args {
		switch v := a.Value().(type) {
		case ctorch.Handle:
			words[i] = (&Tensor{h: v}).String()
		case []ctorch.Handle:
			words[i] = describeList(v)
		default:
			words[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(words, ", ")
}

func describeList(handles []ctorch.Handle) string {
	const shown = 4
	var words []string
	for i, h := range handles {
		if i == shown {
			words = append(words, fmt.Sprintf("... %d more", len(handles)-shown))
			break
		}
		if h == 0 {
			words = append(words, "none")
		} else {
			words = append(words, (&Tensor{h: h}).String())
		}
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// The makers of arguments, short so that a wrapper stays one line.
func tn(t *Tensor) ctorch.Arg        { return ctorch.Tensor(t.handle()) }
func in(i int) ctorch.Arg            { return ctorch.Int(int64(i)) }
func i64(i int64) ctorch.Arg         { return ctorch.Int(i) }
func fl(v float64) ctorch.Arg        { return ctorch.Double(v) }
func sc(v float64) ctorch.Arg        { return ctorch.Scalar(v) }
func bl(b bool) ctorch.Arg           { return ctorch.Bool(b) }
func dt(d DType) ctorch.Arg          { return ctorch.Int(int64(d)) }
func li(v []int64) ctorch.Arg        { return ctorch.Ints(v) }
func none() ctorch.Arg               { return ctorch.None() }
func str(s string) ctorch.Arg        { return ctorch.String(s) }
func tl(ts []*Tensor) ctorch.Arg     { return ctorch.Tensors(handles(ts)) }
func index(ts ...*Tensor) ctorch.Arg { return ctorch.OptTensors(handles(ts)) }

// bound is a clamp's limit; an infinite one is absent.
func bound(v float64) ctorch.Arg {
	if math.IsInf(v, 0) {
		return none()
	}
	return sc(v)
}

// dims is a list of dimensions.
func dims(d []int) ctorch.Arg {
	l := make([]int64, len(d))
	for i, x := range d {
		l[i] = int64(x)
	}
	return li(l)
}

func handles(ts []*Tensor) []int64 {
	l := make([]int64, len(ts))
	for i, t := range ts {
		l[i] = int64(t.handle())
	}
	return l
}
