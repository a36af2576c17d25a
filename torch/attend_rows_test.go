package torch

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

// attendCase is queries, and keys and values with more rows and places than are used.
type attendCase struct {
	q, keys, values *Tensor
	lengths         []int64
}

// newAttendCase has not-a-number wherever nothing may look.
func newAttendCase(heads, kv, size int64, lengths ...int64) attendCase {
	rows, places := int64(len(lengths)), slices.Max(lengths)+5
	wide := Randn(rows, heads+2, size) // rows further apart than their heads
	c := attendCase{wide.Narrow(1, 0, heads), Randn(rows+1, places, kv*size), Randn(rows+1, places, kv*size), lengths}
	for r, n := range append(slices.Clone(lengths), 0) {
		for _, t := range []*Tensor{c.keys, c.values} {
			t.Select(0, int64(r)).Narrow(0, n, places-n).Copy_(Full(Float32, math.NaN(), 1).Expand(places-n, kv*size))
		}
	}
	return c
}

// want is row r's attention by libtorch's products in float64, (H, E).
func (c *attendCase) want(r int64) []float64 {
	heads, size, kv := c.q.Dim(1), c.q.Dim(2), c.keys.Dim(2)/c.q.Dim(2)
	part := func(t *Tensor) *Tensor { // (H, length, E)
		own := t.Select(0, r).Narrow(0, 0, c.lengths[r]).View(-1, kv, size).Transpose(0, 1)
		return own.RepeatInterleave(heads/kv, 0).To(Float64)
	}
	q := c.q.Select(0, r).To(Float64).Unsqueeze(1)
	scores := q.Bmm(part(c.keys).Transpose(1, 2)).MulScalar(1 / math.Sqrt(float64(size)))
	return scores.Softmax(-1).Bmm(part(c.values)).Float64s()
}

// TestAttendRows holds the attention of decoding to float64, for each vector length that the processor has.
func TestAttendRows(t *testing.T) {
	for _, lanes := range []int{16, 8} {
		for _, c := range []struct {
			heads, kv, size int64
			lengths         []int64
		}{
			{9, 3, 64, []int64{1, 40, 16, 17, 300}}, {14, 2, 128, []int64{33, 2}}, {4, 4, 32, []int64{7, 64, 63}}, {8, 1, 48, []int64{5}}, {3, 3, 16, []int64{20}},
			{2, 1, 8, []int64{9, 31}}, {6, 2, 80, []int64{100}},
		} {
			if !ctorch.Attends(c.size, lanes) {
				t.Logf("no kernel with vectors of %d for heads of %d", lanes, c.size)
				continue
			}
			t.Run(fmt.Sprintf("%d lanes, %v", lanes, c), func(t *testing.T) {
				s := NewScope()
				defer s.Close()
				x := newAttendCase(c.heads, c.kv, c.size, c.lengths...)
				got := x.q.attendRows(x.keys, x.values, x.lengths, lanes)
				for r := range c.lengths {
					have := got.Select(0, int64(r)).To(Float64).Float64s()
					for i, want := range x.want(int64(r)) {
						if e := math.Abs(have[i] - want); !(e < 2e-6) {
							t.Fatalf("row %d: element %d is %g, want %g", r, i, have[i], want)
						}
					}
				}
			})
		}
	}
}

// TestAttendRowsAlone holds that a row's result is the same to the bit whatever stands beside it.
func TestAttendRowsAlone(t *testing.T) {
	s := NewScope()
	defer s.Close()
	if !AttendsRows(64) {
		t.Skip("this processor has no kernel for it")
	}
	x := newAttendCase(9, 3, 64, 3, 130, 41, 16, 77)
	all := x.q.AttendRows(x.keys, x.values, x.lengths)
	for r := range x.lengths {
		one := func(t *Tensor) *Tensor { return t.Narrow(0, int64(r), 1) }
		alone := one(x.q).AttendRows(one(x.keys), one(x.values), x.lengths[r:r+1])
		if !slices.Equal(alone.Float32s(), one(all).Float32s()) {
			t.Errorf("row %d: other results than among all", r)
		}
	}
}

// TestAttendRowsThreads holds that threads share rows and heads out without changing anything.
func TestAttendRowsThreads(t *testing.T) {
	s := NewScope()
	defer s.Close()
	if !AttendsRows(32) {
		t.Skip("this processor has no kernel for it")
	}
	x := newAttendCase(6, 3, 32, 50, 9, 130)
	one := x.q.AttendRows(x.keys, x.values, x.lengths).Float32s()
	before := NumThreads()
	defer SetNumThreads(before)
	for _, n := range []int{2, 4, 7} {
		SetNumThreads(n)
		if got := x.q.AttendRows(x.keys, x.values, x.lengths).Float32s(); !slices.Equal(got, one) {
			t.Errorf("%d threads: other results than one", n)
		}
	}
}

func TestAttendRowsRefuses(t *testing.T) {
	s := NewScope()
	defer s.Close()
	if !AttendsRows(32) {
		t.Skip("this processor has no kernel for it")
	}
	if AttendsRows(20) {
		t.Error("a kernel for heads of 20")
	}
	q, keys := Randn(2, 4, 32), Randn(2, 10, 64)
	for name, c := range map[string]struct {
		q, keys *Tensor
		lengths []int64
		want    string
	}{
		"lengths":     {q, keys, []int64{1}, "1 lengths for 2 rows"},
		"length 0":    {q, keys, []int64{1, 0}, "a length of 0 with 10 places"},
		"long":        {q, keys, []int64{1, 11}, "a length of 11 with 10 places"},
		"few rows":    {Randn(3, 4, 32), keys, []int64{1, 1, 1}, "with keys"},
		"groups":      {Randn(2, 3, 32), keys, []int64{1, 1}, "with keys"},
		"width":       {q, Randn(2, 10, 70), []int64{1, 1}, "with keys"},
		"size":        {Randn(2, 4, 20), Randn(2, 10, 40), []int64{1, 1}, "no kernel for heads of 20"},
		"type":        {q.To(BFloat16), keys, []int64{1, 1}, "float32"},
		"dimensions":  {Randn(2, 128), keys, []int64{1, 1}, "attend takes"},
		"lying apart": {q.Transpose(0, 1).Contiguous().Transpose(0, 1), keys, []int64{1, 1}, "that lie so"},
	} {
		err := Try(func() error { c.q.AttendRows(c.keys, c.keys, c.lengths); return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
