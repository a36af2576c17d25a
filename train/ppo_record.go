package train

import (
	"math"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// ends lists all ends of a trajectory: each is counted in each record.
var ends = []trace.End{
	trace.EndAnswered, trace.EndTurnLimit, trace.EndUnusable, trace.EndContext,
	trace.EndUpdate, trace.EndRetrieval, trace.EndCancelled, trace.EndModelError,
}

// reasons lists why trajectories are left out: each is counted in each record.
var reasons = []align.Reason{
	align.ReasonPackedTokens, align.ReasonCallTokens, align.ReasonNoActions, align.ReasonInconsistent, ReasonFailed,
}

// ppoLine are the metrics of PPO's line on the terminal.
var ppoLine = []string{
	StepMetric, "score/reward", "score/em", "score/f1", "losses/policy_loss", "losses/value_loss", "actor/reference_kl",
	"actor/teacher_kl", "losses/clipfrac", "losses/entropy", "rce/p99", "rollout/logprob_diff_p99",
	"perf/throughput", "timing_s/step",
}

// PPOLine renders a record of PPO for the terminal.
func PPOLine(r Record) string {
	if _, ok := r.Get("losses/policy_loss"); ok {
		return r.Line(ppoLine...)
	}
	return evalLine(r)
}

// record reports a finished step. Names under losses/ are CleanRL's; those under
// timing_s/ and perf/, actor/grad_norm, critic/grad_norm and response_length/mean
// are veRL's.
func (r *ppoRun) record(b *stepBatch, trajectories []*trace.Trajectory, rce rceCheck, u updateStats, clock *phases) error {
	var m Record
	m.Set(StepMetric, float64(r.state.Step))
	recordScores(&m, trajectories)
	r.recordBatch(&m, b)
	recordUpdate(&m, u)
	m.Set("rce/actions", float64(rce.Actions))
	m.Set("rce/mean", rce.Mean)
	m.Set("rce/p99", rce.P99)
	m.Set("rce/max", rce.Max)
	m.Set("rce/flips", float64(rce.Flips))
	enforced := 0.0
	if r.c.Layout == LayoutAligned && r.c.RCETrajectoriesPerStep > 0 {
		enforced = 1
	}
	m.Set("rce/enforced", enforced)
	if own := rce.compute; own != nil {
		m.Set("rce/p99_compute", own.P99)
		m.Set("rce/max_compute", own.Max)
		m.Set("rce/flips_compute", float64(own.Flips))
	}
	for _, reason := range reasons {
		m.Set("align/rejected/"+string(reason), float64(b.rejected[reason]))
	}
	m.Set("perf/total_num_tokens", float64(tokenCount(packedRows(b.samples))))
	m.Set("perf/throughput", float64(b.actions)/clock.total())
	for _, name := range clock.names {
		m.Set("timing_s/"+name, clock.seconds[name])
	}
	m.Set("timing_s/step", clock.total())
	return r.emit(m)
}

// recordScores reports what the environment said of all trajectories: reward, every score (em, f1, ...), ends.
func recordScores(m *Record, trajectories []*trace.Trajectory) {
	n := float64(len(trajectories))
	var reward float64
	sums := map[string]float64{"em": 0, "f1": 0}
	counts, failures := map[trace.End]int{}, 0
	for _, t := range trajectories {
		reward += t.Reward / n
		for name, v := range t.Scores {
			sums[name] += v / n
		}
		counts[t.End]++
		failures += t.RetrievalFailures()
	}
	m.Set("score/reward", reward)
	m.Set("retrieval/failures", float64(failures))
	for _, name := range sortedKeys(sums) {
		m.Set("score/"+name, sums[name])
	}
	for _, end := range ends {
		m.Set("ends/"+string(end), float64(counts[end]))
	}
}

// recordBatch reports what the update was given.
func (r *ppoRun) recordBatch(m *Record, b *stepBatch) {
	var calls, penalised, tokens float64
	var behaviour, own, sampler, reference, values, returns []float32
	for _, x := range b.samples {
		stats := x.packed.Stats()
		calls, tokens = calls+float64(stats.Calls), tokens+float64(stats.Actions)
		penalised += x.reward
		behaviour, own = append(behaviour, x.behaviour...), append(own, ofSampled(x.packed, x.behaviour)...)
		sampler = append(sampler, ofSampled(x.packed, x.sampler)...)
		reference = append(reference, x.reference...)
		values, returns = append(values, x.values...), append(returns, x.Return...)
	}
	n := float64(len(b.samples))
	m.Set("rollout/trajectories", n)
	m.Set("teacher/context_tokens", b.teacherTokens()/n)
	m.Set("rollout/calls_mean", calls/n)
	m.Set("response_length/mean", tokens/calls)
	m.Set("align/spurious_actions", float64(b.actions)-tokens)
	m.Set("score/reward_penalised", penalised/n)
	if reference != nil {
		kl := 0.0
		for i := range reference {
			kl += (float64(behaviour[i]) - float64(reference[i])) / float64(len(reference))
		}
		m.Set("actor/reference_kl", kl)
	}
	difference := compareLogProbs(sampler, own, nil, nil)
	m.Set("rollout/logprob_diff_mean", difference.Mean)
	m.Set("rollout/logprob_diff_p99", difference.P99)
	m.Set("rollout/logprob_diff_max", difference.Max)
	mean, most := sequenceDifference(b.samples)
	m.Set("rollout/sequence_logprob_diff_mean", mean)
	m.Set("rollout/sequence_logprob_diff_max", most)
	m.Set("losses/explained_variance", ExplainedVariance(values, returns))
}

// sequenceDifference is mean and maximum over trajectories of how far the sampler's and
// the trainer's log-probs of the whole of one are apart, in nats: differences of one
// sign add up, however small each token's is.
func sequenceDifference(samples []*sample) (mean, most float64) {
	for _, x := range samples {
		sum := 0.0
		for i, a := range x.packed.Actions {
			if !a.Spurious() {
				sum += float64(x.behaviour[i]) - float64(x.sampler[i])
			}
		}
		if math.IsNaN(sum) {
			sum = math.Inf(1)
		}
		mean += math.Abs(sum) / float64(len(samples))
		most = max(most, math.Abs(sum))
	}
	return mean, most
}

// teacherTokens counts what the teacher sees of all samples; NaN without a teacher.
func (b *stepBatch) teacherTokens() float64 {
	n := 0.0
	for _, x := range b.samples {
		if x.teacherRow == nil {
			return math.NaN()
		}
		n += float64(len(x.teacherRow.IDs))
	}
	return n
}

// recordUpdate reports means over all action tokens that the update went over.
func recordUpdate(m *Record, u updateStats) {
	n := float64(u.Actions)
	m.Set("losses/policy_loss", u.Policy/n)
	m.Set("losses/value_loss", u.Value/n)
	m.Set("losses/entropy", u.Entropy/n)
	m.Set("losses/approx_kl", u.ApproxKL/n)
	m.Set("losses/clipfrac", u.Clipped/n)
	m.Set("losses/value_clipfrac", u.ValueClipped/n)
	m.Set("actor/teacher_kl", math.NaN())
	if u.TeacherActions > 0 {
		m.Set("actor/teacher_kl", u.Teacher/float64(u.TeacherActions))
	}
	m.Set("actor/ratio_max", u.RatioMax)
	m.Set("actor/grad_norm", u.ActorNorm/float64(u.Minibatches))
	m.Set("critic/grad_norm", u.CriticNorm/float64(u.Minibatches))
	m.Set("actor/minibatches", float64(u.Minibatches))
	m.Set("actor/action_tokens", n)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
