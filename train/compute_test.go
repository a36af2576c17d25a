package train

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// needBFloat16 skips where this libtorch does not train in bfloat16 on the CPU.
func needBFloat16(t *testing.T) {
	t.Helper()
	d := tinyModel(t, 1)
	err := torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		c := Compute{Device: "cpu", DType: BFloat16}
		x := d.CloneTo(c.Trained())
		defer x.Free()
		c.BackwardNLL(x, drill(tinySFT(), tinyVocabulary, 0), 1)
		return nil
	})
	if err != nil {
		t.Skipf("libtorch %s does not train in bfloat16 on this processor: %v", torch.Version(), err)
	}
}

// bf16 runs of PPO, with layers run again, frozen models kept away and chunks: a
// rerun is bit-identical, and so is a run that was stopped and resumed. Weights and
// moments are float32 throughout.
func TestBFloat16RerunAndResumeAreIdentical(t *testing.T) {
	needBFloat16(t)
	for _, kind := range []string{CriticHead, CriticDecoder} {
		c := tinyPPO(TeacherAligned)
		c.Critic, c.OffloadFrozen = kind, true
		c.Compute = Compute{Device: "cpu", DType: BFloat16, CheckpointLayers: true, LogitsPerChunk: 7}
		straight, resumed := t.TempDir(), t.TempDir()
		ctx := context.Background()
		a, err := runPPO(t, ctx, c, straight, false)
		if err != nil {
			t.Fatal(err)
		}
		half := c
		half.Steps = 2
		if _, err := runPPO(t, ctx, half, resumed, false); err != nil {
			t.Fatal(err)
		}
		b, err := runPPO(t, ctx, c, resumed, true)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(weights(a), weights(b)) || slices.Equal(weights(a), weights(tinyModel(t, 1))) {
			t.Errorf("critic %s: a resumed run ends with other weights, or nothing was trained", kind)
		}
		want := timeless(t, straight)
		if got := timeless(t, resumed); asJSON(t, got) != asJSON(t, want) {
			t.Errorf("critic %s: a resumed run has other metrics:\n%s\n%s", kind, asJSON(t, got), asJSON(t, want))
		}
		for _, p := range a.Parameters() {
			if p.Tensor.DType() != torch.Float32 {
				t.Errorf("%s is stored as %v", p.Name, p.Tensor.DType())
			}
		}
		// The gate is float32's; bf16's own difference is larger by orders.
		exact, _ := want[0].Get("rce/p99")
		own, ok := want[0].Get("rce/p99_compute")
		if !ok || exact > 1e-5 || own < 10*exact {
			t.Errorf("RCE is %g in float32 and %g (%v) in bfloat16", exact, own, ok)
		}
	}
}

// A float32 run has no numbers of another type.
func TestFloat32RecordsNoOtherRCE(t *testing.T) {
	dir := t.TempDir()
	c := tinyPPO(TeacherNone)
	c.Steps = 1
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	for _, m := range timeless(t, dir)[0] {
		if strings.HasSuffix(m.Name, "_compute") {
			t.Errorf("metric %s in a float32 run", m.Name)
		}
	}
}

