package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// forwardGrads is score by way of Forward, with the logits taken in pieces of at
// most chunk actions.
func forwardGrads(d *Decoder, batch []*align.Packed, o ForwardOptions, chunk int) (hidden []float32, grads [][]float32) {
	s := torch.NewScope()
	defer s.Close()
	f := d.Forward(batch, o)
	hidden = f.Hidden.Float32s()
	ids := actionTargets(batch)
	for at := 0; at < len(ids); at += chunk {
		end := min(at+chunk, len(ids))
		piece := f.Hidden.Narrow(0, int64(at), int64(end-at))
		d.Logits(piece).CrossEntropy(torch.FromInt64(ids[at:end]), torch.ReduceSum).Backward()
	}
	f.Backward()
	return hidden, takeGrads(d)
}

func actionTargets(batch []*align.Packed) []int64 {
	var ids []int64
	for _, p := range batch {
		for _, a := range p.Actions {
			ids = append(ids, int64(a.ID))
		}
	}
	return ids
}

// takeGrads returns the gradients and clears them.
func takeGrads(d *Decoder) [][]float32 {
	s := torch.NewScope()
	defer s.Close()
	var grads [][]float32
	for _, p := range d.parameters {
		g := p.Tensor.Grad()
		if g == nil {
			grads = append(grads, nil)
			continue
		}
		grads = append(grads, g.Float32s())
		p.Tensor.ZeroGrad()
	}
	return grads
}

// TestForwardEqualsPlainPass holds that a pass cut at the hidden states, with
// and without checkpoints, gives the hidden states and the gradients of one graph
// from ids to loss.
func TestForwardEqualsPlainPass(t *testing.T) {
	for _, kind := range []string{Llama, Qwen2} {
		d := newModel(t, tiny(kind), 11, 1.5)
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 3))
			var batch []*align.Packed
			for range 1 + rng.IntN(4) {
				packed, single := episode(rng, 50, 1+rng.IntN(5), 2+rng.IntN(20))
				batch = append(batch, packed, single[0])
			}
			_, want := score(d, batch)
			s := torch.NewScope()
			wantHidden := d.Hidden(batch).Float32s()
			s.Close()
			for _, checkpoint := range []bool{false, true} {
				for _, chunk := range []int{7, 1 << 20} {
					name := fmt.Sprintf("%s seed %d checkpoint %v chunk %d", kind, seed, checkpoint, chunk)
					hidden, got := forwardGrads(d, batch, ForwardOptions{CheckpointLayers: checkpoint}, chunk)
					if e := gap(wantHidden, hidden); e > 1e-6 {
						t.Errorf("%s: hidden states differ by %g", name, e)
					}
					for i, p := range d.parameters {
						if e := relativeGap(want[i], got[i]); e > 1e-5 {
							t.Errorf("%s: gradient of %s differs by %g", name, p.Name, e)
						}
					}
				}
			}
		}
	}
}

// relativeGap is the largest difference over the largest value.
func relativeGap(a, b []float32) float64 {
	top := 1e-30
	for _, v := range a {
		top = max(top, float64(v), -float64(v))
	}
	scale := func(list []float32) []float32 {
		out := make([]float32, len(list))
		for i, v := range list {
			out[i] = float32(float64(v) / top)
		}
		return out
	}
	return gap(scale(a), scale(b))
}

// TestForwardWithoutGradient holds that Backward without a loss, or on frozen
// weights, leaves the weights alone, and that a second one is refused.
func TestForwardWithoutGradient(t *testing.T) {
	d := newModel(t, tiny(Llama), 11, 1)
	packed, _ := episode(rand.New(rand.NewPCG(1, 1)), 50, 3, 10)
	batch := []*align.Packed{packed}
	for _, checkpoint := range []bool{false, true} {
		s := torch.NewScope()
		f := d.Forward(batch, ForwardOptions{CheckpointLayers: checkpoint})
		f.Backward()
		for i, g := range takeGrads(d) {
			if g != nil {
				t.Errorf("%s has a gradient", d.parameters[i].Name)
			}
		}
		f.Hidden.Sum().Backward()
		f.Backward()
		err := torch.Try(func() error { f.Backward(); return nil })
		if err == nil || !strings.Contains(err.Error(), "second time") {
			t.Errorf("second backward: error %v", err)
		}
		takeGrads(d)
		s.Close()
	}
	d.Freeze()
	_, grads := forwardGrads(d, batch, ForwardOptions{CheckpointLayers: true}, 1<<20)
	for i, g := range grads {
		if g != nil {
			t.Errorf("frozen: %s has a gradient", d.parameters[i].Name)
		}
	}
}

// TestForwardFree holds that Free ends everything that a pass keeps, in the
// middle of a scope.
func TestForwardFree(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 11, 1)
	packed, _ := episode(rand.New(rand.NewPCG(1, 1)), 50, 3, 10)
	s := torch.NewScope()
	defer s.Close()
	before := torch.Live()
	for _, checkpoint := range []bool{false, true} {
		f := d.Forward([]*align.Packed{packed}, ForwardOptions{CheckpointLayers: checkpoint})
		f.Free()
		f.Free()
		if n := torch.Live(); n != before {
			t.Errorf("checkpoint %v: %d tensors live, %d before", checkpoint, n, before)
		}
	}
	err := torch.Try(func() error { d.Forward([]*align.Packed{{IDs: []int32{1}}}, ForwardOptions{}); return nil })
	if err == nil {
		t.Error("a sequence without positions is taken")
	}
}
