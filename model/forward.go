package model

import (
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

var negativeInfinity = float32(math.Inf(-1))

// Hidden returns the final-norm hidden states (A, D) at the prediction
// positions of all actions, ordered by batch, then by Actions, in float32. They
// carry gradients unless the weights are frozen or torch.NoGrad is on; Forward is
// the way to gradients that needs less memory.
//
// Each prefix is computed once. Memory for attention grows with block length
// times (prefix plus block length), never with the square of the sequence. It
// panics with *torch.Error on a sequence that is not well formed, as on any
// misuse of a tensor; torch.Try turns that into an error.
func (d *Decoder) Hidden(batch []*align.Packed) *torch.Tensor {
	l, pick := layActions("hidden", batch)
	return d.run(l, pick, nil)
}

// layActions lays a batch out and lists the flat prediction positions of its actions.
func layActions(op string, batch []*align.Packed) (*layout, []int64) {
	l, starts, err := newLayout(batch)
	if err != nil {
		panic(&torch.Error{Op: op, Message: err.Error()})
	}
	var pick []int64
	for i, p := range batch {
		for _, a := range p.Actions {
			if a.Predict < 0 || a.Predict >= len(p.IDs) {
				panic(&torch.Error{Op: op, Message: fmt.Sprintf("sequence %d (%s): prediction position %d of %d tokens",
					i, p.TrajectoryID, a.Predict, len(p.IDs))})
			}
			pick = append(pick, int64(starts[i]+a.Predict))
		}
	}
	return l, pick
}

// HiddenAll returns the final-norm hidden states of every token of plain causal
// rows, one row after another: (sum of lengths, D).
func (d *Decoder) HiddenAll(rows [][]int32) *torch.Tensor {
	batch := make([]*align.Packed, len(rows))
	for i, ids := range rows {
		batch[i] = causalRow(ids)
	}
	l, _, err := newLayout(batch)
	if err != nil {
		panic(&torch.Error{Op: "hidden_all", Message: err.Error()})
	}
	pick := make([]int64, len(l.ids))
	for i := range pick {
		pick[i] = int64(i)
	}
	return d.run(l, pick, nil)
}

// causalRow is a plain row of ids at positions from 0.
func causalRow(ids []int32) *align.Packed {
	p := &align.Packed{IDs: ids, Positions: make([]int32, len(ids)), PrefixLength: len(ids)}
	for i := range ids {
		p.Positions[i] = int32(i)
	}
	return p
}

// Logits maps hidden states (A, D) to logits (A, V) in float32, V being Vocab.
func (d *Decoder) Logits(hidden *torch.Tensor) *torch.Tensor {
	return d.linear(hidden.To(torch.Float32), d.liveHead().To(torch.Float32), nil)
}

// liveHead is the head's rows of the ids in Vocab.
func (d *Decoder) liveHead() *torch.Tensor {
	if n := int64(d.Vocab()); n < d.head.Dim(0) {
		return d.head.Narrow(0, 0, n)
	}
	return d.head
}

// linear is x (N, in) times weight (out, in) transposed, plus bias.
func (d *Decoder) linear(x, weight, bias *torch.Tensor) *torch.Tensor {
	if d.sampling {
		return x.LinearRows(weight, bias)
	}
	return x.Linear(weight, bias)
}

// feedForward is down(silu(gate(h)) * up(h)) of the normalised x.
func (d *Decoder) feedForward(w *layer, x *torch.Tensor) *torch.Tensor {
	h := d.linear(x.RMSNorm(w.postNorm, d.Config.RMSNormEps), w.gateUp, w.gateUpBias)
	both := h.Chunk(2, -1)
	return d.linear(both[0].SiLU().Mul(both[1]), w.down, w.downBias)
}

// project returns the rotated queries (N, H, E) and keys (N, K, E) and the values (N, K, E).
func (d *Decoder) project(w *layer, x *torch.Tensor, r rotation) (q, k, v *torch.Tensor) {
	c := &d.Config
	heads, kv, size := int64(c.NumAttentionHeads), int64(c.NumKeyValueHeads), int64(c.HeadDim)
	qkv := d.linear(x.RMSNorm(w.inputNorm, c.RMSNormEps), w.qkv, w.qkvBias).View(-1, heads+2*kv, size)
	parts := qkv.SplitSizes([]int64{heads + kv, kv}, 1)
	qk := parts[0]
	if w.qNorm != nil {
		own := qk.SplitSizes([]int64{heads, kv}, 1)
		qk = torch.Cat([]*torch.Tensor{own[0].RMSNorm(w.qNorm, c.RMSNormEps), own[1].RMSNorm(w.kNorm, c.RMSNormEps)}, 1)
	}
	rotated := r.rotate(qk).SplitSizes([]int64{heads, kv}, 1)
	return rotated[0], rotated[1], parts[1]
}

// attend is the attention of layer i, projected back to the residual stream,
// at the tokens that back selects; nil: all, in their order.
func (d *Decoder) attend(w *layer, i int, x *torch.Tensor, p *pass, back *torch.Tensor) *torch.Tensor {
	q, k, v := d.project(w, x, p.rotation)
	if p.cached != nil {
		k, v = p.cached.join(i, k, v)
	}
	c := &d.Config
	width := int64(c.NumAttentionHeads * c.HeadDim)
	outs := make([]*torch.Tensor, len(p.index.groups))
	for j, g := range p.index.groups {
		outs[j] = g.attention(q, k, v).Reshape(-1, width)
	}
	all := outs[0]
	if len(outs) > 1 {
		all = torch.Cat(outs, 0)
	}
	if back != nil {
		all = all.IndexSelect(0, back)
	}
	return d.linear(all, w.out, w.outBias)
}
