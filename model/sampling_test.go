package model

import (
	"testing"

	"github.com/memopd/memopd-bench/torch"
)

// TestFewRowsLayout holds products with weights laid out for few rows to plain ones.
func TestFewRowsLayout(t *testing.T) {
	noLeaks(t)
	s := torch.NewScope()
	defer s.Close()
	for _, c := range []struct {
		out, in int64
		dims    int
	}{{768, 512, 3}, {2 * 208, 1024, 3}, {601, 1024, 2}, {64, 32, 2}, {512, 512, 3}} {
		w, bias := torch.Randn(c.out, c.in), torch.Randn(c.out)
		laid := forFewRows(w)
		if laid.Dims() != c.dims {
			t.Errorf("%d by %d: laid out as %v", c.out, c.in, laid)
		}
		for _, rows := range []int64{1, 5} {
			x := torch.Randn(rows, c.in)
			for _, b := range []*torch.Tensor{nil, bias} {
				if e := gap(x.Linear(w, b).Float32s(), linear(x, laid, b).Float32s()); e > 1e-5 {
					t.Errorf("%d rows, %d by %d: off by %g", rows, c.out, c.in, e)
				}
			}
		}
	}
}

// TestDecodingLayout samples from a decoder large enough for panels, with a limited vocabulary.
func TestDecodingLayout(t *testing.T) {
	c := tiny(Qwen2)
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
