package model

import (
	"math"
	"strings"

	"github.com/memopd/memopd-bench/torch"
)

// layoutTensors holds a layout's index tensors, made once for all layers.
type layoutTensors struct {
	back   *torch.Tensor // (N)
	groups []groupTensors
}

// groupTensors is a group's part of layoutTensors.
type groupTensors struct {
	rows          int64
	queries, keys *torch.Tensor // (R*C), (R*(P+C)); keys is nil where it would equal queries
	mask          *torch.Tensor // (1 or R, 1, C, P+C); nil where the fused operator needs none
	causal        bool          // no prefix: the mask is the plain causal one
}

func (d *Decoder) layoutTensors(l *layout) *layoutTensors {
	t := &layoutTensors{back: d.ints(l.back)}
	for i := range l.groups {
		g := &l.groups[i]
		gt := groupTensors{rows: int64(g.rows), queries: d.ints(g.queries), causal: g.prefix == 0}
		if g.prefix > 0 {
			gt.keys = d.ints(g.keys)
		}
		if !gt.causal || !fusedAttention {
			values, rows := g.mask()
			gt.mask = d.onDevice(torch.FromFloat32(values, int64(rows), 1, int64(g.own), int64(g.prefix+g.own)))
			if fusedAttention {
				gt.mask = gt.mask.To(d.compute())
			}
		}
		t.groups = append(t.groups, gt)
	}
	return t
}

// attention gathers the group's rows from q (N, H, E), k and v (N, K, E) and
// returns their attention outputs (R, C, H, E). Padded places hold finite
// values that nothing reads.
func (g *groupTensors) attention(q, k, v *torch.Tensor) *torch.Tensor {
	keys := g.keys
	if keys == nil {
		keys = g.queries
	}
	heads := q.Dim(1)
	q = g.gather(q, g.queries, 1)
	k = g.gather(k, keys, heads/k.Dim(1))
	v = g.gather(v, keys, heads/v.Dim(1))
	var out *torch.Tensor
	switch {
	case !fusedAttention:
		out = composedAttention(q, k, v, g.mask)
	case g.causal:
		out = torch.ScaledDotProductAttention(q, k, v, nil, true)
	default:
		out = torch.ScaledDotProductAttention(q, k, v, g.mask, false)
	}
	return out.Transpose(1, 2)
}

// fusedAttention tells whether libtorch has an attention operator of its own, as it has from 2.0.
var fusedAttention = !strings.HasPrefix(torch.Version(), "1.")

// composedAttention is softmax(q k' / sqrt(E) + mask) v over (R, H, places, E),
// with the mask (1 or R, 1, C, P+C) added in place.
func composedAttention(q, k, v, mask *torch.Tensor) *torch.Tensor {
	rows, heads, size := q.Dim(0), q.Dim(1), q.Dim(3)
	flat := func(x *torch.Tensor) *torch.Tensor { return x.Reshape(rows*heads, -1, size) }
	scores := flat(q.MulScalar(1 / math.Sqrt(float64(size)))).Bmm(flat(k).Transpose(1, 2)).To(torch.Float32)
	own, keys := scores.Dim(1), scores.Dim(2)
	weights := scores.View(rows, heads, own, keys).Add_(mask, 1).Softmax(-1).To(v.DType())
	return weights.View(rows*heads, own, keys).Bmm(flat(v)).View(rows, heads, own, size)
}

// gather is rows of x (N, heads, E) as (R, heads*repeat, places, E).
func (g *groupTensors) gather(x, index *torch.Tensor, repeat int64) *torch.Tensor {
	heads, size := x.Dim(1), x.Dim(2)
	x = x.IndexSelect(0, index).View(g.rows, -1, heads, size).Transpose(1, 2)
	if repeat > 1 {
		x = x.RepeatInterleave(repeat, 1)
	}
	return x
}
