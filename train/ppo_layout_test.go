package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// half takes the first half of an output for memory.
func half(t *trace.Trajectory, call int) int { return len(t.Calls[call].Output) / 2 }

// laidOut is a step's batch in a layout, compiled and scored, and its run.
func laidOut(t *testing.T, c PPOConfig) (*ppoRun, *stepBatch, []*trace.Trajectory) {
	t.Helper()
	r, err := openPPO(c, PPOParts{Initial: tinyModel(t, 1), Teacher: teacherOf(t, c), Dir: t.TempDir(), ThinkLength: half})
	if err != nil {
		t.Fatal(err)
	}
	all, err := fakeRollout(6)(context.Background(), 0, r.policy, 3)
	if err != nil {
		t.Fatal(err)
	}
	s := torch.NewScope()
	t.Cleanup(func() {
		s.Close()
		r.free()
		r.policy.Free()
	})
	b, err := compileBatch(c, r.options(), all)
	if err != nil {
		t.Fatal(err)
	}
	r.score(b)
	if err := r.estimate(b); err != nil {
		t.Fatal(err)
	}
	return r, b, all
}

// Every score of a step is that of the layout's rows: the policy's, the reference's,
// the critic's, and with an aligned teacher the teacher's. Rows are those that align
// makes, divided by ThinkLength for mem1.
func TestScoresAreTakenInTheLayout(t *testing.T) {
	for _, name := range trainLayouts() {
		c := tinyPPO(TeacherAligned)
		c.Layout, c.Critic, c.TeacherEstimator = name, CriticDecoder, EstimatorSampled
		r, b, all := laidOut(t, c)
		l, err := align.LayoutNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		invented := 0
		for i, x := range b.samples {
			rows, err := l.Rows(all[i], align.Options{ThinkLength: half})
			if err != nil || len(rows) != 1 {
				t.Fatalf("%s: %v, %d rows", name, err, len(rows))
			}
			torch.NoGrad(func() {
				scope := torch.NewScope()
				defer scope.Close()
				ids := torch.FromInt64(actionIDs(rows))
				logProbs := func(logits *torch.Tensor) []float64 { return LogProbs(LogDistribution(logits, 1), ids).Float64s() }
				own := logProbs(r.policy.Logits(r.policy.Hidden(rows)))
				near(t, name+": behaviour", wide(x.behaviour), own, 1e-5)
				near(t, name+": reference", wide(x.reference), own, 1e-5) // the policy has not moved yet
				near(t, name+": teacher", wide(x.teacher), logProbs(r.p.Teacher.Logits(r.p.Teacher.Hidden(rows))), 1e-5)
				near(t, name+": values", wide(x.values), r.critic.values(r.critic.decoder.Hidden(rows)).Float64s(), 1e-5)
			})
			if len(x.Advantage) != len(rows[0].Actions) || !slices.Equal(ofSampled(x.packed, x.sampler), callLogProbs(all[i])) {
				t.Errorf("%s: %d advantages of %d actions, or other log-probs of the sampler", name, len(x.Advantage), len(rows[0].Actions))
			}
			invented += len(rows[0].Actions) - all[i].SampledTokens()
		}
		if (invented > 0) != c.invents() {
			t.Errorf("%s: %d spurious actions", name, invented)
		}
	}
}

func wide(x []float32) []float64 {
	all := make([]float64, len(x))
	for i, v := range x {
		all[i] = float64(v)
	}
	return all
}

// callLogProbs are a trajectory's, call by call.
func callLogProbs(t *trace.Trajectory) []float32 {
	var all []float32
	for _, c := range t.Calls {
		all = append(all, c.LogProbs...)
	}
	return all
}

