package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align/export"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/torch/safetensors"
	"github.com/memopd/memopd-bench/trace"
)

// bundled is a configuration with a bundle of every step.
func bundled(teacher string) PPOConfig {
	c := tinyPPO(teacher)
	c.BundleEvery, c.PolicyDelaySteps, c.EntropyCoefficient = 1, 0, 0.01
	c.TokensPerMinibatch, c.TokensPerMicrobatch = 100, 70 // several of each
	return c
}

// parts are those that runPPO trains with.
func parts(t *testing.T, c PPOConfig, dir string) PPOParts {
	p := PPOParts{Initial: tinyModel(t, 1), Dir: dir}
	if c.Teacher != TeacherNone {
		p.Teacher = tinyModel(t, 2)
	}
	return p
}

// replayed runs a replay that has to come to an end.
func replayed(t *testing.T, c PPOConfig, p PPOParts, o ReplayOptions) *ReplayReport {
	t.Helper()
	r, err := Replay(c, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text lists the stages of a report that differ.
func (r *ReplayReport) text() string {
	var b strings.Builder
	for _, s := range r.Stages {
		if s.Differences > 0 {
			fmt.Fprintf(&b, "%s: %d of %d differ, first %s: %s, was %s\n", s.Name, s.Differences, s.Values, s.Where, s.Replayed, s.Recorded)
		}
	}
	return b.String()
}

// Every microbatch of a step is the same bit for bit when it is run again: from the
// initial weights, a checkpoint or the bundle's own, with every teacher and critic.
func TestReplayIsBitIdentical(t *testing.T) {
	for _, x := range []struct {
		teacher, critic string
		change          func(*PPOConfig)
	}{
		{TeacherNone, CriticHead, func(c *PPOConfig) { c.KLCoefficient = 0 }},
		{TeacherPersistent, CriticHead, func(c *PPOConfig) { c.Ratio, c.LogitsPerChunk = RatioSampler, 7 }},
		{TeacherAligned, CriticDecoder, func(c *PPOConfig) { c.TeacherFirstCall, c.EpochsPerStep = 1, 2 }},
		{TeacherAligned, CriticHead, func(c *PPOConfig) { c.BundleWeights = true }},
	} {
		t.Run(x.teacher+"/"+x.critic, func(t *testing.T) {
			c := bundled(x.teacher)
			c.Critic, c.CheckpointKeepEvery = x.critic, 2
			x.change(&c)
			dir := t.TempDir()
			if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
				t.Fatal(err)
			}
			all, can, err := Bundles(dir)
			want := []int{1, 3} // checkpoints of steps 2 and 4
			if c.BundleWeights {
				want = all
			}
			if err != nil || !slices.Equal(all, []int{1, 2, 3, 4}) || !slices.Equal(can, want) {
				t.Fatalf("bundles of steps %v, %v can be replayed (%v), want %v", all, can, err, want)
			}
			p := parts(t, c, dir)
			before := torch.Live()
			for _, step := range can {
				b, err := ReadBundle(BundlePath(dir, step))
				if err != nil {
					t.Fatal(err)
				}
				if len(b.Micros) < 3 || b.Micros[len(b.Micros)-1].Minibatch == 0 {
					t.Fatalf("step %d has microbatches %+v: too few to test anything", step, b.Micros)
				}
				for micro := range b.Micros {
					r := replayed(t, c, p, ReplayOptions{Bundle: BundlePath(dir, step), Micro: micro})
					if !r.Passed() || r.First != "" || len(r.Notes) > 0 {
						t.Errorf("step %d, microbatch %d: %v\n%s", step, micro, r.Notes, r.text())
					}
					checkStages(t, c, r)
				}
			}
			if n := torch.Live() - before; n != 0 {
				t.Errorf("%d tensors outlive the replays", n)
			}
		})
	}
}

// checkStages holds that each stage compared as many numbers as there are.
func checkStages(t *testing.T, c PPOConfig, r *ReplayReport) {
	t.Helper()
	names := []string{StageMachine, StageConfig, StageWeights, StageIDs, StageLayout, StageRollout, StageOrder, StageBehaviour, StageReference, StageValues, StageAdvantages, StageLoss, StageGradient}
	for i, s := range r.Stages {
		if s.Name != names[i] {
			t.Errorf("stage %d is %s, want %s", i, s.Name, names[i])
		}
		if !s.Equal() && !(s.Name == StageReference && c.KLCoefficient == 0) {
			t.Errorf("stage %s compared %d values, %d differ", s.Name, s.Values, s.Differences)
		}
	}
	if len(r.Stages) != len(names) {
		t.Errorf("%d stages, want %d", len(r.Stages), len(names))
	}
	if last := r.Stages[len(r.Stages)-1]; r.Micro > 0 && last.Note == "" {
		t.Error("a gradient of which norms alone are known is said to be the same without a word")
	}
}

// Whatever was changed is named at the stage that it belongs to.
func TestReplayNamesTheStage(t *testing.T) {
	c := bundled(TeacherPersistent)
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	bundle := BundlePath(dir, 1)
	b, err := ReadBundle(bundle)
	if err != nil {
		t.Fatal(err)
	}
	first := b.Micros[0].Samples[0]
	ledger := func(change func(all []*trace.Trajectory)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, ledgerFile)
			all, err := trace.ReadAll(path)
			if err == nil {
				change(all)
				err = trace.WriteAll(path, all)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	column := func(name string, at int) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			tensors, metadata, err := safetensors.ReadFile(filepath.Join(dir, batchFile))
			if err != nil {
				t.Fatal(err)
			}
			values, err := safetensors.Values[float32](tensors[name])
			if err != nil {
				t.Fatal(err)
			}
			offsets, err := safetensors.Values[int64](tensors["action_offsets"])
			if err != nil {
				t.Fatal(err)
			}
			at := int64(at) + offsets[first] // of a trajectory in the first microbatch
			values[at] = math.Nextafter32(values[at], 9)
			tensors[name] = safetensors.Of(name, values)
			if err := safetensors.WriteFile(filepath.Join(dir, batchFile), slices.Collect(maps.Values(tensors)), metadata); err != nil {
				t.Fatal(err)
			}
		}
	}
	integer := func(name string, at int) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			tensors, metadata, err := safetensors.ReadFile(filepath.Join(dir, batchFile))
			if err != nil {
				t.Fatal(err)
			}
			values, err := safetensors.Values[int32](tensors[name])
			if err != nil {
				t.Fatal(err)
			}
			values[at]++
			tensors[name] = safetensors.Of(name, values)
			if err := safetensors.WriteFile(filepath.Join(dir, batchFile), slices.Collect(maps.Values(tensors)), metadata); err != nil {
				t.Fatal(err)
			}
		}
	}
	described := func(change func(*Bundle)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			b, err := ReadBundle(dir)
			if err == nil {
				change(b)
				err = writeJSON(filepath.Join(dir, bundleFile), b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	untouched := func(*testing.T, string) {}
	for _, x := range []struct {
		name   string
		tamper func(t *testing.T, bundle string)
		change func(c *PPOConfig, p *PPOParts)
		stage  string
		where  string
	}{
		{"an id of the ledger", ledger(func(all []*trace.Trajectory) {
			last := &all[0].Calls[2]
			last.Output[3] = (last.Output[3] + 1) % tinyVocabulary
		}), nil, StageIDs, `(call 2, output token 3)`},
		{"a broken ledger", func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, ledgerFile), 100); err != nil {
				t.Fatal(err)
			}
		}, nil, StageIDs, "the ledger"},
		{"a trajectory less", func(t *testing.T, dir string) {
			path := filepath.Join(dir, ledgerFile)
			all, err := trace.ReadAll(path)
			if err == nil {
				err = trace.WriteAll(path, all[1:])
			}
			if err != nil {
				t.Fatal(err)
			}
		}, nil, StageIDs, "trajectories that were compiled"},
		{"a recorded log-prob", ledger(func(all []*trace.Trajectory) { all[2].Calls[1].LogProbs[0] -= 0.5 }), nil, StageRollout, `"step0/2", call 1, token 0`},
		{"a reward", ledger(func(all []*trace.Trajectory) { all[3].Reward += 1 }), nil, StageRollout, `reward of trajectory "step0/3"`},
		{"other config", untouched, func(c *PPOConfig, _ *PPOParts) { c.ClipRange = 0.01 }, StageConfig, "clip_range"},
		{"another seed", untouched, func(c *PPOConfig, _ *PPOParts) { c.Seed = 8 }, StageConfig, "seed"},
		{"another student", untouched, func(_ *PPOConfig, p *PPOParts) { p.Initial = nudged(t, 1) }, StageWeights, "the actor's model.layers.1.mlp.down_proj.weight"},
		{"another teacher", untouched, func(_ *PPOConfig, p *PPOParts) { p.Teacher = nudged(t, 2) }, StageWeights, "the teacher's model.layers.1.mlp.down_proj.weight"},
		{"nothing", described(func(*Bundle) {}), nil, "", ""},
		{"a position", integer("positions", 60), nil, StageLayout, "position of"},
		{"a prediction position", integer("action_predict", 7), nil, StageLayout, "action of"},
		{"an old log-prob", column("action_old_log_prob", 0), nil, StageBehaviour, "token 0"},
		{"a reference log-prob", column("action_reference_log_prob", 1), nil, StageReference, "token 1"},
		{"a value", column("action_value", 2), nil, StageValues, "token 2"},
		{"an advantage", column("action_advantage", 4), nil, StageAdvantages, "advantage of"},
		{"a return", column("action_return", 2), nil, StageAdvantages, "return of"},
		{"a loss", described(func(b *Bundle) { b.Micros[0].TeacherKL *= 1 + 1e-15 }), nil, StageLoss, "microbatch 0: KL to the teacher"},
		{"a gradient", described(func(b *Bundle) { b.Gradient[3].SHA256 = "0" }), nil, StageGradient, "hash of the gradient of actor."},
		{"an order", described(func(b *Bundle) { b.Micros[0].Samples = []int{0} }), nil, StageOrder, "microbatch 0"},
		{"what the teacher saw", described(func(b *Bundle) { b.Teacher[1].Tokens-- }), nil, StageLayout, "hash of what the teacher sees"},
	} {
		t.Run(x.name, func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "bundle")
			if err := os.CopyFS(copied, os.DirFS(bundle)); err != nil {
				t.Fatal(err)
			}
			x.tamper(t, copied)
			config, p := c, parts(t, c, dir)
			if x.change != nil {
				x.change(&config, &p)
			}
			r := replayed(t, config, p, ReplayOptions{Bundle: copied})
			if r.First != x.stage || r.Passed() != (x.stage == "") {
				t.Fatalf("first difference in %q (passed: %v), want %q\n%s", r.First, r.Passed(), x.stage, r.text())
			}
			for _, s := range r.Stages {
				if s.Name == x.stage && !strings.Contains(s.Where, x.where) {
					t.Errorf("it is said to be in %q, want %q in it", s.Where, x.where)
				}
			}
		})
	}
}

