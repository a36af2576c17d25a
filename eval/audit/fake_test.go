package audit

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

const vocabulary = 40

// newModel is a decoder of some thousand weights, whose logits are spread enough for
// states to matter.
func newModel(t testing.TB, seed uint64) *model.Decoder {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	torch.SetNumThreads(1)
	d, err := model.New(model.Config{
		ModelType: model.Llama, VocabSize: vocabulary, HiddenSize: 32, IntermediateSize: 48,
		NumHiddenLayers: 2, NumAttentionHeads: 4, NumKeyValueHeads: 2, HeadDim: 8,
		MaxPositionEmbeddings: 256, RMSNormEps: 1e-6, RopeTheta: 10000,
	}, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Free)
	for _, p := range d.Parameters() {
		if p.Name == "model.norm.weight" {
			torch.NoGrad(func() { p.Tensor.MulScalar_(4) })
		}
	}
	return d
}

// sampled are random trajectories of MEM1's update with at least three calls.
func sampled(n int) []*trace.Trajectory {
	c := aligntest.Small()
	c.Vocab, c.MaxCalls = vocabulary, 6
	var all []*trace.Trajectory
	for seed := uint64(0); len(all) < n; seed++ {
		t := aligntest.Random(rand.New(rand.NewPCG(seed, 9)), c)
		for k := range t.Calls {
			t.Calls[k].LogProbs = nil
		}
		if len(t.Calls) >= 3 {
			all = append(all, t)
		}
	}
	return all
}

// named are layouts by their names.
func named(t testing.TB, names ...string) []align.Layout {
	t.Helper()
	var list []align.Layout
	for _, name := range names {
		l, err := align.LayoutNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

// distribution is log softmax(logits / temperature) after plain causal ids, reckoned
// in Go in float64, with the logits.
func distribution(d *model.Decoder, ids []int32, temperature float64) (logProbs, logits []float64) {
	torch.NoGrad(func() {
		s := torch.NewScope()
		defer s.Close()
		hidden := d.HiddenAll([][]int32{ids})
		logits = d.Logits(hidden.Narrow(0, hidden.Dim(0)-1, 1)).Float64s()
	})
	most, sum := math.Inf(-1), 0.0
	for _, x := range logits {
		most = max(most, x/temperature)
	}
	for _, x := range logits {
		sum += math.Exp(x/temperature - most)
	}
	for _, x := range logits {
		logProbs = append(logProbs, x/temperature-most-math.Log(sum))
	}
	return logProbs, logits
}

func argmax(list []float64) int {
	best := 0
	for i, x := range list {
		if x > list[best] {
			best = i
		}
	}
	return best
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s: %.9g, want %.9g", what, got, want)
	}
}

func cpu(dtype string) train.Compute { return train.Compute{Device: "cpu", DType: dtype} }
