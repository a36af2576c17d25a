package model

import (
	"math"

	"github.com/memopd/memopd-bench/torch"
)

// decodeStep runs one token of each of the first len(ids) cache rows, row r's at
// position places[r], and returns the logits (rows, V).
func (d *Decoder) decodeStep(c *cache, ids []int64, places []int) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	rows, positions := make([]int, len(ids)), make([]int32, len(ids))
	longest := 0
	for r, p := range places {
		rows[r], positions[r] = r, int32(p)
		longest = max(longest, p+1)
	}
	step := decodeInputs{
		cache: c, index: c.index(rows, places), rotation: d.rotation(positions),
		mask: d.lengthMask(places, longest), rows: int64(len(ids)), length: int64(longest),
	}
	if !d.fusedDecoding() {
		step.blocks = d.headBlocks()
	}
	x := d.cast(torch.Embedding(d.embed, d.ints(ids))) // (rows, D)
	for i := range d.layers {
		d.decodeLayer(i, x, &step)
	}
	return s.Keep(d.Logits(d.finalNorm(x)))
}

// decodeLayer adds what layer i makes of x (rows, D) to it. Each half frees what it
// made, so that memory still in the processor's cache is used again.
func (d *Decoder) decodeLayer(i int, x *torch.Tensor, step *decodeInputs) {
	w := d.layer(i)
	add := func(f func() *torch.Tensor) {
		s := torch.NewScope()
		defer s.Close()
		x.Add_(f(), 1)
	}
	add(func() *torch.Tensor { return d.attendCache(w, i, x, step) })
	add(func() *torch.Tensor { return d.feedForward(w, x) })
}

// decodeInputs is what all layers of a decode step share.
type decodeInputs struct {
	cache        *cache
	index        *torch.Tensor
	rotation     rotation
	mask         *torch.Tensor // (rows, 1, 1, length); nil where all rows are that long
	blocks       *torch.Tensor // (H, K, 1), for composed attention; nil: fused
	rows, length int64
}

// lengthMask is 0 up to each row's place and minus infinity after it; nil where
// nothing is hidden.
func (d *Decoder) lengthMask(places []int, length int) *torch.Tensor {
	last, same := make([]int64, len(places)), true
	for r, p := range places {
		last[r] = int64(p)
		same = same && p == length-1
	}
	if same {
		return nil
	}
	kind := torch.Float32
	if d.fusedDecoding() {
		kind = d.compute()
	}
	all := d.onDevice(torch.Arange(int64(length))).Unsqueeze(0)
	hidden := all.Gt(d.ints(last).Unsqueeze(1))
	return d.zeros(kind, hidden.Shape()...).MaskedFill(hidden, math.Inf(-1)).View(int64(len(places)), 1, 1, int64(length))
}

// headBlocks is 1 where a query head uses a key-value head.
func (d *Decoder) headBlocks() *torch.Tensor {
	heads, kv := d.Config.NumAttentionHeads, d.Config.NumKeyValueHeads
	values := make([]float32, heads*kv)
	for h := range heads {
		values[h*kv+h*kv/heads] = 1
	}
	return d.onDevice(torch.FromFloat32(values, int64(heads), int64(kv), 1).To(d.compute()))
}

// fusedDecoding says whether a decode step takes libtorch's attention operator. On the
// CPU that is two small products a row and key-value head, dearer than composed's two
// larger ones a row while there are few such heads; in shorter floats composed rounds more.
func (d *Decoder) fusedDecoding() bool {
	return fusedAttention && (d.device() != "cpu" || d.compute() != torch.Float32 || d.Config.NumKeyValueHeads > composedHeadsMax)
}

// composed multiplies all key-value heads for each query head.
const composedHeadsMax = 3

// attendCache adds the step's keys and values to the cache and attends to it.
func (d *Decoder) attendCache(w *layer, i int, x *torch.Tensor, step *decodeInputs) *torch.Tensor {
	q, k, v := d.project(w, x, step.rotation)
	step.cache.write(i, step.index, k, v)
	var out *torch.Tensor
	if step.blocks == nil {
		out = step.fused(i, q)
	} else {
		out = step.composed(i, q)
	}
	return d.linear(out.Reshape(step.rows, -1), w.out, w.outBias)
}

// fused lets the query heads (rows, H, E) of a key-value head be so many places of
// one query, so that keys and values are read once, where they are.
func (step *decodeInputs) fused(i int, q *torch.Tensor) *torch.Tensor {
	k, v := step.cache.read(i, step.rows, step.length)
	kv := k.Dim(2)
	repeat := q.Dim(1) / kv
	mask := step.mask
	if mask != nil {
		mask = mask.Expand(step.rows, 1, repeat, step.length)
	}
	q = q.Reshape(step.rows, kv, repeat, q.Dim(2))
	return torch.ScaledDotProductAttention(q, k.Transpose(1, 2), v.Transpose(1, 2), mask, false)
}

// composed is fused without an operator for it.
//
// One small matrix product a row and head would cost more in calls than in
// arithmetic. So a row's queries become one block-diagonal matrix (H, K*E) that
// meets all its key-value heads at once, and of the result the blocks are taken.
func (step *decodeInputs) composed(i int, q *torch.Tensor) *torch.Tensor {
	k, v := step.cache.read(i, step.rows, step.length)
	heads, kv, size := q.Dim(1), k.Dim(2), q.Dim(2)
	keys, values := k.View(step.rows, step.length, kv*size), v.View(step.rows, step.length, kv*size)
	q = q.MulScalar(1/math.Sqrt(float64(size))).Unsqueeze(2).Mul(step.blocks).View(step.rows, heads, kv*size)
	scores := q.Bmm(keys.Transpose(1, 2)).To(torch.Float32) // (rows, H, length)
	if step.mask != nil {
		scores.Add_(step.mask.Squeeze(1), 1)
	}
	out := scores.Softmax(-1).To(values.DType()).Bmm(values).View(step.rows, heads, kv, size).Mul(step.blocks)
	return out.SumDim([]int{2}, false)
}
