package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// inBFloat16 is d with float32 weights that computes in bfloat16; the test frees d.
func inBFloat16(d *Decoder) *Decoder {
	c := *d
	c.placement = Placement{Weights: torch.Float32, Compute: torch.BFloat16}
	return &c
}

func someBatch(seed uint64) (batch, single []*align.Packed) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 4 {
		p, one := episode(rng, 50, 1+rng.IntN(5), 2+rng.IntN(20))
		batch, single = append(batch, p), append(single, one...)
	}
	return batch, single
}

// deviation is the root mean square of the differences over that of a.
func deviation(a, b []float32) float64 {
	var square, all float64
	for i := range a {
		square += math.Pow(float64(a[i])-float64(b[i]), 2)
		all += math.Pow(float64(a[i]), 2)
	}
	return math.Sqrt(square / all)
}

// TestBFloat16 holds a pass in bfloat16 to that in float32 within what its 8 bits
// allow: a value is off by at most 2^-9 of itself where it is rounded, and a layer
// rounds about ten times, with independent errors.
func TestBFloat16(t *testing.T) {
	for _, kind := range []string{Llama, Qwen2, Qwen3} {
		d := newModel(t, tiny(kind), 31, 1)
		b := inBFloat16(d)
		batch, _ := someBatch(1)
		s := torch.NewScope()
		exact, short := d.Hidden(batch), b.Hidden(batch)
		if k := short.DType(); k != torch.Float32 {
			t.Errorf("%s: hidden states are %v", kind, k)
		}
		if e := short.To(torch.BFloat16).To(torch.Float32).Sub(short).Abs().Max().Item(); e != 0 {
			t.Errorf("%s: hidden states are no values of bfloat16: %g off", kind, e)
		}
		if k := b.Logits(short).DType(); k != torch.Float32 {
			t.Errorf("%s: logits are %v", kind, k)
		}
		limit := math.Pow(2, -9) * math.Sqrt(10*float64(d.Config.NumHiddenLayers))
		if e := deviation(exact.Float32s(), short.Float32s()); !(e > 1e-4 && e < limit) {
			t.Errorf("%s: hidden states deviate by %g, want at most %g, and not 0", kind, e, limit)
		}
		s.Close()

		_, want := score(d, batch)
		for _, checkpoint := range []bool{false, true} {
			_, got := forwardGrads(b, batch, ForwardOptions{CheckpointLayers: checkpoint}, 16)
			for i, p := range d.parameters {
				if e := deviation(want[i], got[i]); !(e < 8*limit) {
					t.Errorf("%s checkpoint %v: gradient of %s deviates by %g", kind, checkpoint, p.Name, e)
				}
			}
		}
	}
}

// TestBFloat16CheckpointIsPlain holds that running a layer again gives its very bits.
func TestBFloat16CheckpointIsPlain(t *testing.T) {
	d := inBFloat16(newModel(t, tiny(Llama), 31, 1))
	batch, _ := someBatch(2)
	_, plain := forwardGrads(d, batch, ForwardOptions{}, 1<<20)
	_, again := forwardGrads(d, batch, ForwardOptions{CheckpointLayers: true}, 1<<20)
	for i, p := range d.parameters {
		if e := deviation(plain[i], again[i]); e > 1e-6 {
			t.Errorf("gradient of %s deviates by %g", p.Name, e)
		}
	}
}

// TestBFloat16Equivalence measures rollout context equivalence in bfloat16: packed
// sequences against calls alone. Its floor is bfloat16 itself: what the log-probs
// deviate from float32 by.
func TestBFloat16Equivalence(t *testing.T) {
	d, err := Load("../presets/mini/student", Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	b := inBFloat16(d)
	rng := rand.New(rand.NewPCG(2, 2))
	var batch []*align.Packed
	var alone, exact []float64
	for range 12 {
		packed, single := episode(rng, d.Config.VocabSize, 1+rng.IntN(6), 40)
		batch = append(batch, packed)
		for _, one := range single {
			alone = append(alone, actionLogProbs(b, []*align.Packed{one})...)
		}
	}
	packed := actionLogProbs(b, batch)
	exact = actionLogProbs(d, batch)
	rce, floor := quantiles(packed, alone), quantiles(packed, exact)
	t.Logf("%d actions: packed against alone p50 %.2g p99 %.2g, bfloat16 against float32 p50 %.2g p99 %.2g", len(packed), rce[0], rce[1], floor[0], floor[1])
	if !(rce[1] <= floor[1]) {
		t.Errorf("packing changes more, %g, than bfloat16 does, %g", rce[1], floor[1])
	}
}

// quantiles are the median and the 99th percentile of the absolute differences.
func quantiles(a, b []float64) [2]float64 {
	errs := make([]float64, len(a))
	for i := range a {
		errs[i] = math.Abs(a[i] - b[i])
	}
	slices.Sort(errs)
	return [2]float64{errs[len(errs)/2], errs[len(errs)*99/100]}
}

// TestBFloat16Sampler holds the sampler's log-probabilities to those of a forward
// pass in the same type, with stored weights of either type.
func TestBFloat16Sampler(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 33, 1)
	b := inBFloat16(d)
	all := calls(3, 50, 3, 2, 3, false)
	var errs, floor []float64
	for r, p := range generate(t, newSampler(t, b, trace.Sampler{Temperature: 1, TopP: 1}, 4), &list{requests: all}) {
		want, exact := logProbs(b, r.Context, p.Output, 1), logProbs(d, r.Context, p.Output, 1)
		for j := range want {
			errs = append(errs, math.Abs(want[j]-float64(p.LogProbs[j])))
			floor = append(floor, math.Abs(want[j]-exact[j]))
		}
	}
	if worst, limit := slices.Max(errs), slices.Max(floor); !(worst <= 1.5*limit) {
		t.Errorf("log-probabilities are off by %g, bfloat16 itself by %g", worst, limit)
	}
}

// TestCloneInBFloat16 runs a decoder whose weights are stored in bfloat16: it gives
// what one that casts its float32 weights gives.
func TestCloneInBFloat16(t *testing.T) {
	d := newModel(t, tiny(Llama), 31, 1)
	b := inBFloat16(d)
	stored := *d
	stored.placement = Placement{Weights: torch.BFloat16}
	s := torch.NewScope()
	defer s.Close()
	cast := func(x *torch.Tensor) *torch.Tensor { return x.To(torch.BFloat16).Detach() }
	stored.layers = nil
	for i := range d.layers {
		stored.layers = append(stored.layers, *d.layers[i].each(cast))
	}
	stored.embed, stored.norm, stored.head = cast(d.embed), cast(d.norm), cast(d.head)
	batch, _ := someBatch(3)
	if e := deviation(b.Hidden(batch).Float32s(), stored.Hidden(batch).Float32s()); e != 0 {
		t.Errorf("hidden states deviate by %g", e)
	}
	all := calls(3, 50, 2, 2, 2, false)
	want := generate(t, newSampler(t, &stored, warm, 4), &list{requests: all})
	got := generate(t, newSampler(t, &stored, warm, 4), &list{requests: all})
	sameResponses(t, "again", all, want, got)
}
