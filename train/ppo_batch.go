package train

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// sample is one trajectory of a step. The slices hold one value an
// action, ordered by call and token.
type sample struct {
	trajectory *trace.Trajectory
	packed     *align.Packed
	teacherRow *align.Packed // what the teacher sees; nil without a teacher
	first      int           // index of its first action in the step's batch

	sampler   []float32 // log-probs that the sampler recorded; NaN where it sampled nothing
	behaviour []float32 // log-probs of the frozen behaviour snapshot
	reference []float32 // log-probs of the reference; nil when the KL coefficient is 0
	teacher   []float32 // log-probs of the teacher, with the estimator sampled alone; else nil
	values    []float32
	reward    float64 // task reward minus the KL penalty, summed
	Advantages
}

// stepBatch is what a step trains on.
type stepBatch struct {
	samples  []*sample
	rejected map[align.Reason]int
	actions  int
	// teacherHidden are the teacher's hidden states (actions, D); its logits are
	// made from them and its head a chunk at a time. nil without a teacher, or where the
	// estimator asks for its log-probs alone.
	teacherHidden *torch.Tensor
	teacherHead   *model.Head // while the update lasts
}

// limits are the options of every compilation of a run.
func (c PPOConfig) limits() align.Options {
	o := align.Options{MaxPackedTokens: c.PackedTokensMax, MaxCallTokens: c.TokensPerCallMax}
	if c.TeacherFirstCall > 0 {
		o.Teacher = align.TeacherFromCall(c.TeacherFirstCall)
	}
	return o
}

// ReasonFailed counts trajectories that a part outside the policy broke off: they
// say nothing of its actions.
const ReasonFailed align.Reason = "failed"

// compileBatch compiles the trajectories of a step. Those that align rejects are
// counted and left out; when none is left, the error says why.
func compileBatch(c PPOConfig, o align.Options, trajectories []*trace.Trajectory) (*stepBatch, error) {
	b := &stepBatch{rejected: map[align.Reason]int{}}
	var last error
	for _, t := range trajectories {
		s, err := compileSample(c, o, t)
		var rejected *align.Rejected
		if errors.As(err, &rejected) {
			b.rejected[rejected.Reason]++
			last = err
			continue
		}
		if err != nil {
			return nil, err
		}
		s.first = b.actions
		b.actions += len(s.packed.Actions)
		b.samples = append(b.samples, s)
	}
	if len(b.samples) == 0 {
		return nil, fmt.Errorf("none of %d trajectories can be trained on; the last reason: %w", len(trajectories), last)
	}
	return b, nil
}

func compileSample(c PPOConfig, o align.Options, t *trace.Trajectory) (*sample, error) {
	switch t.End {
	case trace.EndRetrieval, trace.EndCancelled, trace.EndModelError, trace.EndUpdate:
		return nil, &align.Rejected{TrajectoryID: t.ID, Reason: ReasonFailed, Call: -1, Detail: fmt.Sprintf("it ended with %q", t.End)}
	}
	packed, err := c.layOut(t, o)
	if err != nil {
		return nil, err
	}
	s := &sample{trajectory: t, packed: packed}
	if err := checkSampler(c, t); err != nil {
		return nil, err
	}
	for _, call := range t.Calls {
		if len(call.LogProbs) != len(call.Output) {
			return nil, fmt.Errorf("trajectory %q, call %d: %d recorded log-probs for %d sampled ids", t.ID, call.Index, len(call.LogProbs), len(call.Output))
		}
	}
	s.sampler = sampledLogProbs(packed, t)
	switch c.Teacher {
	case TeacherAligned:
		s.teacherRow = packed
	case TeacherPersistent:
		if s.teacherRow, err = align.Persistent(t, o); err != nil {
			return nil, err
		}
		if err := sameActions(packed, s.teacherRow); err != nil {
			return nil, fmt.Errorf("trajectory %q: %w", t.ID, err)
		}
	}
	return s, nil
}

// sameActions holds that the teacher's row has the actions of the packed one, one to
// one: its scores are taken by their order.
func sameActions(packed, row *align.Packed) error {
	if a, b := len(packed.Actions), len(row.Actions); a != b {
		return fmt.Errorf("the teacher's row has %d actions, the packed one %d", b, a)
	}
	for i, a := range packed.Actions {
		if b := row.Actions[i]; a.Call != b.Call || a.Token != b.Token || a.ID != b.ID || a.Teacher != b.Teacher {
			return fmt.Errorf("action %d is token %d of call %d (id %d) in the packed row, token %d of call %d (id %d) in the teacher's",
				i, a.Token, a.Call, a.ID, b.Token, b.Call, b.ID)
		}
	}
	return nil
}

