package torch

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestLinearRows holds the products of rows.cc to float64 ones, for each vector length that the processor has.
func TestLinearRows(t *testing.T) {
	s := NewScope()
	defer s.Close()
	for _, lanes := range []int{16, 8} {
		if Randn(1, 16).linearRows(Randn(48, 16), nil, lanes) == nil {
			t.Logf("this processor has no vectors of %d", lanes)
			continue
		}
		for _, c := range []struct{ rows, in, out int64 }{{1, 16, 48}, {5, 576, 100}, {16, 64, 96}, {17, 32, 145}, {40, 48, 50}, {64, 160, 192}, {300, 32, 61}} {
			for _, biased := range []bool{false, true} {
				x, w, bias := Randn(c.rows, c.in), Randn(c.out, c.in), Randn(c.out)
				if !biased {
					bias = nil
				}
				name := fmt.Sprintf("%d lanes, %v, bias %t", lanes, c, biased)
				checkRows(t, name, x, w, bias, x.linearRows(w, bias, lanes))
			}
		}
	}
}

func checkRows(t *testing.T, name string, x, w, bias, got *Tensor) {
	t.Helper()
	wide := func(t *Tensor) *Tensor {
		if t == nil {
			return nil
		}
		return t.To(Float64)
	}
	want, have := wide(x).Linear(wide(w), wide(bias)), got.Float64s()
	bound := math.Sqrt(float64(x.Dim(1))) * 5e-6 // one float32 sum from end to end
	for i, v := range want.Float64s() {
		if e := math.Abs(v - have[i]); !(e < bound) {
			t.Fatalf("%s: element %d is %g, want %g", name, i, have[i], v)
		}
	}
}

// TestLinearRowsAlone holds that a row's result is the same to the bit whatever stands beside it, and wherever its row lies.
func TestLinearRowsAlone(t *testing.T) {
	s := NewScope()
	defer s.Close()
	x, w := Randn(150, 96), Randn(100, 96)
	all := x.linearRows(w, nil, 0)
	if all == nil {
		t.Skip("this processor has no kernel for it")
	}
	wide := Cat([]*Tensor{x, x}, 1).Narrow(1, 0, 96) // rows further apart
	for _, n := range []int64{1, 7, 16, 33, 64, 100} {
		for _, source := range []*Tensor{x, wide} {
			part := source.Narrow(0, 150-n, n).linearRows(w, nil, 0)
			if !slices.Equal(part.Float32s(), all.Narrow(0, 150-n, n).Float32s()) {
				t.Errorf("%d rows of 150: other results than among all", n)
			}
		}
	}
}

// TestLinearRowsElse holds that what the kernels do not take goes to Linear.
func TestLinearRowsElse(t *testing.T) {
	s := NewScope()
	defer s.Close()
	x, w := Randn(5, 64), Randn(64, 64)
	for name, c := range map[string][3]*Tensor{
		"odd width":         {Randn(5, 30), Randn(64, 30), nil},
		"few outputs":       {x, Randn(47, 64), nil},
		"other type":        {x.To(BFloat16), w.To(BFloat16), nil},
		"transposed weight": {x, w.Transpose(0, 1), nil},
		"transposed rows":   {Randn(64, 5).Transpose(0, 1), w, nil},
		"no rows":           {x.Narrow(0, 0, 0), w, nil},
		"gradient":          {x, Randn(64, 64).RequiresGrad_(true), nil},
		"three dimensions":  {Randn(2, 3, 64), w, nil},
	} {
		if y := c[0].linearRows(c[1], c[2], 0); y != nil {
			t.Errorf("%s: taken", name)
		}
		if got, want := c[0].LinearRows(c[1], c[2]), c[0].Linear(c[1], c[2]); !slices.Equal(got.Float32s(), want.Float32s()) {
			t.Errorf("%s: not Linear's result", name)
		}
	}
	if e := Try(func() error { x.LinearRows(Randn(64, 32), nil); return nil }); e == nil {
		t.Error("unequal widths: no error")
	}
}
