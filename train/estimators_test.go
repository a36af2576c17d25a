package train

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch"
)

// randomLogits draws n rows of v logits.
func randomLogits(rng *rand.Rand, n, v int) []float64 {
	all := make([]float64, n*v)
	for i := range all {
		all[i] = 1.5 * rng.NormFloat64()
	}
	return all
}

// everyID is 0..v-1, each row's v ids one after another.
func everyID(n, v int) []int64 {
	var ids []int64
	for range n {
		for id := range v {
			ids = append(ids, int64(id))
		}
	}
	return ids
}

// repeated has each row of logits (n, v) v times.
func repeated(logits []float64, n, v int) *torch.Tensor {
	var all []float64
	for i := range n {
		for range v {
			all = append(all, logits[i*v:(i+1)*v]...)
		}
	}
	return double(all, int64(n*v), int64(v))
}

// The estimator by sampled tokens is unbiased: over all ids that the behaviour policy
// may draw, each by its probability, value and gradient are those of the KL over the
// vocabulary, whether or not the policy has moved away from the behaviour.
func TestSampledReverseKLIsUnbiased(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	const n, v = 3, 6
	logits, teacher := randomLogits(rng, n, v), randomLogits(rng, n, v)
	for name, behaviour := range map[string][]float64{"on-policy": logits, "moved": randomLogits(rng, n, v)} {
		for _, temperature := range []float64{1, 0.7} {
			s := torch.NewScope()
			kls, want := klOf(double(logits, n, v), double(teacher, n, v), temperature)
			ids := torch.FromInt64(everyID(n, v), n*v)
			of := func(x []float64) *torch.Tensor { return picked(logSoftmax_(repeated(x, n, v), temperature), ids) }
			row := logSoftmax_(repeated(logits, n, v), temperature)
			drawn := of(behaviour)
			// The sum over ids of their probability times the loss of each.
			logProbs := picked(row, ids).RequiresGrad_(true)
			value, picks := 0.0, make([]float64, n*v)
			for i, p := range drawn.Exp().Float64s() {
				one := func(t *torch.Tensor) *torch.Tensor { return t.Narrow(0, int64(i), 1) }
				loss := SampledReverseKL(one(logProbs), one(drawn), one(of(teacher))).MulScalar(p)
				loss.Backward()
				value += loss.Item()
			}
			copy(picks, logProbs.Grad().Float64s())
			terms{IDs: ids, Picked: double(picks, n*v)}.gradient(row, temperature)
			each, got := row.Float64s(), make([]float64, n*v)
			for i, g := range each {
				got[i/(v*v)*v+i%v] += g
			}
			near(t, name+": value", []float64{value}, []float64{sumOf(kls)}, 1e-12)
			near(t, name+": gradient", got, want, 1e-10)
			s.Close()
		}
	}
}

// topKOf is the loop's KL with k ids told apart, and its gradient.
func topKOf(student, teacher []float64, n, v, k int, temperature float64) (kl float64, gradient []float64) {
	row := logSoftmax_(double(student, int64(n), int64(v)), temperature)
	x := terms{IDs: torch.FromInt64(make([]int64, n)), KLWeight: 1, TopK: k, Teacher: logSoftmax_(double(teacher, int64(n), int64(v)), temperature)}
	for i := range n {
		x.TeacherRows = append(x.TeacherRows, int64(i))
	}
	_, kl = x.gradient(row, temperature)
	return kl, row.Float64s()
}

