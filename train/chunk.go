package train

import (
	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// chunkedBackward goes over the hidden states of a forward pass in chunks. For each
// it makes the logits, hands f their log distributions (C, V) and the place of the
// chunk, and carries the gradient on the logits that f has put in their place back
// to the head and the hidden states. f says whether there is one. When every chunk
// is through, the gradient of the hidden states goes through the network.
//
// The sum over chunks is what one backward pass over all logits gives; only a
// chunk's logits exist at a time.
func (c Compute) chunkedBackward(d *model.Decoder, f *model.Forward, temperature float64, loss func(start, end int, logDistribution *torch.Tensor) bool) (moved bool) {
	n := int(f.Hidden.Dim(0))
	chunks := c.chunks(n)
	var gradient *torch.Tensor // (A, D), where there are several chunks
	for _, at := range chunks {
		s := torch.NewScope()
		rows := f.Hidden
		if len(chunks) > 1 {
			rows = f.Hidden.Detach().Narrow(0, int64(at[0]), int64(at[1]-at[0])).RequiresGrad_(true)
		}
		logits := d.Logits(rows)
		if loss(at[0], at[1], logSoftmax_(logits, temperature)) {
			moved = true
			logits.BackwardWith(logits.Detach(), false)
			if len(chunks) > 1 {
				if gradient == nil {
					gradient = f.Hidden.Detach().ZerosLike().Keep()
				}
				torch.NoGrad(func() { gradient.Narrow(0, int64(at[0]), int64(at[1]-at[0])).Copy_(rows.Grad()) })
			}
		}
		s.Close()
	}
	if gradient != nil {
		f.Hidden.SetGrad(gradient)
		gradient.Free()
	}
	if moved {
		f.Backward()
	}
	return moved
}

// scoreHidden returns the log-prob of each action's id, and the most probable id,
// from hidden states (A, D), a chunk of logits at a time.
func (c Compute) scoreHidden(d *model.Decoder, hidden *torch.Tensor, ids []int64, temperature float64) (logProbs []float32, top []int64) {
	torch.NoGrad(func() {
		for _, at := range c.chunks(len(ids)) {
			s := torch.NewScope()
			n := int64(at[1] - at[0])
			dist := logSoftmax_(d.Logits(hidden.Narrow(0, int64(at[0]), n)), temperature)
			logProbs = append(logProbs, picked(dist, c.on(torch.FromInt64(ids[at[0]:at[1]], n))).Float32s()...)
			top = append(top, dist.Argmax(-1, false).Int64s()...)
			s.Close()
		}
	})
	return logProbs, top
}

// score is scoreHidden of rows.
func (c Compute) score(d *model.Decoder, rows []*align.Packed, temperature float64) (logProbs []float32, top []int64) {
	torch.NoGrad(func() {
		s := torch.NewScope()
		defer s.Close()
		logProbs, top = c.scoreHidden(d, d.Hidden(rows), actionIDs(rows), temperature)
	})
	return logProbs, top
}
