package train

import (
	"math/rand/v2"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/torch"
)

// The gradient of the whole loss is that of autograd over all logits at once.
func TestBackwardActorEqualsAutograd(t *testing.T) {
	smallBlocks(t)
	d, teacher := tinyModel(t, 1), tinyModel(t, 2)
	c := aligntest.Small()
	c.Vocab = tinyVocabulary
	p, err := align.Compile(aligntest.Random(rand.New(rand.NewPCG(5, 0)), c), align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := []*align.Packed{p}
	n := len(p.Actions)
	rng := rand.New(rand.NewPCG(1, 2))
	l := ActorLoss{Temperature: 0.7, Total: 3, Clip: 0.1, Entropy: 0.2, KL: 0.3, Teacher: teacher, TeacherRows: rows}
	for range n {
		l.Behaviour = append(l.Behaviour, float32(-3+0.5*rng.NormFloat64()))
		l.Advantages = append(l.Advantages, float32(rng.NormFloat64()))
	}
	s := torch.NewScope()
	defer s.Close()
	student := LogDistribution(d.Logits(d.Hidden(rows)), l.Temperature)
	own := LogProbs(student, torch.FromInt64(actionIDs(rows)))
	ratio := own.Sub(torch.FromFloat32(l.Behaviour)).Exp()
	advantages := torch.FromFloat32(l.Advantages)
	policy := ratio.Mul(advantages).Minimum(ratio.Clamp(0.9, 1.1).Mul(advantages)).Sum().Neg()
	entropy := student.Exp().Mul(student).Sum().Neg()
	other := LogDistribution(teacher.Logits(teacher.Hidden(rows)), l.Temperature).Detach()
	kl := student.Exp().Mul(student.Sub(other)).Sum()
	policy.Sub(entropy.MulScalar(0.2)).Add(kl.MulScalar(0.3)).DivScalar(3).Backward()
	want := gradients(d)

	for _, size := range []int{0, 1, 5, n} {
		compute := defaultCompute()
		compute.LogitsPerChunk = size
		got, err := compute.BackwardActor(d, rows, l)
		if err != nil {
			t.Fatal(err)
		}
		sameGradients(t, "actor", gradients(d), want, 1e-5)
		ratios := ratio.Float64s()
		low, high := ratios[0], ratios[0]
		for _, r := range ratios {
			low, high = min(low, r), max(high, r)
		}
		near(t, "ratios", []float64{got.RatioMin, got.RatioMax}, []float64{low, high}, 1e-5)
	}

	short := l
	short.Advantages = l.Advantages[1:]
	if _, err := defaultCompute().BackwardActor(d, rows, short); err == nil {
		t.Error("fewer advantages than actions are taken")
	}
	short = l
	short.TeacherRows = nil
	if _, err := defaultCompute().BackwardActor(d, rows, short); err == nil {
		t.Error("a teacher without rows is taken")
	}
}
