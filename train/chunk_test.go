package train

import (
	"fmt"
	"math"
	"testing"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// smallBlocks makes blocks of some rows, so that a chunk has several.
func smallBlocks(t *testing.T) {
	before := blockElementsCPU
	blockElementsCPU = 3 * tinyVocabulary
	t.Cleanup(func() { blockElementsCPU = before })
}

// untiedModel is tinyModel with a head of its own.
func untiedModel(t *testing.T, seed uint64) *model.Decoder {
	t.Helper()
	oneThread(t)
	c := tinyModel(t, seed).Config
	c.TieWordEmbeddings = false
	d, err := model.New(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Free)
	return d
}

// gradients lists the gradients of a decoder's parameters by name.
func gradients(d *model.Decoder) map[string][]float64 {
	all := map[string][]float64{}
	for _, p := range d.Parameters() {
		if g := p.Tensor.Grad(); g != nil {
			all[p.Name] = g.Float64s()
		}
		p.Tensor.ZeroGrad()
	}
	return all
}

// sameGradients holds two sets of gradients to a relative distance for each parameter.
func sameGradients(t *testing.T, what string, got, want map[string][]float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: gradients of %d parameters, want %d", what, len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		distance, norm := 0.0, 0.0
		for i := range w {
			distance += (g[i] - w[i]) * (g[i] - w[i])
			norm += w[i] * w[i]
		}
		if relative := math.Sqrt(distance / norm); !(relative <= tolerance) || norm == 0 {
			t.Errorf("%s: gradient of %s is off by %.3g of its norm %.3g", what, name, relative, math.Sqrt(norm))
		}
	}
}

// plainActor is the actor's loss of a microbatch over all logits at once, by autograd.
func plainActor(r *ppoRun, b *stepBatch, total minibatchTotals) (loss, entropy, kl float64) {
	s := torch.NewScope()
	defer s.Close()
	rows := packedRows(b.samples)
	student := LogDistribution(r.policy.Logits(r.policy.Hidden(rows)), r.c.Temperature)
	logProbs := LogProbs(student, torch.FromInt64(actionIDs(rows)))
	surrogate := ClippedSurrogate(logProbs, gather(b.samples, r.behaviourOf),
		gather(b.samples, func(x *sample) []float32 { return x.Advantage }), r.c.ClipRange).Loss
	h := Entropy(student).Sum()
	here, inBatch := teacherPlaces(b.samples)
	teacher := LogDistribution(r.p.Teacher.Logits(b.teacherHidden.IndexSelect(0, torch.FromInt64(inBatch))), r.c.Temperature)
	k := ReverseKL(student.IndexSelect(0, torch.FromInt64(here)), teacher).Sum()
	surrogate.DivScalar(total.actions).
		Add(h.MulScalar(-r.c.EntropyCoefficient / total.actions)).
		Add(k.MulScalar(r.c.TeacherWeight / total.teacher)).Backward()
	return surrogate.Item(), h.Item(), k.Item()
}

// Whatever the size of a chunk, losses and gradients are those of all logits at
// once: with a teacher on some of the actions, an entropy bonus, a temperature,
// a tied and an untied head, and layers run again.
func TestChunkedActorLossEqualsTheWhole(t *testing.T) {
	smallBlocks(t)
	for _, tied := range []bool{true, false} {
		c := tinyPPO(TeacherAligned)
		c.TeacherFirstCall, c.EntropyCoefficient, c.Temperature = 1, 0.03, 1
		r, b := scoredBatch(t, c, 3, func(x *sample) {
			for i := range x.behaviour {
				x.behaviour[i] += float32(i%5-2) * 0.1 // so that some ratios are clipped
			}
		})
		r.c.Temperature, r.state.Step = 0.8, 5
		if !tied {
			r.policy = untiedModel(t, 3)
		}
		n := b.actions
		here, _ := teacherPlaces(b.samples)
		total := minibatchTotals{float64(n), float64(len(here))}
		gradients(r.policy)
		loss, entropy, kl := plainActor(r, b, total)
		want := gradients(r.policy)
		for _, size := range []int{0, 1, 7, n - 1, n, n + 100} {
			for _, again := range []bool{false, true} {
				what := fmt.Sprintf("tied %v, chunks of %d of %d, checkpointing %v", tied, size, n, again)
				r.c.LogitsPerChunk, r.c.CheckpointLayers = size, again
				var stats updateStats
				if !r.backward(b, b.samples, total, &stats) {
					t.Fatalf("%s: the loss has no term", what)
				}
				near(t, what+": losses", []float64{stats.Policy, stats.Entropy, stats.Teacher}, []float64{loss, entropy, kl}, 1e-6)
				sameGradients(t, what, gradients(r.policy), want, 1e-6)
			}
		}
	}
}

// SFT's loss and gradients do not depend on the chunk either, nor do scores.
func TestChunkedNLLAndScoresEqualTheWhole(t *testing.T) {
	smallBlocks(t)
	for _, tied := range []bool{true, false} {
		d := tinyModel(t, 1)
		if !tied {
			d = untiedModel(t, 1)
		}
		rows := drill(tinySFT(), tinyVocabulary, 0)
		n := actionCount(rows)
		s := torch.NewScope()
		dist := LogDistribution(d.Logits(d.Hidden(rows)), 1)
		logProbs := LogProbs(dist, torch.FromInt64(actionIDs(rows)))
		scores, top := logProbs.Float64s(), dist.Argmax(-1, false).Int64s()
		nll := logProbs.Sum().Neg()
		nll.DivScalar(3).Backward()
		loss, want := nll.Item(), gradients(d)
		s.Close()
		for _, size := range []int{0, 1, 5, n, n + 1} {
			what := fmt.Sprintf("tied %v, chunks of %d of %d", tied, size, n)
			c := defaultCompute()
			c.LogitsPerChunk = size
			near(t, what+": loss", []float64{c.BackwardNLL(d, rows, 3)}, []float64{loss}, 1e-6)
			sameGradients(t, what, gradients(d), want, 1e-6)
			got, best := c.score(d, rows, 1)
			for i := range got {
				near(t, what+": log-prob", []float64{float64(got[i])}, scores[i:i+1], 1e-6)
				if best[i] != top[i] {
					t.Errorf("%s: most probable id of action %d is %d, want %d", what, i, best[i], top[i])
				}
			}
		}
	}
}

// Of the vocabulary's width, chunks alone exist: two of a chunk's logits at once.
func TestChunksCoverAllActions(t *testing.T) {
	for _, c := range []struct {
		size, n int
		want    string
	}{
		{0, 5, "[[0 5]]"}, {2, 5, "[[0 2] [2 4] [4 5]]"}, {5, 5, "[[0 5]]"}, {9, 5, "[[0 5]]"}, {1, 2, "[[0 1] [1 2]]"}, {3, 0, "[]"},
	} {
		if got := fmt.Sprint(Compute{LogitsPerChunk: c.size}.chunks(c.n)); got != c.want {
			t.Errorf("chunks of %d of %d are %s, want %s", c.size, c.n, got, c.want)
		}
	}
}