// checkSampler refuses trajectories whose recorded log-probs are not those of
// softmax(logits/temperature) over the whole vocabulary: the ratio would be biased.
func checkSampler(c PPOConfig, t *trace.Trajectory) error {
	s := t.Sampler
	if s.Greedy || s.Temperature != c.Temperature || s.TopK != 0 || s.TopP != 1 {
		return fmt.Errorf("trajectory %q was sampled with greedy %v, temperature %g, top-k %d, top-p %g; PPO needs temperature %g and no truncation (top-k 0, top-p 1)",
			t.ID, s.Greedy, s.Temperature, s.TopK, s.TopP, c.Temperature)
	}
	if s.Temperature != 1 && s.Meaning != trace.MeaningProcessed { // at 1 all meanings are one
		return fmt.Errorf("trajectory %q was sampled at temperature %g, and its log-probs are said to be %q; PPO needs those of softmax(logits/temperature)",
			t.ID, s.Temperature, s.Meaning)
	}
	return nil
}

// packedRows lists the compiled sequences of samples.
func packedRows(samples []*sample) []*align.Packed {
	rows := make([]*align.Packed, len(samples))
	for i, s := range samples {
		rows[i] = s.packed
	}
	return rows
}

// gather concatenates one field of samples as a tensor (A).
func gather(samples []*sample, field func(*sample) []float32) *torch.Tensor {
	var all []float32
	for _, s := range samples {
		all = append(all, field(s)...)
	}
	return torch.FromFloat32(all, int64(len(all)))
}

// teacherPlaces lists the actions of samples that are in the teacher mask: their
// places among the actions of these samples, and among those of the step's batch.
func teacherPlaces(samples []*sample) (here, inBatch []int64) {
	n := 0
	for _, s := range samples {
		for i, a := range s.packed.Actions {
			if a.Teacher {
				here = append(here, int64(n+i))
				inBatch = append(inBatch, int64(s.first+i))
			}
		}
		n += len(s.packed.Actions)
	}
	return here, inBatch
}

// microbatches cuts samples, in order, into runs of at most so many stored
// tokens; a longer trajectory stands alone.
func microbatches(samples []*sample, tokens int, length func(*sample) int) [][]*sample {
	var cuts [][]*sample
	start, held := 0, 0
	for i, s := range samples {
		n := length(s)
		if i > start && held+n > tokens {
			cuts = append(cuts, samples[start:i])
			start, held = i, 0
		}
		held += n
	}
	return append(cuts, samples[start:])
}

func packedLength(s *sample) int     { return len(s.packed.IDs) }
func teacherRowLength(s *sample) int { return len(s.teacherRow.IDs) }

// minibatches shuffles samples and spreads them, whole, over total/tokens
// mini-batches (rounded, at least one) of about equal size. Where the
// configuration counts trajectories, each gets about as many of them instead.
func minibatches(c PPOConfig, samples []*sample, rng *rand.Rand) [][]*sample {
	order := slices.Clone(samples)
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if most := c.TrajectoriesPerMinibatch; most > 0 {
		return spread(order, (len(order)+most-1)/most)
	}
	total := 0
	for _, s := range order {
		total += packedLength(s)
	}
	tokens := c.TokensPerMinibatch
	n := min(max(1, (total+tokens/2)/tokens), len(order))
	var cuts [][]*sample
	start, held := 0, 0
	for i, s := range order {
		held += packedLength(s)
		left := n - len(cuts) - 1 // mini-batches still to come after this one
		full := held*n >= total*(len(cuts)+1)
		if left > 0 && (full || len(order)-i-1 == left) {
			cuts = append(cuts, order[start:i+1])
			start = i + 1
		}
	}
	return append(cuts, order[start:])
}

// spread cuts samples, in order, into n runs whose lengths differ by at most one.
func spread(samples []*sample, n int) [][]*sample {
	cuts := make([][]*sample, n)
	for i := range cuts {
		cuts[i] = samples[len(samples)*i/n : len(samples)*(i+1)/n]
	}
	return cuts
}
