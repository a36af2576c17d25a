package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

func TestMain(m *testing.M) {
	torch.SetNumThreads(1)
	os.Exit(m.Run())
}

// tiny is a config with grouped queries, biases and everything else small.
func tiny(kind string) Config {
	return Config{
		ModelType: kind, VocabSize: 50, HiddenSize: 32, IntermediateSize: 48, NumHiddenLayers: 3, NumAttentionHeads: 4,
		NumKeyValueHeads: 2, HeadDim: 8, MaxPositionEmbeddings: 256, RMSNormEps: 1e-6, RopeTheta: 10000,
		TieWordEmbeddings: kind == Llama, AttentionBias: kind == Llama, MLPBias: kind == Llama,
	}
}

// mini is the size of the mini preset.
func mini() Config {
	return Config{
		ModelType: Llama, VocabSize: 250, HiddenSize: 128, IntermediateSize: 336, NumHiddenLayers: 4, NumAttentionHeads: 4,
		NumKeyValueHeads: 4, HeadDim: 32, MaxPositionEmbeddings: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true,
	}
}

// noLeaks fails the test if it leaves tensors behind. Call it first.
func noLeaks(t testing.TB) {
	before := torch.Live()
	t.Cleanup(func() {
		if n := torch.Live(); n != before {
			t.Errorf("%d tensors left, %d before", n, before)
		}
	})
}

// newModel makes a decoder that the test frees. sharp scales the weights, so that
// attention and logits are as peaked as in a trained net, and gives the biases values.
func newModel(t testing.TB, c Config, seed uint64, sharp float64) *Decoder {
	t.Helper()
	noLeaks(t)
	d, err := New(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Free)
	s := torch.NewScope()
	defer s.Close()
	rng := rand.New(rand.NewPCG(seed, 99))
	torch.NoGrad(func() {
		for i, p := range d.parameters {
			switch d.slots[i].kind {
			case kindWeight:
				p.Tensor.MulScalar_(sharp)
			default:
				noise := make([]float32, d.slots[i].numel())
				for j := range noise {
					noise[j] = float32(rng.NormFloat64() * 0.2)
				}
				p.Tensor.Add_(torch.FromFloat32(noise, d.slots[i].shape...), 1)
			}
		}
	})
	return d
}

// episode makes a packed sequence of random calls and the same calls one by one.
func episode(rng *rand.Rand, vocab, calls, scale int) (*align.Packed, []*align.Packed) {
	draw := func(n int) []int32 {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = rng.Int32N(int32(vocab))
		}
		return ids
	}
	prefix := draw(1 + rng.IntN(scale))
	packed := &align.Packed{TrajectoryID: "t", IDs: prefix, PrefixLength: len(prefix)}
	for i := range prefix {
		packed.Positions = append(packed.Positions, int32(i))
	}
	var single []*align.Packed
	for c := range calls {
		own, output := rng.IntN(scale), 1+rng.IntN(scale)
		if c == 0 {
			own = 0 // the first action is predicted by the prefix's last token
		}
		ids := draw(own + output)
		one := &align.Packed{TrajectoryID: fmt.Sprint("t/", c), IDs: append(append([]int32{}, prefix...), ids...), PrefixLength: len(prefix)}
		for i := range one.IDs {
			one.Positions = append(one.Positions, int32(i))
		}
		one.Blocks = []align.Block{{Call: c, Start: len(prefix), End: len(one.IDs)}}
		start := len(packed.IDs)
		packed.IDs = append(packed.IDs[:start:start], ids...)
		packed.Positions = append(packed.Positions, one.Positions[len(prefix):]...)
		packed.Blocks = append(packed.Blocks, align.Block{Call: c, Start: start, End: len(packed.IDs)})
		for i := range output {
			a := align.Action{Call: c, Token: i, ID: ids[own+i]}
			a.Index, a.Predict = start+own+i, start+own+i-1
			if own+i == 0 {
				a.Predict = len(prefix) - 1
			}
			packed.Actions = append(packed.Actions, a)
			a.Index = len(prefix) + own + i
			a.Predict = a.Index - 1
			one.Actions = append(one.Actions, a)
		}
		single = append(single, one)
	}
	return packed, single
}

