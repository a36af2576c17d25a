package model

import (
	"math"

	"github.com/memopd/memopd-bench/torch"
)

// ropeTable holds the cosines and sines of rotary positions (RoFormer, arXiv
// 2104.09864) in Hugging Face's half-rotation form, float32 at each step as
// there, so that long positions agree.
type ropeTable struct {
	half     int
	inverse  []float32 // E/2 inverse frequencies
	cos, sin []float32 // (positions so far, E/2)
}

func newRopeTable(c *Config) *ropeTable {
	t := &ropeTable{half: c.HeadDim / 2}
	for i := range t.half {
		exponent := float32(2*i) / float32(c.HeadDim)
		t.inverse = append(t.inverse, 1/float32(math.Pow(c.RopeTheta, float64(exponent))))
	}
	c.RopeScaling.scale(t.inverse)
	return t
}

// grow makes the table reach position last.
func (t *ropeTable) grow(last int) {
	for p := len(t.cos) / t.half; p <= last; p++ {
		for _, f := range t.inverse {
			angle := float64(float32(p) * f)
			t.cos = append(t.cos, float32(math.Cos(angle)))
			t.sin = append(t.sin, float32(math.Sin(angle)))
		}
	}
}

// rotation is what rotate needs for N tokens.
type rotation struct {
	cos, sin *torch.Tensor // (N, 1, E); the first half of sin is negated
}

// at returns the rotation of the given positions.
func (t *ropeTable) at(positions []int32) rotation {
	width := 2 * t.half
	cos, sin := make([]float32, len(positions)*width), make([]float32, len(positions)*width)
	for i, p := range positions {
		t.grow(int(p))
		from := int(p) * t.half
		row := cos[i*width : (i+1)*width]
		copy(row, t.cos[from:from+t.half])
		copy(row[t.half:], t.cos[from:from+t.half])
		row = sin[i*width : (i+1)*width]
		copy(row[t.half:], t.sin[from:from+t.half])
		for j, v := range t.sin[from : from+t.half] {
			row[j] = -v
		}
	}
	n := int64(len(positions))
	return rotation{torch.FromFloat32(cos, n, 1, int64(width)), torch.FromFloat32(sin, n, 1, int64(width))}
}

// rotate turns x (N, heads, E) by its positions: x cos + swap(x) sin, where swap
// exchanges the halves of a head.
func (r rotation) rotate(x *torch.Tensor) *torch.Tensor {
	halves := x.Chunk(2, -1)
	swapped := torch.Cat([]*torch.Tensor{halves[1], halves[0]}, -1)
	return x.Mul(r.cos).Addcmul_(swapped, r.sin, 1)
}
