package model

import (
	"math"
	"strings"

	"github.com/memopd/memopd-bench/torch"
)

// layoutTensors holds a layout's index tensors, made once for all layers.
type layoutTensors struct {
	back   *torch.Tensor // (N); nil where the groups' outputs are in order
	groups []groupTensors
}

// groupTensors is a group's part of layoutTensors.
type groupTensors struct {
	rows          int64
	queries, keys *torch.Tensor // (R*C), (R*(P+C)); nil where it would be 0 to N-1, or equal to queries
	mask          *torch.Tensor // (1 or R, 1, C, P+C); nil where the fused operator needs none
	causal        bool          // no prefix: the mask is the plain causal one
}

func (d *Decoder) layoutTensors(l *layout) *layoutTensors {
	t := &layoutTensors{}
	for i := range l.groups {
		g := &l.groups[i]
		gt := groupTensors{rows: int64(g.rows), queries: d.order(l, g.queries), causal: g.prefix == 0 && g.visible == nil}
		if g.prefix > 0 || l.past > 0 {
			gt.keys = d.ints(g.keys)
		}
		if !gt.causal || !fusedAttention {
			gt.mask = d.mask(g)
		}
		t.groups = append(t.groups, gt)
	}
	if len(t.groups) > 1 || t.groups[0].queries != nil {
		t.back = d.ints(l.back)
	}
	return t
}

// order is a group's queries on the device, nil where they are all flat tokens in their
// order: rows of one length need no gathering.
func (d *Decoder) order(l *layout, index []int64) *torch.Tensor {
	if len(index) != len(l.ids) {
		return d.ints(index)
	}
	for i, v := range index {
		if v != int64(i) {
			return d.ints(index)
		}
	}
	return nil
}

// mask is the additive mask of a group, (1 or R, 1, C, P+C): 0 where a query sees
// a key, minus infinity elsewhere. It has one row, or R where prefixes differ.
// Padded queries see what the row's last token sees, or more of its copies, and
// no real query sees a padded key. It is made where it is used, and in the type
// that the attention takes.
func (d *Decoder) mask(g *group) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	if g.visible != nil {
		return s.Keep(d.onDevice(denseMask(g.visible).To(d.maskType())))
	}
	places := d.onDevice(torch.Arange(int64(g.prefix + g.own)))
	own := d.onDevice(torch.ArangeStep(int64(g.prefix), int64(g.prefix+g.own), 1))
	hidden := places.Unsqueeze(0).Gt(own.Unsqueeze(1)).Unsqueeze(0) // (1, C, P+C): later tokens of the row
	if !g.uniform() {
		lengths := d.ints(g.prefixLengths).Unsqueeze(1)
		unused := places.Unsqueeze(0).Ge(lengths).LogicalAnd(places.LtScalar(float64(g.prefix)).Unsqueeze(0)) // (R, P+C)
		hidden = hidden.LogicalOr(unused.Unsqueeze(1))
	}
	mask := d.zeros(d.maskType(), hidden.Shape()...).MaskedFill(hidden, math.Inf(-1))
	return s.Keep(mask.Unsqueeze(1))
}

// maskType is the type that the attention takes its mask in.
func (d *Decoder) maskType() torch.DType {
	if fusedAttention {
		return d.compute()
	}
	return torch.Float32
}

// attention gathers the group's rows from q (N, H, E), k and v (N, K, E) and
// returns their attention outputs (R, C, H, E). Padded places hold finite
// values that nothing reads.
func (g *groupTensors) attention(q, k, v *torch.Tensor) *torch.Tensor {
	keys := g.keys
	if keys == nil {
		keys = g.queries
	}
	q, k, v = g.gather(q, g.queries), g.gather(k, keys), g.gather(v, keys)
	if !fusedAttention {
		return composedAttention(q, k, v, g.mask)
	}
	// On a GPU no fused kernel takes both a mask and grouped heads.
	if repeat := q.Dim(1) / k.Dim(1); repeat > 1 && !g.causal && q.Device() != "cpu" {
		k, v = k.RepeatInterleave(repeat, 1), v.RepeatInterleave(repeat, 1)
	}
	return torch.GroupedAttention(q, k, v, g.mask, g.causal).Transpose(1, 2)
}

// fusedAttention tells whether libtorch has an attention operator of its own, as it has from 2.0.
var fusedAttention = !strings.HasPrefix(torch.Version(), "1.")

// composedAttention is softmax(q k' / sqrt(E) + mask) v, (R, C, H, E), of q (R, H, C, E)
// and k, v (R, K, S, E), with the mask (1 or R, 1, C, S) added in place. The query
// heads that share a key head stand in one product, so that no key is repeated.
func composedAttention(q, k, v, mask *torch.Tensor) *torch.Tensor {
	rows, heads, own, size := q.Dim(0), q.Dim(1), q.Dim(2), q.Dim(3)
	kv, keys := k.Dim(1), k.Dim(2)
	repeat := heads / kv
	flat := func(x *torch.Tensor) *torch.Tensor { return x.Reshape(rows*kv, -1, size) }
	scores := flat(q.MulScalar(1 / math.Sqrt(float64(size)))).Bmm(flat(k).Transpose(1, 2)).To(torch.Float32)
	weights := scores.View(rows, kv, repeat, own, keys).Add_(mask.Unsqueeze(1), 1).Softmax(-1).To(v.DType())
	return weights.View(rows*kv, repeat*own, keys).Bmm(flat(v)).View(rows, heads, own, size).Transpose(1, 2)
}

// gather is rows of x (N, heads, E) as (R, heads, places, E).
func (g *groupTensors) gather(x, index *torch.Tensor) *torch.Tensor {
	if index != nil {
		x = x.IndexSelect(0, index)
	}
	return x.View(g.rows, -1, x.Dim(1), x.Dim(2)).Transpose(1, 2)
}