// nudged is tinyModel with one weight changed in its last bit.
func nudged(t *testing.T, seed uint64) *model.Decoder {
	d := tinyModel(t, seed)
	s := torch.NewScope()
	defer s.Close()
	for _, p := range d.Parameters() {
		if p.Name == "model.layers.1.mlp.down_proj.weight" {
			values := p.Tensor.Float32s()
			values[5] = math.Nextafter32(values[5], 9)
			torch.NoGrad(func() { p.Tensor.Copy_(torch.FromFloat32(values, p.Tensor.Shape()...)) })
		}
	}
	return d
}

// A tolerance lets pass what is computed, never other ids or weights; the same bits are
// claimed of nothing that differs.
func TestReplayTolerance(t *testing.T) {
	c := bundled(TeacherAligned)
	c.Steps = 1
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	bundle := BundlePath(dir, 1)
	path := filepath.Join(bundle, batchFile)
	b, err := export.ReadSafetensors(path)
	if err != nil {
		t.Fatal(err)
	}
	described, err := ReadBundle(bundle)
	if err != nil {
		t.Fatal(err)
	}
	b.Sequences[described.Micros[0].Samples[0]].Columns[columnBehaviour][0] += 1e-4
	if err := export.WriteSafetensors(path, b); err != nil {
		t.Fatal(err)
	}
	p := parts(t, c, dir)
	strict, loose := replayed(t, c, p, ReplayOptions{Bundle: bundle}), replayed(t, c, p, ReplayOptions{Bundle: bundle, Tolerance: 1})
	if strict.Passed() || !loose.Passed() || loose.First != StageBehaviour {
		t.Errorf("without a tolerance passed: %v, with one: %v, first difference %q", strict.Passed(), loose.Passed(), loose.First)
	}
	if len(loose.Notes) != 1 || !strings.Contains(loose.Notes[0], batchFile+" is not as it was written") {
		t.Errorf("notes %q", loose.Notes)
	}
	p.Initial = nudged(t, 1)
	if replayed(t, c, p, ReplayOptions{Bundle: bundle, Tolerance: 1}).Passed() {
		t.Error("other weights pass with a tolerance")
	}
}