// Chunks, layers run again and frozen models kept away leave a float32 run as it
// is, up to rounding; those that round nothing leave it bit for bit.
func TestMemorySettingsChangeNothing(t *testing.T) {
	run := func(change func(*PPOConfig)) []float32 {
		c := tinyPPO(TeacherAligned)
		c.Steps, c.Critic = 3, CriticDecoder
		change(&c)
		d, err := runPPO(t, context.Background(), c, t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		return weights(d)
	}
	want := run(func(*PPOConfig) {})
	if !slices.Equal(run(func(c *PPOConfig) { c.OffloadFrozen = true }), want) {
		t.Error("frozen models kept away change the weights")
	}
	for name, change := range map[string]func(*PPOConfig){
		"chunks":        func(c *PPOConfig) { c.LogitsPerChunk = 5 },
		"checkpointing": func(c *PPOConfig) { c.CheckpointLayers = true },
	} {
		got := run(change)
		for i := range want {
			// AdamW divides by the gradient's size: rounding of a gradient near 0 shows.
			if math.Abs(float64(got[i]-want[i])) > 2e-3 {
				t.Errorf("%s: weight %d is %g, want %g", name, i, got[i], want[i])
				break
			}
		}
	}
}

// A model at rest is used as it is; with frozen models kept away that is the host,
// in the type that the run computes in.
func TestModelsAtRestAreNotCopied(t *testing.T) {
	c := PaperPPO()
	if p := c.AtRest(); p.Device != "cpu" || p.Weights != torch.BFloat16 {
		t.Errorf("at rest the paper's teacher has the placement %+v", p)
	}
	c.OffloadFrozen = false
	if p := c.AtRest(); p != c.Frozen() || p.Device != "cuda" {
		t.Errorf("not kept away, the teacher has the placement %+v", p)
	}
	c = tinyPPO(TeacherAligned)
	d := tinyModel(t, 1)
	if z := c.freeze(d); z.own || z.decoder != d {
		t.Error("a model that is where the run wants it was copied")
	}
	c.DType = BFloat16
	z := c.freeze(d)
	defer z.free()
	if !z.own || z.decoder.Parameters()[0].Tensor.DType() != torch.BFloat16 {
		t.Errorf("the copy is %v, in %v", z.own, z.decoder.Parameters()[0].Tensor.DType())
	}
}

// SFT in bf16 learns what it learns in float32, and resumes to the bit.
func TestBFloat16SFT(t *testing.T) {
	needBFloat16(t)
	c := tinySFT()
	c.Compute = Compute{Device: "cpu", DType: BFloat16, CheckpointLayers: true, LogitsPerChunk: 9}
	straight, resumed := t.TempDir(), t.TempDir()
	a, err := runSFT(t, context.Background(), c, straight, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = SFT(ctx, c, SFTParts{Model: tinyModel(t, 1), Source: randomSource, Dir: resumed, Log: func(Record) { cancel() }})
	if err == nil {
		t.Fatal("a cancelled run returned no error")
	}
	b, err := runSFT(t, context.Background(), c, resumed, true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(weights(a), weights(b)) {
		t.Error("a resumed run ends with other weights")
	}
	c.Compute = defaultCompute()
	exact := t.TempDir()
	if _, err := runSFT(t, context.Background(), c, exact, false); err != nil {
		t.Fatal(err)
	}
	x, y := timeless(t, straight), timeless(t, exact)
	for i := range x {
		got, _ := x[i].Get("train/loss")
		want, _ := y[i].Get("train/loss")
		if !math.IsNaN(want) && math.Abs(got-want) > 0.02*want {
			t.Errorf("record %d: loss %g in bfloat16, %g in float32", i, got, want)
		}
	}
}

// paddedModel is a decoder with more rows than base, equal to it in those that
// base has, limited to as many ids.
func paddedModel(t *testing.T, base *model.Decoder, rows int) *model.Decoder {
	t.Helper()
	c := base.Config
	c.VocabSize = rows
	d, err := model.New(c, 99)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Free)
	s := torch.NewScope()
	defer s.Close()
	torch.NoGrad(func() {
		from := base.Parameters()
		for i, p := range d.Parameters() {
			into := p.Tensor.Detach()
			into.Narrow(0, 0, from[i].Tensor.Dim(0)).Copy_(from[i].Tensor)
		}
	})
	if err := d.LimitVocab(base.Config.VocabSize); err != nil {
		t.Fatal(err)
	}
	return d
}

// Student and teacher with unequal numbers of rows beyond their tokenizer, as
// Qwen2.5-3B (151,936) and 7B (152,064) have: the KL is that over the common ids,
// and 0 where both are the same model but for the padding.
func TestKLOverUnequalRows(t *testing.T) {
	for _, same := range []bool{true, false} {
		base, seed := tinyModel(t, 1), uint64(1)
		if !same {
			seed = 2
		}
		student, teacher := paddedModel(t, base, tinyVocabulary+2), paddedModel(t, tinyModel(t, seed), tinyVocabulary+5)
		c := tinyPPO(TeacherAligned)
		c.PolicyDelaySteps, c.TeacherWeight = 1000, 1
		r, err := openPPO(c, PPOParts{Initial: student, Teacher: teacher, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if r.policy.Vocab() != tinyVocabulary {
			t.Errorf("the policy has %d ids", r.policy.Vocab())
		}
		trajectories, err := fakeRollout(4)(context.Background(), 0, r.policy, 3)
		if err != nil {
			t.Fatal(err)
		}
		s := torch.NewScope()
		b, err := compileBatch(c, c.limits(), trajectories)
		if err != nil {
			t.Fatal(err)
		}
		r.score(b)
		if err := r.estimate(b); err != nil {
			t.Fatal(err)
		}
		b.teacherHead = r.teacher.head()
		var stats updateStats
		r.backward(b, b.samples, minibatchTotals{float64(b.actions), float64(b.actions)}, &stats)
		rows := packedRows(b.samples)
		logits := func(d *model.Decoder) *torch.Tensor { // of the common ids, from all rows
			if err := d.LimitVocab(d.Config.VocabSize); err != nil {
				t.Fatal(err)
			}
			return d.Logits(d.Hidden(rows)).Narrow(1, 0, tinyVocabulary)
		}
		want := ReverseKL(LogDistribution(logits(student), 1), LogDistribution(logits(teacher), 1)).Sum().Item()
		if same && math.Abs(stats.Teacher) > 1e-6*float64(b.actions) {
			t.Errorf("KL of a model to itself is %g", stats.Teacher)
		}
		near(t, fmt.Sprintf("KL, same weights %v", same), []float64{stats.Teacher}, []float64{want}, 1e-5)
		if norm := torch.GradNorm(r.actorOptimizer.tensors); same != (norm < 1e-5) {
			t.Errorf("same weights %v: gradient norm %g", same, norm)
		}
		b.teacherHead.Free()
		s.Close()
		r.free()
		r.policy.Free()
	}
}

func TestUnequalVocabulariesAreRefused(t *testing.T) {
	student, teacher := tinyModel(t, 1), paddedModel(t, tinyModel(t, 2), tinyVocabulary+5)
	if err := teacher.LimitVocab(tinyVocabulary + 5); err != nil {
		t.Fatal(err)
	}
	_, err := openPPO(tinyPPO(TeacherAligned), PPOParts{Initial: student, Teacher: teacher, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "29 ids, the student for 24") || !strings.Contains(err.Error(), "LimitVocab") {
		t.Errorf("unequal vocabularies: %v", err)
	}
}

// A resumed run keeps the vocabulary that the first one was limited to.
func TestResumeKeepsTheVocabulary(t *testing.T) {
	c := tinyPPO(TeacherNone)
	c.Steps = 2
	dir := t.TempDir()
	student := paddedModel(t, tinyModel(t, 1), tinyVocabulary+2)
	parts := PPOParts{Initial: student, Rollout: fakeRollout(c.PromptsPerStep), Dir: dir}
	first, err := PPO(context.Background(), c, parts)
	if err != nil {
		t.Fatal(err)
	}
	first.Free()
	c.Steps, parts.Resume = 3, true
	d, err := PPO(context.Background(), c, parts)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	if d.Vocab() != tinyVocabulary || d.Config.VocabSize != tinyVocabulary+2 {
		t.Errorf("resumed with %d ids of %d rows", d.Vocab(), d.Config.VocabSize)
	}
}

// Drills repeat ids that the tokenizer has, not padding rows.
func TestDrillsStayInTheVocabulary(t *testing.T) {
	d := paddedModel(t, tinyModel(t, 1), 4096)
	r, err := openSFT(tinySFT(), SFTParts{Model: d, Source: randomSource, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.optimizer.Free()
	for step := range 20 {
		for _, row := range r.drill(step) {
			if slices.Max(row.IDs) >= tinyVocabulary {
				t.Fatalf("step %d has the id %d of a vocabulary of %d", step, slices.Max(row.IDs), tinyVocabulary)
			}
		}
	}
}
