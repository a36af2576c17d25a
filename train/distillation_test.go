package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// klOf is the loop's own KL(student || teacher) of each row of logits (n, V), and the
// gradient of their sum on the student's logits.
func klOf(student, teacher *torch.Tensor, temperature float64) (kls, gradient []float64) {
	for i := range student.Dim(0) {
		row := logSoftmax_(student.Narrow(0, i, 1).Clone(), temperature)
		t := terms{
			IDs: torch.FromInt64([]int64{0}), KLWeight: 1,
			Teacher: logSoftmax_(teacher.Narrow(0, i, 1).Clone(), temperature), TeacherRows: []int64{0},
		}
		_, kl := t.gradient(row, temperature)
		kls, gradient = append(kls, kl), append(gradient, row.Float64s()...)
	}
	return kls, gradient
}

// KL of (1/2, 1/2) to (1/4, 3/4) is log 2 - log(3)/2, of the other to the one
// 3 log(3)/4 - log 2. The term is the first with the student as (1/2, 1/2): neither
// the direction nor the roles are exchanged, and at temperature 2 both distributions
// are those of half the logits.
func TestKLBothWaysByHand(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	even, skewed := []float64{0, 0}, []float64{0, math.Log(3)}
	forward, backward := math.Log(2)-0.5*math.Log(3), 0.75*math.Log(3)-math.Log(2)
	for _, c := range []struct {
		student, teacher []float64
		temperature      float64
		kl               float64
	}{
		{even, skewed, 1, forward},
		{skewed, even, 1, backward},
		{even, []float64{0, 2 * math.Log(3)}, 2, forward},
		{[]float64{0, 2 * math.Log(3)}, even, 2, backward},
	} {
		got, gradient := klOf(double(c.student, 1, 2), double(c.teacher, 1, 2), c.temperature)
		near(t, "KL", got, []float64{c.kl}, 1e-12)
		// By hand, d KL / d u = p (log p - log q - KL) / temperature, and it sums to 0.
		p := 1 / (1 + math.Exp((c.student[1]-c.student[0])/c.temperature))
		q := 1 / (1 + math.Exp((c.teacher[1]-c.teacher[0])/c.temperature))
		first := p * (math.Log(p/q) - c.kl) / c.temperature
		near(t, "gradient", gradient, []float64{first, -first}, 1e-12)
	}
}

// The teacher's term is a mean over the taught tokens: it does not grow with the
// vocabulary, nor with how often the batch is repeated, nor shrink with tokens that are
// not taught.
func TestTeacherTermIsAMeanOverTaughtTokens(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	rng := rand.New(rand.NewPCG(4, 4))
	const n, v = 5, 7
	logits := func(width int) []float64 {
		all := make([]float64, n*width)
		for i := range all {
			all[i] = -1e4 // no probability
			if i%width < v {
				all[i] = rng.NormFloat64()
			}
		}
		return all
	}
	a, b := logits(v), logits(v)
	widen := func(x []float64) []float64 {
		var wide []float64
		for i := range n {
			wide = append(append(wide, x[i*v:(i+1)*v]...), slices.Repeat([]float64{-1e4}, 3*v)...)
		}
		return wide
	}
	narrow, _ := klOf(double(a, n, v), double(b, n, v), 1)
	wide, _ := klOf(double(widen(a), n, 4*v), double(widen(b), n, 4*v), 1)
	near(t, "KL over four times as many ids", wide, narrow, 1e-12)

	c := tinyPPO(TeacherAligned)
	c.TeacherWeight, c.PolicyDelaySteps, c.EntropyCoefficient, c.TeacherFirstCall = 1, 1000, 0, 1
	r, batch := scoredBatch(t, c, 2, unchanged)
	gradientOf := func(samples []*sample, total minibatchTotals) map[string][]float64 {
		here, _ := teacherPlaces(samples)
		var stats updateStats
		r.backward(batch, samples, total, &stats)
		if stats.TeacherActions != len(here) || len(here) == 0 || len(here) == stats.Actions {
			t.Errorf("%d of %d actions are taught, want %d", stats.TeacherActions, stats.Actions, len(here))
		}
		return gradients(r.policy)
	}
	some := batch.samples[:3]
	here, _ := teacherPlaces(some)
	taught := float64(len(here))
	one := gradientOf(some, minibatchTotals{float64(actionCount(packedRows(some))), taught})
	sum := gradientOf(some, minibatchTotals{1, 1})
	for name, g := range sum {
		for i := range g {
			sum[name][i] = g[i] / taught
		}
	}
	sameGradients(t, "the sum over taught tokens", sum, one, 1e-5)
	twice := minibatchTotals{2 * float64(actionCount(packedRows(some))), 2 * taught}
	sameGradients(t, "the batch twice", gradientOf(slices.Concat(some, some), twice), one, 1e-5)
}