// score runs a batch and returns logits and the gradients of the summed
// log-probability of the actions, by parameter.
func score(d *Decoder, batch []*align.Packed) (logits []float32, grads [][]float32) {
	s := torch.NewScope()
	defer s.Close()
	var ids []int64
	for _, p := range batch {
		for _, a := range p.Actions {
			ids = append(ids, int64(a.ID))
		}
	}
	out := d.Logits(d.Hidden(batch))
	out.CrossEntropy(torch.FromInt64(ids), torch.ReduceSum).Backward()
	for _, p := range d.parameters {
		g := p.Tensor.Grad()
		if g == nil {
			grads = append(grads, nil)
			continue
		}
		grads = append(grads, g.Float32s())
		p.Tensor.ZeroGrad()
	}
	return out.Float32s(), grads
}

// gap is the largest difference, relative to the largest value where that is above 1.
func gap(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	worst, top := 0.0, 1.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		worst = max(worst, d)
		top = max(top, math.Abs(float64(a[i])))
	}
	return worst / top
}

// TestRolloutContextEquivalence is MemOPD's RCE: packed sequences in one batch
// give the logits and the gradients of independent calls run one at a time.
func TestRolloutContextEquivalence(t *testing.T) {
	for _, kind := range []string{Llama, Qwen2} {
		for _, sharp := range []float64{1, 2.5} {
			t.Run(fmt.Sprintf("%s/sharp=%v", kind, sharp), func(t *testing.T) {
				d := newModel(t, tiny(kind), 7, sharp)
				for seed := range uint64(6) {
					rng := rand.New(rand.NewPCG(seed, 1))
					var batch []*align.Packed
					var logits []float32
					var grads [][]float32
					for range 1 + rng.IntN(5) {
						packed, single := episode(rng, 50, 1+rng.IntN(6), 2+rng.IntN(30))
						batch = append(batch, packed)
						for _, one := range single {
							l, g := score(d, []*align.Packed{one})
							logits = append(logits, l...)
							grads = sum(grads, g)
						}
					}
					gotLogits, gotGrads := score(d, batch)
					if e := gap(logits, gotLogits); e > 1e-5 {
						t.Errorf("seed %d: logits differ by %g", seed, e)
					}
					for i, p := range d.parameters {
						if e := gap(grads[i], gotGrads[i]); e > 3e-5 || grads[i] == nil {
							t.Errorf("seed %d: gradient of %s differs by %g", seed, p.Name, e)
						}
					}
				}
			})
		}
	}
}

func sum(total, more [][]float32) [][]float32 {
	if total == nil {
		return more
	}
	for i := range total {
		for j := range total[i] {
			total[i][j] += more[i][j]
		}
	}
	return total
}

// TestSameForwardIsBitIdentical holds that the same batch gives the same bits.
func TestSameForwardIsBitIdentical(t *testing.T) {
	d := newModel(t, tiny(Llama), 7, 1)
	packed, _ := episode(rand.New(rand.NewPCG(1, 1)), 50, 5, 20)
	logits, grads := score(d, []*align.Packed{packed})
	again, gradsAgain := score(d, []*align.Packed{packed})
	if !slices.Equal(logits, again) || !reflect.DeepEqual(grads, gradsAgain) {
		t.Error("logits or gradients differ between two passes")
	}
}

// TestFrozenTakesNoGradient holds that a frozen decoder records nothing.
func TestFrozenTakesNoGradient(t *testing.T) {
	d := newModel(t, tiny(Llama), 7, 1)
	d.Freeze()
	packed, _ := episode(rand.New(rand.NewPCG(1, 1)), 50, 2, 5)
	s := torch.NewScope()
	defer s.Close()
	if d.Hidden([]*align.Packed{packed}).RequiresGrad() {
		t.Error("the hidden states ask for gradients")
	}
}

