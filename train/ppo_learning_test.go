package train

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// scoredBatch opens a run on tiny models and scores a first batch; change edits it
// before the advantages are estimated.
func scoredBatch(t *testing.T, c PPOConfig, teacher uint64, change func(*sample)) (*ppoRun, *stepBatch) {
	t.Helper()
	return scoredBatchOf(t, c, teacher, fakeRollout(6), change)
}

// scoredBatchOf is scoredBatch of a rollout's trajectories.
func scoredBatchOf(t *testing.T, c PPOConfig, teacher uint64, rollout Rollout, change func(*sample)) (*ppoRun, *stepBatch) {
	t.Helper()
	r, err := openPPO(c, PPOParts{Initial: tinyModel(t, 1), Teacher: tinyModel(t, teacher), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	trajectories, err := rollout(context.Background(), 0, r.policy, 3)
	if err != nil {
		t.Fatal(err)
	}
	s := torch.NewScope()
	t.Cleanup(func() {
		s.Close()
		r.free()
		r.policy.Free()
	})
	b, err := compileBatch(c, c.limits(), trajectories)
	if err != nil {
		t.Fatal(err)
	}
	r.score(b)
	b.teacherHead = r.teacher.head()
	t.Cleanup(b.teacherHead.Free)
	for _, x := range b.samples {
		change(x)
	}
	if err := r.estimate(b); err != nil {
		t.Fatal(err)
	}
	return r, b
}

func unchanged(*sample) {}

// With the teacher equal to the student and the aligned state, the teacher term
// and its gradient are 0; with the persistent state they are not.
func TestTeacherEqualToStudent(t *testing.T) {
	for _, x := range []struct {
		teacher string
		zero    bool
	}{{TeacherAligned, true}, {TeacherPersistent, false}} {
		c := tinyPPO(x.teacher)
		c.TeacherWeight, c.EntropyCoefficient, c.PolicyDelaySteps = 1, 0, 1000
		r, b := scoredBatch(t, c, 1, unchanged)
		var stats updateStats
		n := float64(b.actions)
		r.backward(b, b.samples, minibatchTotals{n, n}, &stats)
		norm := torch.GradNorm(r.actorOptimizer.tensors)
		kl := stats.Teacher / float64(stats.TeacherActions)
		if x.zero && (math.Abs(kl) > 1e-6 || norm > 1e-5) {
			t.Errorf("%s: teacher KL %g with gradient norm %g, want 0 and 0", x.teacher, kl, norm)
		}
		if !x.zero && (kl < 1e-3 || norm < 1e-3) {
			t.Errorf("%s: teacher KL %g with gradient norm %g, want more", x.teacher, kl, norm)
		}
	}
}

// Only actions in the teacher mask have a teacher term: here those of calls from 1 on.
func TestTeacherMask(t *testing.T) {
	c := tinyPPO(TeacherAligned)
	c.TeacherFirstCall = 1
	r, b := scoredBatch(t, c, 2, unchanged)
	want, count := 0.0, 0
	for _, x := range b.samples {
		rows := []*align.Packed{x.packed}
		student := LogDistribution(r.policy.Logits(r.policy.Hidden(rows)), 1)
		teacher := LogDistribution(r.p.Teacher.Logits(r.p.Teacher.Hidden(rows)), 1)
		for i, kl := range ReverseKL(student, teacher).Float64s() {
			if x.packed.Actions[i].Call >= 1 {
				want += kl
				count++
			}
		}
	}
	var stats updateStats
	r.backward(b, b.samples, minibatchTotals{1, 1}, &stats)
	if stats.TeacherActions != count || count != stats.Actions*2/3 {
		t.Errorf("%d of %d actions are taught, want %d", stats.TeacherActions, stats.Actions, count)
	}
	near(t, "teacher KL", []float64{stats.Teacher}, []float64{want}, 1e-5)
}

// The ratio is against the log-probs that the configuration names.
func TestRatioSource(t *testing.T) {
	for source, want := range map[string]float64{RatioTrainer: 1, RatioSampler: math.Exp(0.1)} {
		c := tinyPPO(TeacherAligned)
		c.Ratio = source
		r, b := scoredBatch(t, c, 2, func(x *sample) {
			for i := range x.sampler {
				x.sampler[i] -= 0.1
			}
		})
		var stats updateStats
		r.backward(b, b.samples, minibatchTotals{1, 1}, &stats)
		near(t, source, []float64{stats.RatioMax}, []float64{want}, 1e-4)
	}
}

// The sum over microbatches is the mini-batch's gradient, however it is cut.
func TestGradientDoesNotDependOnMicrobatches(t *testing.T) {
	c := tinyPPO(TeacherAligned)
	c.EntropyCoefficient, c.PolicyDelaySteps = 0.01, 0
	r, b := scoredBatch(t, c, 2, unchanged)
	gradients := func(tokens int) []float64 {
		r.actorOptimizer.ZeroGrad()
		r.criticOptimizer.ZeroGrad()
		var stats updateStats
		for _, micro := range microbatches(b.samples, tokens, packedLength) {
			r.backward(b, micro, minibatchTotals{float64(b.actions), float64(b.actions)}, &stats)
		}
		var all []float64
		for _, p := range append(r.actorOptimizer.tensors, r.criticOptimizer.tensors...) {
			all = append(all, p.Grad().Float64s()...)
		}
		return all
	}
	near(t, "gradient", gradients(1), gradients(1<<30), 1e-5)
}

// The policy learns what the reward asks for, the sampler and the trainer agree
// on log-probs, and the ratio is 1 before the first update.
func TestPPORaisesTheReward(t *testing.T) {
	c := tinyPPO(TeacherNone)
	c.Steps, c.PromptsPerStep, c.KLCoefficient, c.CheckpointEvery, c.LearningRate = 25, 16, 0, 100, 1e-2
	c.TokensPerMinibatch = 1000
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	records := timeless(t, dir)
	first, _ := records[0].Get("score/reward")
	last, _ := records[len(records)-1].Get("score/reward")
	if last < first+0.2 {
		t.Errorf("reward went from %.3f to %.3f, want a rise of 0.2", first, last)
	}
	for _, r := range records {
		difference, _ := r.Get("rollout/logprob_diff_max")
		if !(difference < 1e-4) {
			t.Errorf("sampler and trainer differ by %g", difference)
		}
		if rce, _ := r.Get("rce/p99"); !(rce < 1e-4) {
			t.Errorf("RCE error %g", rce)
		}
	}
	if kl, _ := records[0].Get("losses/approx_kl"); math.Abs(kl) > 1e-6 {
		t.Errorf("KL to the behaviour policy is %g before the first update", kl)
	}
}

// The teacher term alone brings the student near the teacher.
func TestTeacherTermLowersTeacherKL(t *testing.T) {
	c := tinyPPO(TeacherAligned)
	c.Steps, c.PolicyDelaySteps, c.CheckpointEvery, c.LearningRate = 30, 1000, 100, 1e-2
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	records := timeless(t, dir)
	first, _ := records[0].Get("actor/teacher_kl")
	last, _ := records[len(records)-1].Get("actor/teacher_kl")
	if !(last < first/2) {
		t.Errorf("teacher KL went from %.3f to %.3f, want it halved", first, last)
	}
}

// Wrong positions in packing are found, and training stops.
func TestRCEViolationStopsTraining(t *testing.T) {
	d := tinyModel(t, 1)
	trajectories, err := fakeRollout(4)(context.Background(), 0, d, 3)
	if err != nil {
		t.Fatal(err)
	}
	var packed []*align.Packed
	for _, x := range trajectories {
		p, err := align.Compile(x, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, p)
	}
	good, err := MeasureRCE(defaultCompute(), d, trajectories, packed, align.Options{}, 1)
	if err != nil || good.Check(1e-4) != nil || good.Actions != 4*3*fakeTokens {
		t.Errorf("packed as compiled: %+v, %v", good, err)
	}
	for i := range packed[0].Positions {
		packed[0].Positions[i] = int32(2 * i)
	}
	bad, err := MeasureRCE(defaultCompute(), d, trajectories, packed, align.Options{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.Check(1e-4); !errors.Is(err, ErrRCE) {
		t.Errorf("wrong positions: %+v, %v", bad, err)
	}
}

func TestPPOCountsRejectedTrajectories(t *testing.T) {
	c := tinyPPO(TeacherNone)
	inner := fakeRollout(6)
	rollout := func(change func(i int, x *trace.Trajectory)) Rollout {
		return func(ctx context.Context, step int, policy *model.Decoder, seed uint64) ([]*trace.Trajectory, error) {
			all, err := inner(ctx, step, policy, seed)
			for i, x := range all {
				change(i, x)
			}
			return all, err
		}
	}
	run := func(c PPOConfig, dir string, change func(i int, x *trace.Trajectory)) error {
		d, err := PPO(context.Background(), c, PPOParts{Initial: tinyModel(t, 1), Rollout: rollout(change), Dir: dir})
		if d != nil {
			d.Free()
		}
		return err
	}
	c.Steps = 1
	dir := t.TempDir()
	err := run(c, dir, func(i int, x *trace.Trajectory) {
		switch i {
		case 0:
			x.End = trace.EndRetrieval
		case 1:
			x.Calls[1].Context[0]++ // contradicts the prefix
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r := timeless(t, dir)[0]
	for name, want := range map[string]float64{
		"align/rejected/failed": 1, "align/rejected/inconsistent": 1, "align/rejected/packed_tokens": 0,
		"rollout/trajectories": 4, "ends/retrieval": 1, "ends/answered": 5,
	} {
		if got, _ := r.Get(name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	c.PackedTokensMax = 10
	if err := run(c, t.TempDir(), func(int, *trace.Trajectory) {}); err == nil || !strings.Contains(err.Error(), "limit 10") {
		t.Errorf("all trajectories over the limit: %v", err)
	}
	c.PackedTokensMax = 0
	if err := run(c, t.TempDir(), func(_ int, x *trace.Trajectory) { x.Sampler.Temperature = 0.5 }); err == nil || !strings.Contains(err.Error(), "temperature 0.5") {
		t.Errorf("another temperature: %v", err)
	}
	if err := run(c, t.TempDir(), func(_ int, x *trace.Trajectory) { x.Sampler.TopP = 0.9 }); err == nil || !strings.Contains(err.Error(), "top-p 0.9") {
		t.Errorf("truncated sampling: %v", err)
	}
}