// A teacher that is stored and computes in bfloat16 is promoted before the temperature
// and the softmax: no row's KL is below 0 by more than float32's rounding, and that of
// equal logits is 0.
func TestKLIsNotNegative(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	rng := rand.New(rand.NewPCG(6, 6))
	const n, v = 4, 50000
	base, moved := make([]float32, n*v), make([]float32, n*v)
	for i := range base {
		base[i] = float32(rng.NormFloat64() * 4)
		moved[i] = base[i] + float32(rng.NormFloat64()*1e-3)
	}
	student := torch.FromFloat32(base, n, v)
	rounded := student.To(torch.BFloat16).To(torch.Float32)
	for name, teacher := range map[string]*torch.Tensor{"moved": torch.FromFloat32(moved, n, v), "rounded": rounded, "equal": student} {
		for _, temperature := range []float64{0.3, 1, 2} {
			kls, gradient := klOf(student, teacher, temperature)
			for _, kl := range kls {
				if !(kl >= -2e-6) || name == "equal" && math.Abs(kl) > 1e-9 || name == "rounded" && kl < 1e-7 {
					t.Errorf("%s teacher at temperature %g: KL %g", name, temperature, kl)
				}
			}
			if name == "equal" && slices.ContainsFunc(gradient, func(g float64) bool { return g != 0 }) {
				t.Errorf("the gradient of a KL of 0 is not 0 at temperature %g", temperature)
			}
		}
	}
	needBFloat16(t)
	c := Compute{Device: "cpu", DType: BFloat16}
	d := tinyModel(t, 1).CloneTo(c.Frozen())
	defer d.Free()
	head := d.Head("cpu")
	defer head.Free()
	rows := []*align.Packed{repetition(rng, tinyVocabulary, 8)}
	torch.NoGrad(func() {
		hidden := d.Hidden(rows)
		for what, x := range map[string]*torch.Tensor{"hidden states": hidden, "logits": d.Logits(hidden), "teacher's logits": head.Logits(hidden)} {
			if x.DType() != torch.Float32 {
				t.Errorf("%s of a bfloat16 decoder are %v", what, x.DType())
			}
		}
	})
}

// What the teacher says of the least likely ids counts: two teachers that agree on the
// best half of the vocabulary and on its mass have another KL, and no row is clamped.
func TestKLSeesTheTailOfTheVocabulary(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	student := []float64{math.Log(.4), math.Log(.4), math.Log(.1), math.Log(.1)}
	teacher := []float64{math.Log(.4), math.Log(.4), math.Log(.15), math.Log(.05)}
	kls, _ := klOf(double(student, 1, 4), double(teacher, 1, 4), 1)
	near(t, "KL", kls, []float64{.1*math.Log(.1/.15) + .1*math.Log(.1/.05)}, 1e-12)
	if kls[0] < 0.02 {
		t.Errorf("KL %g of distributions that differ in the tail alone", kls[0])
	}
}

// flattened is the history of a trajectory up to its last sampled token, and the place
// of each sampled token in it: made from the calls alone.
func flattened(x *trace.Trajectory) (ids []int32, places []int) {
	ids = slices.Clone(x.Prefix)
	for k, c := range x.Calls {
		for i, id := range c.Output {
			places = append(places, len(ids)+i)
			_ = id
		}
		ids = append(ids, c.Output...)
		if k < len(x.Calls)-1 {
			ids = append(ids, c.Observation...)
		}
	}
	return ids, places
}

// The teacher's scores of a token are those at the place before it in what the teacher
// sees, in each call of each trajectory, however rows were cut into microbatches.
func TestTeacherScoresBelongToTheirTokens(t *testing.T) {
	for _, tokens := range []int{1, 60, 100000} {
		c := tinyPPO(TeacherPersistent)
		c.TokensPerMicrobatch = tokens
		r, b := scoredBatch(t, c, 2, unchanged)
		for _, x := range b.samples {
			ids, places := flattened(x.trajectory)
			if len(places) != len(x.packed.Actions) || len(x.trajectory.Calls) != 3 {
				t.Fatalf("%d sampled tokens, %d actions", len(places), len(x.packed.Actions))
			}
			torch.NoGrad(func() {
				all := r.p.Teacher.HiddenAll([][]int32{ids})
				for i, place := range places {
					got := b.teacherHidden.Narrow(0, int64(x.first+i), 1).Float64s()
					near(t, fmt.Sprintf("teacher's state of action %d", i), got, all.Narrow(0, int64(place-1), 1).Float64s(), 1e-4)
				}
			})
		}
	}
}

