package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
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

// add sums two counts.
func (s *updateStats) add(o updateStats) {
	s.Actions, s.TeacherActions, s.Minibatches = s.Actions+o.Actions, s.TeacherActions+o.TeacherActions, s.Minibatches+o.Minibatches
	s.Policy, s.Value, s.Entropy, s.Teacher = s.Policy+o.Policy, s.Value+o.Value, s.Entropy+o.Entropy, s.Teacher+o.Teacher
	s.ApproxKL += o.ApproxKL
	s.Clipped, s.ValueClipped = s.Clipped+o.Clipped, s.ValueClipped+o.ValueClipped
	s.ActorNorm, s.CriticNorm = s.ActorNorm+o.ActorNorm, s.CriticNorm+o.CriticNorm
	s.RatioMax = max(s.RatioMax, o.RatioMax)
}

// microRun is what one microbatch of an update did.
type microRun struct {
	epoch, minibatch int // the mini-batch's place in its epoch
	samples          []*sample
	stats            updateStats
}

// observer sees each microbatch of an update after its backward pass, when the
// gradients are those of its mini-batch so far. False ends the update there.
type observer func(microRun) bool

// update goes over the batch in mini-batches for EpochsPerStep epochs. watch may be nil.
func (r *ppoRun) update(b *stepBatch, watch observer) (updateStats, error) {
	var stats updateStats
	if b.teacherHidden != nil {
		b.teacherHead = r.teacher.head()
		defer b.teacherHead.Free()
	}
	defer r.actorOptimizer.ZeroGrad() // what samples next has the memory
	defer r.criticOptimizer.ZeroGrad()
	for epoch := range r.c.EpochsPerStep {
		rng := newRand(r.c.Seed, streamMinibatch, uint64(r.state.Step), uint64(epoch))
		for i, mini := range minibatches(r.c, b.samples, rng) {
			if !r.updateMinibatch(b, mini, &stats, func(micro []*sample, own updateStats) bool {
				return watch == nil || watch(microRun{epoch, i, micro, own})
			}) {
				return stats, nil
			}
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
// It asks on after each microbatch, and reports whether it came to the end.
func (r *ppoRun) updateMinibatch(b *stepBatch, mini []*sample, stats *updateStats, on func([]*sample, updateStats) bool) bool {
	rows := packedRows(mini)
	total := minibatchTotals{actions: float64(actionCount(rows))}
	here, _ := teacherPlaces(mini)
	total.teacher = float64(len(here))
	r.actorOptimizer.ZeroGrad()
	r.criticOptimizer.ZeroGrad()
	actorMoves := false
	for _, micro := range microbatches(mini, r.c.TokensPerMicrobatch, packedLength) {
		var own updateStats
		if r.backward(b, micro, total, &own) {
			actorMoves = true
		}
		stats.add(own)
		if !on(micro, own) {
			return false
		}
	}
	if actorMoves {
		stats.ActorNorm += r.actorOptimizer.clip(r.c.GradientNormMax)
		r.actorOptimizer.Step()
	}
	stats.CriticNorm += r.criticOptimizer.clip(r.c.GradientNormMax)
	r.criticOptimizer.Step()
	stats.Minibatches++
	return true
}

// minibatchTotals are what sums over a mini-batch are divided by.
type minibatchTotals struct{ actions, teacher float64 }

// backward adds the gradients of one microbatch:
//
//	L_actor = L_clip - c_H entropy + lambda KL(student || teacher),  L_critic = L_value
//
// where the KL is taken by the configuration's estimator.
//
// It reports whether the actor's loss had any term.
func (r *ppoRun) backward(b *stepBatch, micro []*sample, total minibatchTotals, stats *updateStats) bool {
	s := torch.NewScope()
	defer s.Close()
	m := r.microbatch(b, micro, total)
	f := r.policy.Forward(m.rows, r.c.forward())
	moved := r.c.chunkedBackward(r.policy, f, r.c.Temperature, func(start, end int, logDistribution *torch.Tensor) bool {
		return r.actorChunk(m, start, end, logDistribution, stats)
	})
	r.criticBackward(m, f.Hidden.Detach(), stats)
	stats.Actions += int(m.ids.Numel())
	return moved
}

// microbatch is what the losses of one microbatch of A actions take, on the run's device.
type microbatch struct {
	rows  []*align.Packed
	total minibatchTotals

	ids                   *torch.Tensor // (A) int64
	behaviour, advantages *torch.Tensor // (A)
	old, returns          *torch.Tensor // (A): values of the rollout, and what they should have been

	teacher       *torch.Tensor // (A): its log-probs, with the estimator sampled; else nil
	teacherHidden *torch.Tensor // of the step's batch, with the other estimators; else nil
	teacherHead   *model.Head
	here, inBatch []int64 // the actions in the teacher mask: among the A, and in the step's batch
}

func (r *ppoRun) microbatch(b *stepBatch, micro []*sample, total minibatchTotals) *microbatch {
	m := &microbatch{rows: packedRows(micro), total: total, teacherHidden: b.teacherHidden, teacherHead: b.teacherHead}
	m.ids = r.c.on(torch.FromInt64(actionIDs(m.rows), int64(actionCount(m.rows))))
	values := func(field func(*sample) []float32) *torch.Tensor { return r.c.on(gather(micro, field)) }
	m.behaviour = values(r.behaviourOf)
	m.advantages = values(func(x *sample) []float32 { return x.Advantage })
	m.old = values(func(x *sample) []float32 { return x.values })
	m.returns = values(func(x *sample) []float32 { return x.Return })
	if r.teacher != nil {
		m.here, m.inBatch = teacherPlaces(micro)
	}
	if r.teacher != nil && b.teacherHidden == nil {
		m.teacher = values(func(x *sample) []float32 { return x.teacher })
	}
	return m
}

// actorChunk turns the log distributions of actions [start, end) into the gradient
// of the actor's loss on their logits, and says whether the loss had any term.
func (r *ppoRun) actorChunk(m *microbatch, start, end int, logDistribution *torch.Tensor, stats *updateStats) bool {
	chunk := func(t *torch.Tensor) *torch.Tensor { return t.Narrow(0, int64(start), int64(end-start)) }
	t := terms{IDs: chunk(m.ids), EntropyWeight: -r.c.EntropyCoefficient / m.total.actions}
	logProbs := picked(logDistribution, t.IDs).RequiresGrad_(true)
	surrogate := ClippedSurrogate(logProbs, chunk(m.behaviour), chunk(m.advantages), r.c.ClipRange)
	if r.state.Step >= r.c.PolicyDelaySteps {
		surrogate.Loss.DivScalar(m.total.actions).Backward()
	}
	from, to := m.taught(start, end)
	sampled := r.sampledTeacherTerm(m, from, to, start, logProbs)
	t.Picked = logProbs.Grad()
	r.teacherTerm(m, from, to, start, &t)
	entropy, kl := t.gradient(logDistribution, r.c.Temperature)

	stats.Policy += surrogate.Loss.Item()
	stats.ApproxKL += surrogate.KLSum
	stats.Clipped += surrogate.ClippedCount
	stats.RatioMax = max(stats.RatioMax, surrogate.RatioMax)
	stats.Entropy += entropy
	stats.Teacher += kl + sampled
	stats.TeacherActions += to - from
	return t.Picked != nil || t.EntropyWeight != 0 || len(t.TeacherRows) > 0
}

// taught are the places in here, [from, to), of the actions [start, end).
func (m *microbatch) taught(start, end int) (from, to int) {
	from, _ = slices.BinarySearch(m.here, int64(start))
	to, _ = slices.BinarySearch(m.here, int64(end))
	return from, to
}

// behaviourOf are the log-probs under the ratio.
func (r *ppoRun) behaviourOf(x *sample) []float32 {
	if r.c.Ratio == RatioSampler {
		return x.sampler
	}
	return x.behaviour
}

// sampledTeacherTerm adds the gradient of the term by sampled tokens to that of the
// log-probs (C) of the chunk from start on, for the actions here[from:to]. It returns
// the summed estimate of the KL, 0 with another estimator.
func (r *ppoRun) sampledTeacherTerm(m *microbatch, from, to, start int, logProbs *torch.Tensor) float64 {
	if m.teacher == nil || from == to {
		return 0
	}
	var rows []int64
	for _, place := range m.here[from:to] {
		rows = append(rows, place-int64(start))
	}
	places := r.c.on(torch.FromInt64(rows))
	of := func(t *torch.Tensor) *torch.Tensor { return t.IndexSelect(0, places) }
	chunk := func(t *torch.Tensor) *torch.Tensor { return of(t.Narrow(0, int64(start), logProbs.Dim(0))) }
	loss := SampledReverseKL(of(logProbs), chunk(m.behaviour), chunk(m.teacher))
	loss.MulScalar(r.c.TeacherWeight / m.total.teacher).Backward()
	return loss.Item()
}

// teacherTerm sets the KL to the teacher over the vocabulary for the actions
// here[from:to], which are in the teacher mask, of the chunk from start on.
func (r *ppoRun) teacherTerm(m *microbatch, from, to, start int, t *terms) {
	if m.teacherHidden == nil || from == to {
		return
	}
	if r.c.TeacherEstimator == EstimatorTopK {
		t.TopK = r.c.TeacherTopK
	}
	t.KLWeight = r.c.TeacherWeight / m.total.teacher
	for _, row := range m.here[from:to] {
		t.TeacherRows = append(t.TeacherRows, row-int64(start))
	}
	torch.NoGrad(func() {
		places := torch.FromInt64(m.inBatch[from:to]).ToDevice(m.teacherHidden.Device())
		hidden := r.c.on(m.teacherHidden.IndexSelect(0, places))
		t.Teacher = logSoftmax_(m.teacherHead.Logits(hidden), r.c.Temperature)
	})
}

// criticBackward adds the gradient of the critic's loss. hidden (A, D) are the
// actor's hidden states.
func (r *ppoRun) criticBackward(m *microbatch, hidden *torch.Tensor, stats *updateStats) {
	var f *model.Forward
	if r.critic.decoder != nil {
		f = r.critic.decoder.Forward(m.rows, r.c.forward())
		hidden = f.Hidden
	}
	value := ClippedValueLoss(r.critic.values(hidden), m.old, m.returns, r.c.ValueClipRange)
	value.Loss.DivScalar(m.total.actions).Backward()
	if f != nil {
		f.Backward()
	}
	stats.Value += value.Loss.Item()
	stats.ValueClipped += value.ClippedCount
}
