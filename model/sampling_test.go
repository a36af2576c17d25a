package model

import (
	"fmt"
	"testing"

	"github.com/memopd/memopd-bench/torch"
)

// TestSampledLogProbs samples from decoders whose matrices are wide enough for LinearRows, with a limited vocabulary,
// with few and with many key-value heads.
func TestSampledLogProbs(t *testing.T) {
	for _, heads := range []int{2, 8} {
		t.Run(fmt.Sprint(heads), func(t *testing.T) { testSampledLogProbs(t, heads) })
	}
}

func testSampledLogProbs(t *testing.T, heads int) {
	c := tiny(Qwen2)
	c.NumAttentionHeads, c.NumKeyValueHeads = 8, heads
	c.HiddenSize, c.IntermediateSize, c.NumHiddenLayers, c.VocabSize, c.HeadDim = 512, 768, 1, 1024, 32
	d := newModel(t, c, 5, 1)
	if err := d.LimitVocab(1001); err != nil {
		t.Fatal(err)
	}
	all := calls(1, 1000, 2, 2, 2, false)
	for r, p := range generate(t, newSampler(t, d, warm, 4), &list{requests: all}) {
		s := torch.NewScope()
		ids := append(append([]int32{}, r.Context...), p.Output...)
		var rows []float64
		torch.NoGrad(func() { rows = d.Logits(d.HiddenAll([][]int32{ids})).LogSoftmax(-1).Float64s() })
		s.Close()
		for j, id := range p.Output {
			want := rows[(len(r.Context)+j-1)*1001+int(id)]
			if e := want - float64(p.LogProbs[j]); !(e < 2e-5 && e > -2e-5) {
				t.Errorf("token %d: log-probability off by %g", j, e)
			}
		}
	}
}
