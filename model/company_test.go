package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/torch"
)

// The tests here are of what a row's company in a batch must not change: packing,
// padding, its place in the batch, and which ids happen to be used.

// company is rows of every kind and of very unlike length, as one batch.
func company(t *testing.T, rng *rand.Rand, vocab int) []*align.Packed {
	t.Helper()
	var batch []*align.Packed
	for i, n := range []int{1, 90, 7, 33, 2} {
		plain := plainRow(rng, vocab, n+4)
		plain.TrajectoryID = fmt.Sprint("plain ", i)
		packed, single := episode(rng, vocab, 1+i, 3+5*i)
		batch = append(batch, plain, packed, single[0], sighted(rng, vocab))
	}
	c := aligntest.Small()
	c.Vocab, c.Update = 3, aligntest.UpdateWindow
	tree, err := align.CompileGroup(aligntest.Group(rng, c, 3), align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	batch = append(batch, tree)
	rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	return batch
}

// ones are a weight for each action of a batch: 1 for those of row i, 0 for others'.
func ones(batch []*align.Packed, i int) []float32 {
	var weights []float32
	for j, p := range batch {
		for range p.Actions {
			weights = append(weights, map[bool]float32{true: 1, false: 0}[i == j])
		}
	}
	return weights
}

// TestPackedSegmentsAreAsAlone holds every segment of a packed batch by itself to
// the same segment run alone: logits, and the gradients of a loss on it.
func TestPackedSegmentsAreAsAlone(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 13, 2)
	batch := company(t, rand.New(rand.NewPCG(11, 1)), 50)
	at := 0
	for i, p := range batch {
		logits, grads := weightedGrads(d, batch, ones(batch, i))
		alone, aloneGrads := weightedGrads(d, []*align.Packed{p}, ones([]*align.Packed{p}, 0))
		if e := gap(alone, logits[at:at+len(alone)]); e > 1e-5 {
			t.Errorf("segment %d (%s): logits differ by %g", i, p.TrajectoryID, e)
		}
		at += len(alone)
		for j, q := range d.parameters {
			if e := relativeGap(aloneGrads[j], grads[j]); e > 1e-4 {
				t.Errorf("segment %d (%s): gradient of %s differs by %g", i, p.TrajectoryID, q.Name, e)
			}
		}
	}
}

// TestPackedSegmentsDoNotMix changes all ids of all other segments: not a bit of a
// segment's logits moves.
func TestPackedSegmentsDoNotMix(t *testing.T) {
	d := newModel(t, tiny(Llama), 13, 2)
	batch := company(t, rand.New(rand.NewPCG(11, 2)), 50)
	before := actionLogProbs(d, batch)
	at := 0
	for i, p := range batch {
		changed := slices.Clone(batch)
		for j, other := range batch {
			if j == i {
				continue
			}
			edited := *other
			edited.IDs = slices.Clone(other.IDs)
			for q := range edited.IDs {
				edited.IDs[q] = (edited.IDs[q] + 17) % 50
			}
			changed[j] = &edited
		}
		end := at + len(p.Actions)
		if after := actionLogProbs(d, changed); !slices.Equal(before[at:end], after[at:end]) {
			t.Errorf("segment %d (%s) changed with the others", i, p.TrajectoryID)
		}
		at = end
	}
}

// TestPlaceIsNoPosition holds that positions are those that a row states: where it
// stands in the batch and what padding it gets say nothing, a constant on all of
// its positions changes nothing (they are relative), and one on a part of them does.
func TestPlaceIsNoPosition(t *testing.T) {
	d := newModel(t, tiny(Llama), 13, 2)
	rng := rand.New(rand.NewPCG(11, 3))
	batch := company(t, rng, 50)
	forwards := actionLogProbs(d, batch)
	slices.Reverse(batch)
	backwards := actionLogProbs(d, batch)
	slices.Reverse(batch)
	at, back := 0, len(forwards)
	shift := func(p *align.Packed, from, by int) *align.Packed {
		moved := *p
		moved.Positions = slices.Clone(p.Positions)
		for q := from; q < len(moved.Positions); q++ {
			moved.Positions[q] += int32(by)
		}
		return &moved
	}
	for i, p := range batch {
		n := len(p.Actions)
		here := forwards[at : at+n]
		back -= n
		if e := apart(here, backwards[back:back+n]); e > 1e-5 {
			t.Errorf("row %d (%s): %g apart at the other end of the batch", i, p.TrajectoryID, e)
		}
		if e := apart(here, actionLogProbs(d, []*align.Packed{shift(p, 0, 41)})); e > 2e-4 {
			t.Errorf("row %d (%s): %g apart with all positions moved", i, p.TrajectoryID, e)
		}
		last := p.Actions[n-1].Predict
		if e := apart(here, actionLogProbs(d, []*align.Packed{shift(p, last, 41)})); last > 0 && e < 1e-3 && causal(p) {
			t.Errorf("row %d (%s): only %g apart with the last positions moved", i, p.TrajectoryID, e)
		}
		at += n
	}
}

// apart is the largest difference.
func apart(a, b []float64) float64 {
	worst := 0.0
	for i := range a {
		worst = max(worst, a[i]-b[i], b[i]-a[i])
	}
	return worst
}

// TestNoIDStandsForPadding renames all ids, those of padding and end of sequence
// (0 and others) too, in the rows and in the weights: nothing changes, as an id that is taken
// for padding would.
func TestNoIDStandsForPadding(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 13, 2) // its head is a matrix of its own
	batch := company(t, rand.New(rand.NewPCG(11, 4)), 50)
	before := actionLogProbs(d, batch)
	names := rand.New(rand.NewPCG(1, 1)).Perm(50) // id i is now names[i]
	rows := make([]int64, 50)
	for id, name := range names {
		rows[name] = int64(id)
	}
	s := torch.NewScope()
	defer s.Close()
	torch.NoGrad(func() {
		for _, w := range []*torch.Tensor{d.embed, d.head} {
			w.Copy_(w.IndexSelect(0, torch.FromInt64(rows)))
		}
	})
	renamed := make([]*align.Packed, len(batch))
	for i, p := range batch {
		r := *p
		r.IDs, r.Actions = slices.Clone(p.IDs), slices.Clone(p.Actions)
		for q := range r.IDs {
			r.IDs[q] = int32(names[p.IDs[q]])
		}
		for j := range r.Actions {
			r.Actions[j].ID = int32(names[r.Actions[j].ID])
		}
		renamed[i] = &r
	}
	if e := apart(before, actionLogProbs(d, renamed)); e > 1e-5 {
		t.Errorf("log-probs move by %g with the names of ids", e)
	}
}
