package train

import (
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// ClippedActions are the sampled tokens of a forward pass, in its order of actions,
// and what PPO's clipped surrogate takes of each.
type ClippedActions struct {
	IDs                   []int64
	Behaviour, Advantages []float32
	Clip                  float64
	Total                 float64 // the summed loss is divided by it
}

// BackwardClipped takes ClippedSurrogate on a forward pass of d, in the placement
// Trained, at temperature 1, and adds its gradient to those of the weights. It
// returns the loss, summed and divided. It is the actor's part of PPO's update alone:
// no teacher, entropy or critic.
func (c Compute) BackwardClipped(d *model.Decoder, f *model.Forward, a ClippedActions) (loss float64) {
	s := torch.NewScope()
	defer s.Close()
	n := int64(len(a.IDs))
	ids := c.on(torch.FromInt64(a.IDs, n))
	behaviour, advantages := c.on(torch.FromFloat32(a.Behaviour, n)), c.on(torch.FromFloat32(a.Advantages, n))
	c.chunkedBackward(d, f, 1, func(start, end int, logDistribution *torch.Tensor) bool {
		chunk := func(t *torch.Tensor) *torch.Tensor { return t.Narrow(0, int64(start), int64(end-start)) }
		logProbs := picked(logDistribution, chunk(ids)).RequiresGrad_(true)
		surrogate := ClippedSurrogate(logProbs, chunk(behaviour), chunk(advantages), a.Clip)
		mean := surrogate.Loss.DivScalar(a.Total)
		mean.Backward()
		loss += mean.Item()
		t := terms{IDs: chunk(ids), Picked: logProbs.Grad()}
		t.gradient(logDistribution, 1)
		return true
	})
	return loss
}