// A run in wrong states goes through all its steps, says what RCE found and that
// nothing came of it; its ratios are 1 before the first update, and its weights
// are not those of the aligned run. With right states under a wrong mask RCE holds.
func TestWrongLayoutsTrainAndSaySo(t *testing.T) {
	seen := map[float32]string{}
	for _, name := range trainLayouts() {
		c := tinyPPO(TeacherNone)
		c.Layout, c.Steps, c.PolicyDelaySteps, c.TokensPerMinibatch = name, 2, 0, 100000
		dir := t.TempDir()
		p := PPOParts{Initial: tinyModel(t, 1), Rollout: fakeRollout(6), Dir: dir, ThinkLength: half}
		d, err := PPO(context.Background(), c, p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(d.Free)
		get := func(r Record, name string) float64 { v, _ := r.Get(name); return v }
		right := name == LayoutAligned || c.invents()
		for _, r := range timeless(t, dir) {
			enforced, p99, actions := get(r, "rce/enforced"), get(r, "rce/p99"), get(r, "rce/actions")
			if (enforced == 1) != (name == LayoutAligned) || (p99 <= c.RCETolerance) != right || actions != 2*3*fakeTokens {
				t.Errorf("%s: rce/enforced %g, p99 %g over %g actions", name, enforced, p99, actions)
			}
			if spurious := get(r, "align/spurious_actions"); (spurious > 0) != c.invents() {
				t.Errorf("%s: %g spurious actions", name, spurious)
			}
			// The sampler's own states are others, but where the layout has them.
			if far := get(r, "rollout/logprob_diff_max"); (far < 1e-4) != right {
				t.Errorf("%s: log-probs of sampler and trainer are %g apart", name, far)
			}
			if n := get(r, "response_length/mean"); n != fakeTokens {
				t.Errorf("%s: mean response of %g tokens", name, n)
			}
			if ratio := get(r, "actor/ratio_max"); !(math.Abs(ratio-1) < 1e-4) { // one mini-batch a step
				t.Errorf("%s: ratio %g before the first update", name, ratio)
			}
		}
		if other := seen[weights(d)[0]]; other != "" {
			t.Errorf("%s trains as %s does", name, other)
		}
		seen[weights(d)[0]] = name
	}
}

// A bundle of a step in any layout, and by any estimator, is replayed bit for bit; with
// another layout it differs by name.
func TestReplayInOtherLayoutsAndEstimators(t *testing.T) {
	for _, x := range []struct{ layout, teacher, estimator string }{
		{"mem1", TeacherAligned, EstimatorSampled},
		{"response-mask", TeacherAligned, EstimatorFull},
		{"both", TeacherPersistent, EstimatorTopK},
		{"persistent", TeacherNone, EstimatorFull},
	} {
		c := bundled(x.teacher)
		c.Layout, c.TeacherEstimator, c.TeacherTopK, c.Steps = x.layout, x.estimator, 4, 1
		p := PPOParts{Initial: tinyModel(t, 1), Teacher: teacherOf(t, c), Dir: t.TempDir(), ThinkLength: half, Rollout: fakeRollout(c.PromptsPerStep)}
		d, err := PPO(context.Background(), c, p)
		if err != nil {
			t.Fatal(err)
		}
		d.Free()
		b, err := ReadBundle(BundlePath(p.Dir, 1))
		if err != nil {
			t.Fatal(err)
		}
		for micro := range b.Micros {
			report := replayed(t, c, p, ReplayOptions{Bundle: BundlePath(p.Dir, 1), Micro: micro})
			if report.First != "" || !report.Passed() {
				t.Errorf("%+v, microbatch %d:\n%s", x, micro, report.text())
			}
		}
		c.Layout = LayoutAligned
		if report := replayed(t, c, p, ReplayOptions{Bundle: BundlePath(p.Dir, 1)}); report.First != StageConfig || report.Passed() {
			t.Errorf("%+v replayed as aligned: first difference %q", x, report.First)
		}
	}
}

// teacherOf is a teacher where the configuration has one.
func teacherOf(t *testing.T, c PPOConfig) *model.Decoder {
	if c.Teacher == TeacherNone {
		return nil
	}
	return tinyModel(t, 2)
}

// What was begun before there were estimators and layouts goes on as it was.
func TestEarlierSettingsAreFullAndAligned(t *testing.T) {
	c := MiniPPO()
	before := c
	before.TeacherEstimator, before.TeacherTopK, before.Layout = "", 0, ""
	if before.since(); before != c {
		t.Errorf("%+v, want %+v", before, c)
	}
	c.TeacherEstimator, c.Layout, c.TeacherTopK = EstimatorTopK, "mem1", 3
	kept := c
	if kept.since(); kept != c {
		t.Errorf("%+v, want %+v", kept, c)
	}
}
