package train

import (
	"fmt"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// ActorLoss is an actor's loss over A actions with all that it compares with given
// as numbers, for audits that take the gradient of one loss in several layouts:
//
//	(L_clip - Entropy * sum of H + KL * sum of KL(student || teacher)) / Total
type ActorLoss struct {
	Temperature float64
	Total       float64 // what the sums are divided by

	// Behaviour (A) and Advantages (A) are those of ClippedSurrogate; nil: without L_clip.
	Behaviour, Advantages []float32
	Clip                  float64

	Entropy float64 // coefficient

	// Teacher, when KL is not 0, reads TeacherRows, which have the same A actions. It
	// may be the decoder itself: its distributions then are constants.
	KL          float64
	Teacher     *model.Decoder
	TeacherRows []*align.Packed
}

// BackwardActor adds to the gradients of a decoder that of a loss over all actions
// of rows, and returns the policy loss with its diagnostics, its Loss being nil.
func (c Compute) BackwardActor(d *model.Decoder, rows []*align.Packed, l ActorLoss) (Surrogate, error) {
	n := actionCount(rows)
	if l.Advantages != nil && (len(l.Behaviour) != n || len(l.Advantages) != n) {
		return Surrogate{}, fmt.Errorf("actor's loss: %d log-probs and %d advantages for %d actions", len(l.Behaviour), len(l.Advantages), n)
	}
	if l.KL != 0 && actionCount(l.TeacherRows) != n {
		return Surrogate{}, fmt.Errorf("actor's loss: the teacher's rows have %d actions, the student's %d", actionCount(l.TeacherRows), n)
	}
	if n == 0 {
		return Surrogate{}, nil
	}
	s := torch.NewScope()
	defer s.Close()
	all := c.on(torch.FromInt64(actionIDs(rows), int64(n)))
	var behaviour, advantages, teacher *torch.Tensor
	if l.Advantages != nil {
		behaviour, advantages = c.on(torch.FromFloat32(l.Behaviour, int64(n))), c.on(torch.FromFloat32(l.Advantages, int64(n)))
	}
	if l.KL != 0 {
		torch.NoGrad(func() { teacher = l.Teacher.Hidden(l.TeacherRows) })
	}
	var sum Surrogate
	c.chunkedBackward(d, d.Forward(rows, c.forward()), l.Temperature, func(start, end int, logDistribution *torch.Tensor) bool {
		chunk := func(t *torch.Tensor) *torch.Tensor { return t.Narrow(0, int64(start), int64(end-start)) }
		t := terms{IDs: chunk(all), EntropyWeight: -l.Entropy / l.Total}
		if advantages != nil {
			logProbs := picked(logDistribution, t.IDs).RequiresGrad_(true)
			surrogate := ClippedSurrogate(logProbs, chunk(behaviour), chunk(advantages), l.Clip)
			surrogate.Loss.DivScalar(l.Total).Backward()
			t.Picked = logProbs.Grad()
			sum.join(surrogate, start == 0)
		}
		if teacher != nil {
			t.KLWeight = l.KL / l.Total
			for i := range end - start {
				t.TeacherRows = append(t.TeacherRows, int64(i))
			}
			torch.NoGrad(func() { t.Teacher = logSoftmax_(l.Teacher.Logits(chunk(teacher)), l.Temperature) })
		}
		t.gradient(logDistribution, l.Temperature)
		return t.Picked != nil || t.EntropyWeight != 0 || t.KLWeight != 0
	})
	return sum, nil
}

// join adds the diagnostics of a further chunk, or begins with the first.
func (s *Surrogate) join(o Surrogate, first bool) {
	if first {
		s.RatioMax, s.RatioMin = o.RatioMax, o.RatioMin
	}
	s.ClippedCount += o.ClippedCount
	s.KLSum += o.KLSum
	s.RatioMax, s.RatioMin = max(s.RatioMax, o.RatioMax), min(s.RatioMin, o.RatioMin)
}
