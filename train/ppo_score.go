package train

import (
	"fmt"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// score freezes what a step's update compares with: log-probs of the behaviour
// snapshot and of the reference, the critic's values, the teacher's hidden
// states. The policy has not moved since the rollouts, so that its log-probs now
// are the snapshot's; they are kept as numbers while the policy moves on.
func (r *ppoRun) score(b *stepBatch) {
	torch.NoGrad(func() {
		for _, micro := range microbatches(b.samples, r.c.TokensPerMicrobatch, packedLength) {
			r.scoreMicrobatch(micro)
		}
		if r.p.Teacher != nil {
			b.teacherHidden = r.teacherHidden(b)
		}
	})
}

func (r *ppoRun) scoreMicrobatch(micro []*sample) {
	s := torch.NewScope()
	defer s.Close()
	rows := packedRows(micro)
	ids := actionIDs(rows)
	hidden := r.policy.Hidden(rows) // (A, D)
	behaviour, _ := r.c.scoreHidden(r.policy, hidden, ids, r.c.Temperature)
	if r.critic.decoder != nil {
		hidden = r.critic.decoder.Hidden(rows)
	}
	values := r.critic.values(hidden).Float32s()
	var reference []float32
	if r.c.KLCoefficient != 0 {
		reference, _ = r.c.score(r.p.Initial, rows, r.c.Temperature)
	}
	at := 0
	for _, x := range micro {
		end := at + len(x.packed.Actions)
		x.behaviour, x.values = behaviour[at:end], values[at:end]
		if reference != nil {
			x.reference = reference[at:end]
		}
		at = end
	}
}

// teacherHidden is (actions, D), in the order of the batch.
func (r *ppoRun) teacherHidden(b *stepBatch) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	var parts []*torch.Tensor
	for _, micro := range microbatches(b.samples, r.c.TokensPerMicrobatch, teacherRowLength) {
		rows := make([]*align.Packed, len(micro))
		for i, x := range micro {
			rows[i] = x.teacherRow
		}
		inner := torch.NewScope()
		parts = append(parts, inner.Keep(r.p.Teacher.Hidden(rows)))
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
