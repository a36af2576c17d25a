package model

import (
	"math/rand/v2"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// TestDenseMaskIsVisibility: the mask of a whole sequence is 0 exactly where a
// query sees a key, in trees of several levels.
func TestDenseMaskIsVisibility(t *testing.T) {
	noLeaks(t)
	for seed := range uint64(20) {
		p, err := align.CompileGroup(forest(rand.New(rand.NewPCG(seed, 3)), seed), align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := torch.NewScope()
		mask, n := denseMask(p).Float32s(), len(p.IDs)
		for i, v := range mask {
			if want := p.Visible(i/n, i%n); (v == 0) != want || v != 0 && v != negativeInfinity {
				t.Fatalf("seed %d: query %d, key %d has %v; visible: %v", seed, i/n, i%n, v, want)
			}
		}
		s.Close()
	}
}

// TestDenseEqualsPacked: the same logits and gradients under a dense mask and in
// blocks, several sequences a batch, with layers checkpointed and without.
func TestDenseEqualsPacked(t *testing.T) {
	for _, kind := range []string{Llama, Qwen2, Qwen3} {
		d := newModel(t, tiny(kind), 5, 2)
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 4))
			tree, err := align.CompileGroup(forest(rng, seed), align.Options{})
			if err != nil {
				t.Fatal(err)
			}
			packed, _ := episode(rng, 50, 4, 9)
			batch := []*align.Packed{tree, packed}
			wantLogits, want := forwardLogits(d, batch, ForwardOptions{})
			for _, checkpoint := range []bool{false, true} {
				logits, grads := forwardLogits(d, batch, ForwardOptions{DenseMask: true, CheckpointLayers: checkpoint})
				if e := gap(wantLogits, logits); e > 1e-5 {
					t.Errorf("%s seed %d: logits differ by %g", kind, seed, e)
				}
				for i, p := range d.parameters {
					if e := gap(want[i], grads[i]); e > 3e-5 {
						t.Errorf("%s seed %d: gradient of %s differs by %g", kind, seed, p.Name, e)
					}
				}
			}
		}
	}
}

// forwardLogits are the logits of the actions and the gradients of their summed loss.
func forwardLogits(d *Decoder, batch []*align.Packed, o ForwardOptions) (logits []float32, grads [][]float32) {
	s := torch.NewScope()
	defer s.Close()
	f := d.Forward(batch, o)
	out := d.Logits(f.Hidden)
	out.CrossEntropy(torch.FromInt64(actionTargets(batch)), torch.ReduceSum).Backward()
	f.Backward()
	return out.Float32s(), takeGrads(d)
}