// A row whose actions are not those of the packed sequence, one to one, is refused.
func TestTeacherRowOfOtherActionsIsRefused(t *testing.T) {
	all, err := fakeRollout(1)(context.Background(), 0, tinyModel(t, 1), 3)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := align.Compile(all[0], align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*align.Packed){
		"":                        func(*align.Packed) {},
		"17 actions":              func(p *align.Packed) { p.Actions = p.Actions[:17] },
		"action 7 is":             func(p *align.Packed) { p.Actions[7], p.Actions[8] = p.Actions[8], p.Actions[7] },
		"token 0 of call 2":       func(p *align.Packed) { p.Actions[12].ID++ },
		"action 3 is token 3 of ": func(p *align.Packed) { p.Actions[3].Teacher = false },
	} {
		row, err := align.Persistent(all[0], align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		change(row)
		if err := sameActions(packed, row); (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// What the teacher sees is whole, from the task prefix on: a trajectory that does not
// fit is left out and counted, never cut at either end. Records say how long it is, and
// its hash changes with any id, position or block.
func TestTeacherContextIsNeverCut(t *testing.T) {
	c := tinyPPO(TeacherPersistent)
	all, err := fakeRollout(6)(context.Background(), 0, tinyModel(t, 1), 3)
	if err != nil {
		t.Fatal(err)
	}
	longest, sum := 0, 0
	for _, x := range all {
		p, err := align.Compile(x, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, len(p.IDs))
	}
	b, err := compileBatch(c, c.limits(), all)
	if err != nil || len(b.samples) != len(all) {
		t.Fatalf("%v, %d of %d compiled", err, len(b.samples), len(all))
	}
	hashes := map[string]bool{}
	for i, x := range b.samples {
		ids, _ := flattened(all[i])
		if !slices.Equal(x.teacherRow.IDs, ids) || !slices.Equal(x.teacherRow.IDs[:len(all[i].Prefix)], all[i].Prefix) {
			t.Errorf("the teacher sees %v, want %v", x.teacherRow.IDs, ids)
		}
		sum += len(ids)
		hashes[hashContext(x.teacherRow).SHA256] = true
	}
	if len(hashes) != len(all) || b.teacherTokens() != float64(sum) {
		t.Errorf("%d hashes of %d contexts, %g tokens, want %d", len(hashes), len(all), b.teacherTokens(), sum)
	}
	row := b.samples[0].teacherRow
	before := hashContext(row)
	for name, change := range map[string]func(*align.Packed){
		"id":       func(p *align.Packed) { p.IDs[3]++ },
		"position": func(p *align.Packed) { p.Positions[9]++ },
		"block":    func(p *align.Packed) { p.Blocks[0].Sees = []align.Range{} },
	} {
		other := *row
		other.IDs, other.Positions, other.Blocks = slices.Clone(row.IDs), slices.Clone(row.Positions), slices.Clone(row.Blocks)
		change(&other)
		if hashContext(&other) == before {
			t.Errorf("another %s leaves the hash as it is", name)
		}
	}
	c.PackedTokensMax = longest - 1
	short, err := compileBatch(c, c.limits(), all)
	if err != nil || short.rejected[align.ReasonPackedTokens] == 0 || len(short.samples)+short.rejected[align.ReasonPackedTokens] != len(all) {
		t.Fatalf("%v, rejected %v of %d", err, short.rejected, len(all))
	}
	for _, x := range short.samples {
		if ids, _ := flattened(x.trajectory); !slices.Equal(x.teacherRow.IDs, ids) {
			t.Errorf("with a limit the teacher sees %v, want %v", x.teacherRow.IDs, ids)
		}
	}
}

// A teacher that differs from the student moves the weights, and the loss that moves
// them is the one that is reported: without it, or with weight 0, they stay.
func TestTeacherTermIsApplied(t *testing.T) {
	for _, weight := range []float64{0, 1} {
		c := tinyPPO(TeacherAligned)
		c.TeacherWeight, c.EntropyCoefficient, c.PolicyDelaySteps, c.WeightDecay = weight, 0, 1000, 0
		r, b := scoredBatch(t, c, 2, unchanged)
		before := weights(r.policy)
		b.teacherHead.Free() // update makes its own
		stats, err := r.update(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.teacherHead = r.teacher.head() // for the clean-up
		if !(stats.Teacher > 0.01*float64(stats.TeacherActions)) || stats.TeacherActions != b.actions {
			t.Errorf("the reported KL is %g over %d tokens", stats.Teacher, stats.TeacherActions)
		}
		if moved := !slices.Equal(before, weights(r.policy)); moved != (weight > 0) || (stats.ActorNorm > 0) != moved {
			t.Errorf("teacher weight %g: the weights moved: %v, gradient norm %g", weight, moved, stats.ActorNorm)
		}
	}
}