// What cannot be replayed is said, with what can.
func TestReplayRefuses(t *testing.T) {
	c := bundled(TeacherNone)
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	p := parts(t, c, dir)
	for _, x := range []struct {
		o    ReplayOptions
		want string
	}{
		{ReplayOptions{Bundle: BundlePath(dir, 3)}, "steps that can be replayed: 1"},
		{ReplayOptions{Bundle: BundlePath(dir, 9)}, "step-000009"},
		{ReplayOptions{Bundle: BundlePath(dir, 1), Micro: 99}, "microbatch 99 of step 1, which has"},
		{ReplayOptions{Bundle: BundlePath(dir, 1), Micro: -1}, "microbatch -1"},
	} {
		if _, err := Replay(c, p, x.o); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.o, err, x.want)
		}
	}
	p.Teacher = tinyModel(t, 2)
	if _, err := Replay(c, p, ReplayOptions{Bundle: BundlePath(dir, 1)}); err == nil {
		t.Error("a teacher where the run had none was taken")
	}
}

// Bundles change nothing of a run; those of steps that a resumed run does again, and
// what a killed one left, are removed, and the new ones are the same.
func TestBundlesChangeNothingAndSurviveAKill(t *testing.T) {
	c := bundled(TeacherAligned)
	without, with := c, t.TempDir()
	without.BundleEvery = 0
	a, err := runPPO(t, context.Background(), without, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	c.BundleWeights = true
	b, err := runPPO(t, context.Background(), c, with, false)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(weights(a), weights(b)) {
		t.Error("a run with bundles ends with other weights")
	}
	resumed := t.TempDir()
	half := c
	half.Steps, half.BundleEvery = 2, 1
	if _, err := runPPO(t, context.Background(), half, resumed, false); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(resumed, BundlesFolder, temporaryPrefix+"1")
	stale := BundlePath(resumed, 7)
	if err := errors.Join(os.Mkdir(torn, 0o755), os.Mkdir(stale, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := runPPO(t, context.Background(), c, resumed, true); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(resumed, BundlesFolder))
	if err != nil || len(entries) != 4 {
		t.Errorf("the resumed run has bundles %v (%v), want four", entries, err)
	}
	for step := 1; step <= 4; step++ {
		x, err := ReadBundle(BundlePath(with, step))
		if err != nil {
			t.Fatal(err)
		}
		y, err := ReadBundle(BundlePath(resumed, step))
		if err != nil {
			t.Fatal(err)
		}
		x.Config, y.Config = PPOConfig{}, PPOConfig{}
		for _, b := range []*Bundle{x, y} { // the ledger has seconds
			delete(b.Files, ledgerFile)
		}
		if asJSON(t, x) != asJSON(t, y) {
			t.Errorf("step %d of the resumed run has another bundle", step)
		}
	}
}

// An update that breaks off leaves its bundle, which says why.
func TestDivergedStepLeavesItsBundle(t *testing.T) {
	c := bundled(TeacherNone)
	c.LearningRate, c.KLCoefficient = 1e30, 0
	c.EpochsPerStep = 4
	dir := t.TempDir()
	_, err := runPPO(t, context.Background(), c, dir, false)
	if err == nil || !strings.Contains(err.Error(), "diverged") {
		t.Fatalf("a learning rate of 1e30 ends with %v", err)
	}
	b, err := ReadBundle(BundlePath(dir, 1))
	if err != nil || !strings.Contains(b.Error, "diverged") {
		t.Fatalf("%v, error %q", err, b.Error)
	}
	r := replayed(t, c, parts(t, c, dir), ReplayOptions{Bundle: BundlePath(dir, 1), Micro: len(b.Micros) - 1})
	if !r.Passed() || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "not finished") {
		t.Errorf("the diverged step: %v\n%s", r.Notes, r.text())
	}
}

// A step whose packed log-probs are not those of its calls stops the run and leaves its
// ledger and weights.
func TestViolatedStepLeavesItsBundle(t *testing.T) {
	c := bundled(TeacherNone)
	c.RCETolerance, c.BundleEvery = 1e-30, 100
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); !errors.Is(err, ErrRCE) {
		t.Fatalf("a tolerance of 1e-30 ends with %v", err)
	}
	bundle := BundlePath(dir, 1)
	all, err := trace.ReadAll(filepath.Join(bundle, ledgerFile))
	if err != nil || len(all) != c.PromptsPerStep {
		t.Fatalf("%v, %d trajectories", err, len(all))
	}
	d, err := model.Load(filepath.Join(bundle, weightsPart, "actor"), model.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	if !slices.Equal(weights(d), weights(tinyModel(t, 1))) {
		t.Error("the bundle has other weights than the step had")
	}
	if _, err := Replay(c, parts(t, c, dir), ReplayOptions{Bundle: bundle}); err == nil || !strings.Contains(err.Error(), "broke off before its update: rollout context equivalence") {
		t.Errorf("its replay: %v", err)
	}
	c.BundleEvery = 0
	dir = t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); !errors.Is(err, ErrRCE) {
		t.Fatal(err)
	}
	if all, _, err := Bundles(dir); err != nil || len(all) != 0 {
		t.Errorf("a run without bundles has %v (%v)", all, err)
	}
}
