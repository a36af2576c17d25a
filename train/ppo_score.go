package train

import (
	"fmt"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// score freezes what a step's update compares with: log-probs of the behaviour
// snapshot and of the reference, the critic's values, the teacher's hidden
// states. The policy has not moved since the rollouts, so that its log-probs now
// are the snapshot's; they are kept as numbers while the policy moves on.
func (r *ppoRun) score(b *stepBatch) {
	torch.NoGrad(func() {
		micros := microbatches(b.samples, r.c.TokensPerMicrobatch, packedLength)
		for _, micro := range micros {
			r.scoreMicrobatch(micro)
		}
		if r.c.KLCoefficient != 0 {
			r.reference.use(func(d *model.Decoder) { r.scoreReference(d, micros) })
		}
		if r.teacher != nil {
			r.teacher.use(func(d *model.Decoder) { r.scoreTeacher(d, b, func([]*sample) bool { return true }) })
		}
	})
}

func (r *ppoRun) scoreReference(d *model.Decoder, micros [][]*sample) {
	for _, micro := range micros {
		logProbs, _ := r.c.score(d, packedRows(micro), r.c.Temperature)
		hand(micro, logProbs, func(x *sample, part []float32) { x.reference = part })
	}
}

func (r *ppoRun) scoreMicrobatch(micro []*sample) {
	s := torch.NewScope()
	defer s.Close()
	rows := packedRows(micro)
	hidden := r.policy.Hidden(rows) // (A, D)
	behaviour, _ := r.c.scoreHidden(r.policy, hidden, actionIDs(rows), r.c.Temperature)
	if r.critic.decoder != nil {
		hidden = r.critic.decoder.Hidden(rows)
	}
	hand(micro, behaviour, func(x *sample, part []float32) { x.behaviour = part })
	hand(micro, r.critic.values(hidden).Float32s(), func(x *sample, part []float32) { x.values = part })
}

// hand gives each sample its part of one value an action.
func hand(samples []*sample, all []float32, set func(*sample, []float32)) {
	at := 0
	for _, x := range samples {
		end := at + len(x.packed.Actions)
		set(x, all[at:end:end])
		at = end
	}
}

// scoreTeacher keeps what the teacher term takes of the teacher. Microbatches that are
// not needed are left out, or 0.
func (r *ppoRun) scoreTeacher(d *model.Decoder, b *stepBatch, needed func([]*sample) bool) {
	if r.c.TeacherEstimator != EstimatorSampled {
		b.teacherHidden = r.teacherHidden(d, b, needed)
		return
	}
	for _, micro := range microbatches(b.samples, r.c.TokensPerMicrobatch, teacherRowLength) {
		if needed(micro) {
			logProbs, _ := r.c.score(d, teacherRows(micro), r.c.Temperature)
			hand(micro, logProbs, func(x *sample, part []float32) { x.teacher = part })
		}
	}
}

// teacherRows lists what the teacher sees of samples.
func teacherRows(samples []*sample) []*align.Packed {
	rows := make([]*align.Packed, len(samples))
	for i, x := range samples {
		rows[i] = x.teacherRow
	}
	return rows
}

// teacherHidden is (actions, D), in the order of the batch; on the host where frozen
// models rest there. Microbatches that are not needed are left 0.
func (r *ppoRun) teacherHidden(d *model.Decoder, b *stepBatch, needed func([]*sample) bool) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	var parts []*torch.Tensor
	for _, micro := range microbatches(b.samples, r.c.TokensPerMicrobatch, teacherRowLength) {
		rows := teacherRows(micro)
		if !needed(micro) {
			parts = append(parts, torch.Zeros(torch.Float32, int64(actionCount(rows)), int64(d.Config.HiddenSize)))
			continue
		}
		inner := torch.NewScope()
		hidden := d.Hidden(rows)
		if r.c.OffloadFrozen {
			hidden = hidden.ToDevice("cpu")
		}
		parts = append(parts, inner.Keep(hidden))
		inner.Close()
	}
	return s.Keep(torch.Cat(parts, 0))
}

// estimate sets rewards, advantages (whitened over the batch) and returns.
func (r *ppoRun) estimate(b *stepBatch) error {
	all := make([][]float32, 0, len(b.samples))
	for _, x := range b.samples {
		rewards, err := TokenRewards(x.trajectory.Reward, r.c.KLCoefficient, x.behaviour, x.reference)
		if err != nil {
			return fmt.Errorf("trajectory %q: %w", x.trajectory.ID, err)
		}
		for _, reward := range rewards {
			x.reward += float64(reward)
		}
		if x.Advantages, err = GAE(rewards, x.values, r.c.Gamma, r.c.Lambda); err != nil {
			return fmt.Errorf("trajectory %q: %w", x.trajectory.ID, err)
		}
		all = append(all, x.Advantage)
	}
	Whiten(all...)
	return nil
}
