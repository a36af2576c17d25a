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
	rows, positions, lengths := make([]int, len(ids)), make([]int32, len(ids)), make([]int64, len(ids))
	longest := 0
	for r, p := range places {
		rows[r], positions[r], lengths[r] = r, int32(p), int64(p+1)
		longest = max(longest, p+1)
	}
	step := decodeInputs{
		cache: c, index: c.index(rows, places), rotation: d.rotation(positions), rows: int64(len(ids)), length: int64(longest),
	}
	if d.attendsRows() {
		step.lengths = lengths
	} else {
		step.mask = d.lengthMask(places, longest)
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
	lengths      []int64       // of the rows, for torch.AttendRows; nil: libtorch's attention
	mask         *torch.Tensor // (rows, 1, 1, length) for the latter; nil where all rows are that long
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
	all := d.onDevice(torch.Arange(int64(length))).Unsqueeze(0)
	hidden := all.Gt(d.ints(last).Unsqueeze(1))
	return d.zeros(d.compute(), hidden.Shape()...).MaskedFill(hidden, math.Inf(-1)).View(int64(len(places)), 1, 1, int64(length))
}

// attendsRows says whether a decode step takes torch.AttendRows.
func (d *Decoder) attendsRows() bool {
	return d.device() == "cpu" && d.compute() == torch.Float32 && torch.AttendsRows(d.Config.HeadDim)
}

// attendCache adds the step's keys and values to the cache and attends to it.
func (d *Decoder) attendCache(w *layer, i int, x *torch.Tensor, step *decodeInputs) *torch.Tensor {
	q, k, v := d.project(w, x, step.rotation)
	step.cache.write(i, step.index, k, v)
	var out *torch.Tensor
	if step.lengths != nil {
		out = q.AttendRows(step.cache.keys[i], step.cache.values[i], step.lengths)
	} else {
		out = step.grouped(i, q)
	}
	return d.linear(out.Reshape(step.rows, -1), w.out, w.outBias)
}

// grouped lets the query heads (rows, H, E) of a key-value head be so many places of
// one query, so that keys and values are read once, where they are.
func (step *decodeInputs) grouped(i int, q *torch.Tensor) *torch.Tensor {
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