// TestLogProbErrorIsSmall holds the 99th percentile of the error of the actions'
// log-probabilities, the figure that RCE is judged by, to its limit at the mini
// preset's size: with random weights, with far sharper attention and logits, and
// with the trained checkpoints.
func TestLogProbErrorIsSmall(t *testing.T) {
	for _, sharp := range []float64{1, 2, 3} {
		checkLogProbs(t, fmt.Sprint("sharp ", sharp), newModel(t, mini(), 9, sharp))
	}
	for _, name := range []string{"student", "teacher"} {
		d, err := Load("../presets/mini/"+name, Placement{})
		if err != nil {
			t.Fatal(err)
		}
		checkLogProbs(t, name, d)
		d.Free()
	}
}

func checkLogProbs(t *testing.T, name string, d *Decoder) {
	rng := rand.New(rand.NewPCG(2, 2))
	var batch []*align.Packed
	var want []float64
	for range 12 {
		packed, single := episode(rng, d.Config.VocabSize, 1+rng.IntN(6), 40)
		batch = append(batch, packed)
		for _, one := range single {
			want = append(want, actionLogProbs(d, []*align.Packed{one})...)
		}
	}
	errs := make([]float64, len(want))
	for i, got := range actionLogProbs(d, batch) {
		errs[i] = math.Abs(want[i] - got)
	}
	slices.Sort(errs)
	p99 := errs[len(errs)*99/100]
	t.Logf("%s: %d actions, lowest log-probability %.1f, error p99 %.2g, largest %.2g", name, len(errs), slices.Min(want), p99, errs[len(errs)-1])
	if !(p99 <= 1e-4) {
		t.Errorf("%s: p99 of the error is %g", name, p99)
	}
}

// actionLogProbs are the log-probabilities of the actions of a batch.
func actionLogProbs(d *Decoder, batch []*align.Packed) []float64 {
	s := torch.NewScope()
	defer s.Close()
	var out []float64
	torch.NoGrad(func() {
		var ids []int64
		for _, p := range batch {
			for _, a := range p.Actions {
				ids = append(ids, int64(a.ID))
			}
		}
		logProbs := d.Logits(d.Hidden(batch)).LogSoftmax(-1)
		out = logProbs.Gather(1, torch.FromInt64(ids, int64(len(ids)), 1)).Float64s()
	})
	return out
}

// TestEndAndPadIDsAreTokensLikeOthers holds that no id is hidden for its value: what a
// model calls its end and its pad, both one id in Qwen2.5's base models, is computed
// as any other.
func TestEndAndPadIDsAreTokensLikeOthers(t *testing.T) {
	c := tiny(Qwen2)
	plain := newModel(t, c, 7, 2)
	end := int32(3)
	c.PadTokenID, c.BOSTokenID, c.EOSTokenID = &end, &end, TokenIDs{end}
	named := newModel(t, c, 7, 2)
	packed, _ := episode(rand.New(rand.NewPCG(3, 1)), 50, 4, 12)
	count := 0
	for i := range packed.IDs {
		if i%3 == 0 {
			packed.IDs[i] = end
			count++
		}
	}
	logits, grads := score(plain, []*align.Packed{packed})
	got, gotGrads := score(named, []*align.Packed{packed})
	if !slices.Equal(got, logits) || !reflect.DeepEqual(gotGrads, grads) || count < 5 {
		t.Errorf("of %d ends and pads the logits or gradients are others", count)
	}
	all := requests(5, 4)
	for _, r := range all {
		r.MaxNewTokens = 4
	}
	s := newSampler(t, named, warm, 3)
	s.EOS = nil
	want := generate(t, newSampler(t, plain, warm, 3), &list{requests: all})
	sameResponses(t, "sampled after pads", all, want, generate(t, s, &list{requests: all}))
}
