package train

import (
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/torch"
)

// updateStats sums over all mini-batches of a step; means are taken over
// Actions (one count a token and epoch), norms over Minibatches.
type updateStats struct {
	Actions, TeacherActions, Minibatches int

	Policy, Value, Entropy, Teacher float64 // summed losses in nats, and entropy
	ApproxKL                        float64
	Clipped, ValueClipped           float64
	ActorNorm, CriticNorm           float64
	RatioMax                        float64
}

// update goes over the batch in mini-batches for EpochsPerStep epochs.
func (r *ppoRun) update(b *stepBatch) (updateStats, error) {
	var stats updateStats
	for epoch := range r.c.EpochsPerStep {
		rng := newRand(r.c.Seed, streamMinibatch, uint64(r.state.Step), uint64(epoch))
		for _, mini := range minibatches(r.c, b.samples, rng) {
			r.updateMinibatch(b, mini, &stats)
			if bad := stats.Policy + stats.Value + stats.Teacher + stats.ActorNorm + stats.CriticNorm; math.IsNaN(bad) || math.IsInf(bad, 0) {
				return stats, fmt.Errorf("a loss or gradient is not finite (policy %g, value %g, teacher %g, gradient norms %g and %g): training has diverged",
					stats.Policy, stats.Value, stats.Teacher, stats.ActorNorm, stats.CriticNorm)
			}
		}
	}
	return stats, nil
}

// updateMinibatch takes one optimiser step of actor and critic. The actor's is
// left out while nothing acts on it: in the delay, without a teacher or entropy bonus.
func (r *ppoRun) updateMinibatch(b *stepBatch, mini []*sample, stats *updateStats) {
	rows := packedRows(mini)
	total := minibatchTotals{actions: float64(actionCount(rows))}
	here, _ := teacherPlaces(mini)
	total.teacher = float64(len(here))
	r.actorOptimizer.ZeroGrad()
	r.criticOptimizer.ZeroGrad()
	actorMoves := false
	for _, micro := range microbatches(mini, r.c.TokensPerMicrobatch, packedLength) {
		if r.backward(b, micro, total, stats) {
			actorMoves = true
		}
	}
	if actorMoves {
		stats.ActorNorm += r.actorOptimizer.clip(r.c.GradientNormMax)
		r.actorOptimizer.Step()
	}
	stats.CriticNorm += r.criticOptimizer.clip(r.c.GradientNormMax)
	r.criticOptimizer.Step()
	stats.Minibatches++
}

// minibatchTotals are what sums over a mini-batch are divided by.
type minibatchTotals struct{ actions, teacher float64 }

// backward adds the gradients of one microbatch:
//
//	L_actor = L_clip - c_H entropy + lambda KL(student || teacher),  L_critic = L_value
//
// It reports whether the actor's loss had any term.
func (r *ppoRun) backward(b *stepBatch, micro []*sample, total minibatchTotals, stats *updateStats) bool {
	s := torch.NewScope()
	defer s.Close()
	rows := packedRows(micro)
	n := actionCount(rows)
	ids := torch.FromInt64(actionIDs(rows), int64(n))
	hidden := r.policy.Hidden(rows)                                      // (A, D)
	student := LogDistribution(r.policy.Logits(hidden), r.c.Temperature) // (A, V)
	logProbs := LogProbs(student, ids)                                   // (A)

	behaviour := gather(micro, r.behaviourOf)
	advantages := gather(micro, func(x *sample) []float32 { return x.Advantage })
	surrogate := ClippedSurrogate(logProbs, behaviour, advantages, r.c.ClipRange)
	entropy := Entropy(student).Sum()

	var terms []*torch.Tensor
	if r.state.Step >= r.c.PolicyDelaySteps {
		terms = append(terms, surrogate.Loss.DivScalar(total.actions))
	}
	if r.c.EntropyCoefficient != 0 {
		terms = append(terms, entropy.MulScalar(-r.c.EntropyCoefficient/total.actions))
	}
	if b.teacherHidden != nil {
		if kl, count := r.teacherTerm(b, micro, student); count > 0 {
			terms = append(terms, kl.MulScalar(r.c.TeacherWeight/total.teacher))
			stats.Teacher += kl.Item()
			stats.TeacherActions += count
		}
	}
	if len(terms) > 0 {
		loss := terms[0]
		for _, t := range terms[1:] {
			loss = loss.Add(t)
		}
		loss.Backward()
	}

	values := r.critic.values(hidden, rows)
	old := gather(micro, func(x *sample) []float32 { return x.values })
	returns := gather(micro, func(x *sample) []float32 { return x.Return })
	value := ClippedValueLoss(values, old, returns, r.c.ValueClipRange)
	value.Loss.DivScalar(total.actions).Backward()

	stats.Actions += n
	stats.Policy += surrogate.Loss.Item()
	stats.Entropy += entropy.Item()
	stats.Value += value.Loss.Item()
	stats.ApproxKL += surrogate.KLSum
	stats.Clipped += surrogate.ClippedCount
	stats.ValueClipped += value.ClippedCount
	stats.RatioMax = max(stats.RatioMax, surrogate.RatioMax)
	return len(terms) > 0
}

// behaviourOf are the log-probs under the ratio.
func (r *ppoRun) behaviourOf(x *sample) []float32 {
	if r.c.Ratio == RatioSampler {
		return x.sampler
	}
	return x.behaviour
}

// teacherTerm sums KL(student || teacher) over the actions of micro in the teacher
// mask, and counts them. student is (A, V).
func (r *ppoRun) teacherTerm(b *stepBatch, micro []*sample, student *torch.Tensor) (*torch.Tensor, int) {
	here, inBatch := teacherPlaces(micro)
	if len(here) == 0 {
		return nil, 0
	}
	n := int64(len(here))
	var teacher *torch.Tensor // (T, V)
	torch.NoGrad(func() {
		hidden := b.teacherHidden.IndexSelect(0, torch.FromInt64(inBatch, n))
		teacher = LogDistribution(r.p.Teacher.Logits(hidden), r.c.Temperature)
	})
	if n < student.Dim(0) {
		student = student.IndexSelect(0, torch.FromInt64(here, n))
	}
	return ReverseKL(student, teacher).Sum(), len(here)
}