// With all ids, or all but one, told apart the KL is the full one; with fewer it is
// less and not negative, and grows with their number.
func TestTopKOfAllIsTheFullKL(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	rng := rand.New(rand.NewPCG(8, 2))
	const n, v = 5, 9
	student, teacher := randomLogits(rng, n, v), randomLogits(rng, n, v)
	for _, temperature := range []float64{1, 1.6} {
		full, gradient := topKOf(student, teacher, n, v, 0, temperature)
		last := 0.0
		for k := 1; k <= v+1; k++ {
			kl, own := topKOf(student, teacher, n, v, k, temperature)
			if !(kl >= last-1e-12 && kl <= full+1e-12) {
				t.Errorf("top %d: KL %g after %g, full %g", k, kl, last, full)
			}
			if last = kl; k >= v-1 {
				near(t, "KL", []float64{kl}, []float64{full}, 1e-12)
				near(t, "gradient", own, gradient, 1e-10)
			} else if kl > full-1e-6 {
				t.Errorf("top %d: KL %g is the full one", k, kl)
			}
		}
	}
}

// By hand: the student (1/2, 1/4, 1/4) and the teacher (1/4, 1/2, 1/4), the student's
// first id told apart: log(2)/2 + log(2/3)/2. The teacher's most probable id is
// another, so that the two cannot be exchanged.
func TestTopKByHand(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	student := []float64{math.Log(.5), math.Log(.25), math.Log(.25)}
	teacher := []float64{math.Log(.25), math.Log(.5), math.Log(.25)}
	kl, gradient := topKOf(student, teacher, 1, 3, 1, 1)
	want := 0.5*math.Log(2) + 0.5*math.Log(2./3)
	near(t, "KL", []float64{kl}, []float64{want}, 1e-12)
	outside := math.Log(2./3) - want
	near(t, "gradient", gradient, []float64{.5 * (math.Log(2) - want), .25 * outside, .25 * outside}, 1e-12)
}

// Where the student is all but certain, float32 keeps the bucket's probability, which 1
// less that of the others would lose.
func TestTopKKeepsASmallBucket(t *testing.T) {
	s := torch.NewScope()
	defer s.Close()
	student, teacher := []float64{0, -30, -31, -32}, []float64{0, -30, -31, -5}
	single := func(x []float64) *torch.Tensor { return logSoftmax_(double(x, 1, 4).To(torch.Float32), 1) }
	row := single(student)
	x := terms{IDs: torch.FromInt64([]int64{0}), KLWeight: 1, TopK: 1, Teacher: single(teacher), TeacherRows: []int64{0}}
	_, kl := x.gradient(row, 1)
	want, gradient := topKOf(student, teacher, 1, 4, 1, 1)
	near(t, "KL", []float64{kl}, []float64{want}, 1e-6)
	for i, g := range row.Float32s()[1:] {
		if w := gradient[1+i]; !(math.Abs(float64(g)-w) <= 1e-3*math.Abs(w)) {
			t.Errorf("gradient %g of id %d, want %g", g, 1+i, w)
		}
	}
}

// estimatorGradient is the actor's gradient of a batch by an estimator, the policy
// gradient left out, and the reported KL.
func estimatorGradient(r *ppoRun, b *stepBatch) (map[string][]float64, updateStats) {
	here, _ := teacherPlaces(b.samples)
	var stats updateStats
	r.backward(b, b.samples, minibatchTotals{float64(b.actions), float64(len(here))}, &stats)
	return gradients(r.policy), stats
}

