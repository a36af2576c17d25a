package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// forest draws samples of one task: rules of context, numbers of samples and
// vocabularies so small that calls part at any token, at several levels.
func forest(rng *rand.Rand, seed uint64) []*trace.Trajectory {
	c := aligntest.Small()
	c.Update = aligntest.UpdateOf(seed)
	c.Vocab = 2 + int(seed%3)
	c.EmptyOutputChance, c.MaxOpening = []float64{0, 0.3}[seed%2], int(seed%3)
	return aligntest.Group(rng, c, 1+int(seed/5%4))
}

// rowsOfGroup are the calls of samples, one row each, in the order of CompileGroup's actions.
func rowsOfGroup(t *testing.T, group []*trace.Trajectory) []*align.Packed {
	t.Helper()
	var rows []*align.Packed
	for _, traj := range group {
		calls, err := align.Calls(traj, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, calls...)
	}
	return rows
}

// weightedGrads are the logits of the actions, and the gradients of their negative
// log-probs, each times a weight that tells it from the others.
func weightedGrads(d *Decoder, batch []*align.Packed, weights []float32) (logits []float32, grads [][]float32) {
	s := torch.NewScope()
	defer s.Close()
	ids := actionTargets(batch)
	out := d.Logits(d.Hidden(batch))
	picked := out.LogSoftmax(-1).Gather(1, torch.FromInt64(ids, int64(len(ids)), 1))
	picked.Mul(torch.FromFloat32(weights, int64(len(ids)), 1)).Sum().Backward()
	return out.Float32s(), takeGrads(d)
}

// TestTreeEqualsCalls holds a prefix tree of calls of several samples, at three
// levels and more, to the calls run one at a time: logits, and the gradients of all
// weights. Actions that share a place have weights of their own.
func TestTreeEqualsCalls(t *testing.T) {
	deepest, shared := 0, 0
	for _, kind := range []string{Llama, Qwen2} {
		d := newModel(t, tiny(kind), 7, 2)
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, 8))
			group := forest(rng, seed)
			packed, err := align.CompileGroup(group, align.Options{})
			if err != nil {
				t.Fatal(err)
			}
			weights := make([]float32, len(packed.Actions))
			for i := range weights {
				weights[i] = float32(rng.NormFloat64())
			}
			var logits []float32
			var grads [][]float32
			at := 0
			for _, row := range rowsOfGroup(t, group) {
				end := at + len(row.Actions)
				l, g := weightedGrads(d, []*align.Packed{row}, weights[at:end])
				logits, grads, at = append(logits, l...), sum(grads, g), end
			}
			got, gotGrads := weightedGrads(d, []*align.Packed{packed}, weights)
			if e := gap(logits, got); e > 1e-5 {
				t.Errorf("%s seed %d: logits differ by %g", kind, seed, e)
			}
			for i, p := range d.parameters {
				if e := relativeGap(grads[i], gotGrads[i]); e > 1e-4 {
					t.Errorf("%s seed %d: gradient of %s differs by %g", kind, seed, p.Name, e)
				}
			}
			deepest = max(deepest, levels(packed))
			shared += len(packed.Actions) - places(packed)
		}
	}
	if deepest < 4 || shared < 50 {
		t.Errorf("the deepest tree has %d levels, and %d actions share their place: too easy", deepest, shared)
	}
}

// levels is the most blocks on the way to one token.
func levels(p *align.Packed) int {
	most := 0
	for _, b := range p.Blocks {
		n := 1
		for _, other := range p.Blocks {
			if other.Start < b.Start && p.Visible(b.Start, other.Start) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// places counts the places that hold an action.
func places(p *align.Packed) int {
	n := 0
	for _, is := range p.ActionMask() {
		if is {
			n++
		}
	}
	return n
}

// TestLayoutsSeeAsTheyMean runs every layout through the model: a changed token moves
// those that see it, and those that see them, and no other.
func TestLayoutsSeeAsTheyMean(t *testing.T) {
	d := newModel(t, tiny(Llama), 5, 2)
	for seed := range uint64(5) {
		c := aligntest.Small()
		c.MaxOutput, c.MaxObservation, c.MaxOpening = 5, 4, 2
		c.Update = aligntest.UpdateOf(seed)
		traj := aligntest.Random(rand.New(rand.NewPCG(seed, 9)), c)
		half := func(t *trace.Trajectory, call int) int { return len(t.Calls[call].Output) / 2 }
		for _, l := range align.Layouts() {
			rows, err := l.Rows(traj, align.Options{ThinkLength: half})
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range rows {
				t.Run(fmt.Sprint(l.Name, "/", seed, "/", i), func(t *testing.T) {
					checkVisible(t, []*align.Packed{p})
					checkPerturbed(t, d, p)
					if want, ok := aligntest.ReferenceOf(l.Name, traj, half); ok && len(p.IDs) == len(want.Tokens) {
						checkDense(t, p, want.Sees)
					}
					checkDense(t, p, aligntest.Dense(p))
				})
			}
		}
	}
}

// checkDense holds what the attention rows show to a dense matrix.
func checkDense(t *testing.T, p *align.Packed, dense [][]bool) {
	t.Helper()
	l, _, err := newLayout([]*align.Packed{p})
	if err != nil {
		t.Fatal(err)
	}
	sees := visible(l)
	for q := range p.IDs {
		for k := range p.IDs {
			if sees[[2]int{q, k}] != dense[q][k] {
				t.Fatalf("token %d sees %d: %v (blocks %v)", q, k, !dense[q][k], p.Blocks)
			}
		}
	}
}
