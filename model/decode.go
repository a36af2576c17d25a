package model

import (
	"math"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// prefill runs whole contexts, stores their keys and values in the given cache
// rows and returns the logits after each context's last token, row-major (rows, V).
func (d *Decoder) prefill(c *cache, contexts [][]int32, rows []int) []float32 {
	s := torch.NewScope()
	defer s.Close()
	batch := make([]*align.Packed, len(contexts))
	var pick []int64
	var slots, places []int
	for i, ids := range contexts {
		batch[i] = causalRow(ids)
		for place := range ids {
			slots, places = append(slots, rows[i]), append(places, place)
		}
		pick = append(pick, int64(len(slots)-1))
	}
	l, _, err := newLayout(batch)
	if err != nil {
		panic(&torch.Error{Op: "prefill", Message: err.Error()})
	}
	index := c.index(slots, places)
	return d.Logits(d.run(l, pick, func(layer int, k, v *torch.Tensor) { c.write(layer, index, k, v) })).Float32s()
}

// decodeStep runs one token of each of the first len(ids) cache rows, row r's at
// position places[r], and returns the logits, row-major (rows, V).
func (d *Decoder) decodeStep(c *cache, ids []int64, places []int) []float32 {
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
		mask: lengthMask(places, longest), blocks: headBlocks(&d.Config), rows: int64(len(ids)), length: int64(longest),
	}
	x := torch.Embedding(d.embed, torch.FromInt64(ids)) // (rows, D)
	for i := range d.layers {
		x = x.Add(d.attendCache(i, x, &step))
		x = x.Add(d.layers[i].feedForward(x, d.Config.RMSNormEps))
	}
	return d.Logits(x.RMSNorm(d.norm, d.Config.RMSNormEps)).Float32s()
}

// decodeInputs is what all layers of a decode step share.
type decodeInputs struct {
	cache        *cache
	index        *torch.Tensor
	rotation     rotation
	mask         *torch.Tensor // (rows, 1, length)
	blocks       *torch.Tensor // (H, K, 1)
	rows, length int64
}

// lengthMask is 0 up to each row's place and minus infinity after it.
func lengthMask(places []int, length int) *torch.Tensor {
	values := make([]float32, len(places)*length)
	for r, p := range places {
		for k := p + 1; k < length; k++ {
			values[r*length+k] = negativeInfinity
		}
	}
	return torch.FromFloat32(values, int64(len(places)), 1, int64(length))
}

// headBlocks is 1 where a query head uses a key-value head.
func headBlocks(c *Config) *torch.Tensor {
	heads, kv := c.NumAttentionHeads, c.NumKeyValueHeads
	values := make([]float32, heads*kv)
	for h := range heads {
		values[h*kv+h*kv/heads] = 1
	}
	return torch.FromFloat32(values, int64(heads), int64(kv), 1)
}

// attendCache adds the step's keys and values to the cache and attends to it.
//
// One small matrix product a row and head would cost more in calls than in
// arithmetic. So a row's queries become one block-diagonal matrix (H, K*E) that
// meets all its key-value heads at once, and of the result the blocks are taken.
func (d *Decoder) attendCache(i int, x *torch.Tensor, step *decodeInputs) *torch.Tensor {
	w, c := &d.layers[i], step.cache
	q, k, v := d.project(w, x, step.rotation)
	c.write(i, step.index, k, v)
	heads, kv, size := q.Dim(1), k.Dim(1), q.Dim(2)
	q = q.MulScalar(1/math.Sqrt(float64(size))).Unsqueeze(2).Mul(step.blocks).View(step.rows, heads, kv*size)
	keys := c.keys[i].Narrow(0, 0, step.rows).Narrow(1, 0, step.length)
	values := c.values[i].Narrow(0, 0, step.rows).Narrow(1, 0, step.length)
	weights := q.Bmm(keys.Transpose(1, 2)).Add_(step.mask, 1).Softmax(-1) // (rows, H, length)
	out := weights.Bmm(values).View(step.rows, heads, kv, size).Mul(step.blocks)
	return out.SumDim([]int{2}, false).View(step.rows, -1).Linear(w.out, w.outBias)
}