// In the loop, top-k with the whole vocabulary is the full estimator to the bit, and
// the one by sampled tokens has the gradient of its loss by autograd over all logits,
// whatever the size of a chunk, with some actions outside the teacher mask.
func TestEstimatorsInTheLoop(t *testing.T) {
	smallBlocks(t)
	config := func(estimator string) PPOConfig {
		c := tinyPPO(TeacherAligned)
		c.TeacherEstimator, c.TeacherTopK, c.TeacherFirstCall, c.PolicyDelaySteps = estimator, tinyVocabulary, 1, 1000
		return c
	}
	r, b := scoredBatch(t, config(EstimatorFull), 2, unchanged)
	want, full := estimatorGradient(r, b)
	r.c.TeacherEstimator = EstimatorTopK
	got, top := estimatorGradient(r, b)
	sameGradients(t, "top-k of all", got, want, 0)
	if top.Teacher != full.Teacher {
		t.Errorf("top-k of all reports %g, full %g", top.Teacher, full.Teacher)
	}
	r.c.TeacherTopK = 3
	if _, top = estimatorGradient(r, b); !(top.Teacher > 0 && top.Teacher < full.Teacher) {
		t.Errorf("top 3 reports %g, full %g", top.Teacher, full.Teacher)
	}

	move := func(x *sample) {
		for i := range x.behaviour {
			x.behaviour[i] += float32(i%5-2) * 0.1
		}
	}
	r, b = scoredBatch(t, config(EstimatorSampled), 2, move)
	if b.teacherHidden != nil {
		t.Error("the estimator by sampled tokens keeps the teacher's hidden states")
	}
	here, inBatch := teacherPlaces(b.samples)
	s := torch.NewScope()
	defer s.Close()
	places := torch.FromInt64(here)
	student := LogDistribution(r.policy.Logits(r.policy.Hidden(packedRows(b.samples))), 1)
	logProbs := LogProbs(student, torch.FromInt64(actionIDs(packedRows(b.samples)))).IndexSelect(0, places)
	teacher := LogDistribution(r.p.Teacher.Logits(r.p.Teacher.Hidden(teacherRows(b.samples))), 1)
	of := LogProbs(teacher, torch.FromInt64(actionIDs(packedRows(b.samples)))).IndexSelect(0, torch.FromInt64(inBatch))
	ratio := logProbs.Detach().Sub(gather(b.samples, r.behaviourOf).IndexSelect(0, places)).Exp()
	// k2's gradient, weighted.
	ratio.Mul(logProbs.Sub(of.Detach()).Square().MulScalar(0.5)).Sum().MulScalar(r.c.TeacherWeight / float64(len(here))).Backward()
	k1 := ratio.Mul(logProbs.Detach().Sub(of)).Sum().Item()
	want = gradients(r.policy)
	for _, size := range []int{0, 1, 7, b.actions} {
		r.c.LogitsPerChunk = size
		got, stats := estimatorGradient(r, b)
		sameGradients(t, "sampled", got, want, 1e-5)
		near(t, "reported KL", []float64{stats.Teacher, float64(stats.TeacherActions)}, []float64{k1, float64(len(here))}, 1e-5)
	}
}

// Runs with each estimator go through, report a KL, and differ.
func TestEstimatorsTrain(t *testing.T) {
	seen := map[float32]string{}
	for _, estimator := range []string{EstimatorFull, EstimatorSampled, EstimatorTopK} {
		c := tinyPPO(TeacherAligned)
		c.Steps, c.TeacherEstimator, c.TeacherTopK = 2, estimator, 2
		dir := t.TempDir()
		d, err := runPPO(t, context.Background(), c, dir, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range timeless(t, dir) {
			if kl, ok := r.Get("actor/teacher_kl"); !ok || math.IsNaN(kl) {
				t.Errorf("%s: KL %g", estimator, kl)
			}
		}
		if other := seen[weights(d)[0]]; other != "" {
			t.Errorf("%s trains as %s does", estimator, other)
		}
		seen[weights(d)[0]] = estimator
	}
}

func TestEstimatorAndLayoutAreValidated(t *testing.T) {
	for want, change := range map[string]func(*PPOConfig){
		"teacher_estimator is \"half\", want one of full, sampled, top-k": func(c *PPOConfig) { c.TeacherEstimator = "half" },
		"teacher_top_k is 0, want at least 1":                             func(c *PPOConfig) { c.TeacherTopK = 0 },
		"layout is \"calls\", want one of aligned, persistent,":           func(c *PPOConfig) { c.Layout = "calls" },
		"the sampler knows nothing":                                       func(c *PPOConfig) { c.Layout, c.Ratio = "response-mask", RatioSampler },
		"whose row lacks":                                                 func(c *PPOConfig) { c.Layout, c.Teacher = "trajectory-mask", TeacherPersistent },
	} {
		c := MiniPPO()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
