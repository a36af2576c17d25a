package model

import (
	"github.com/memopd/memopd-bench/torch"
)

// forSampling is a decoder over the same weights that has them once in the compute
// type, and the head in float32, as Logits wants it, where a step would otherwise
// cast them anew. free releases what was copied, not the weights. It holds as long
// as the weights stay.
func (d *Decoder) forSampling() (ready *Decoder, free func()) {
	c := *d
	c.placement = d.placement.withDefaults()
	c.placement.Weights = c.placement.Compute
	free = c.replaceWeights(d.cast, func(head *torch.Tensor) *torch.Tensor { return head.To(torch.Float32) })
	return &c, free
}

// forDecoding is forSampling's decoder with its matrices laid out for products
// with few rows on the CPU.
func (d *Decoder) forDecoding() (fast *Decoder, free func()) {
	c := *d
	return &c, c.replaceWeights(forFewRows, forFewRows)
}

// replaceWeights sets the weights of a copied decoder to what change makes of
// them, the head's to what changeHead does, and returns what frees them.
func (d *Decoder) replaceWeights(change, changeHead func(*torch.Tensor) *torch.Tensor) (free func()) {
	s := torch.NewScope()
	defer s.Close()
	var owned []*torch.Tensor
	own := func(t *torch.Tensor) *torch.Tensor {
		t = t.Alias().Own() // change may have given back the weight itself
		owned = append(owned, t)
		return t
	}
	torch.NoGrad(func() {
		layers := make([]layer, len(d.layers))
		for i := range d.layers {
			layers[i] = *d.layers[i].each(func(t *torch.Tensor) *torch.Tensor { return own(change(t)) })
		}
		d.layers, d.norm = layers, own(change(d.norm))
		d.head = own(changeHead(d.liveHead()))
	})
	return func() {
		for _, t := range owned {
			t.Free()
		}
	}
}

// Matrices of fewer elements stay in the cache between two steps.
const panelElementsMin = 1 << 18

// forFewRows lays a weight (out, in) out for products with few rows, which wait for
// memory: as panels (out/width, in, width), each of which is read from end to end,
// or, where out has no fitting divisor or the matrix is small, column by column.
// With 16 rows of SmolLM2's matrices that takes 0.7 of the time of a product with
// the weight as it is, with 64 rows 0.8 (MKL, AVX-512).
func forFewRows(w *torch.Tensor) *torch.Tensor {
	if w.Dims() != 2 {
		return w
	}
	out, in := w.Dim(0), w.Dim(1)
	if width := panelWidth(out); width > 0 && out*in >= panelElementsMin {
		return w.View(out/width, width, in).Transpose(1, 2).Contiguous()
	}
	return w.Transpose(0, 1).Contiguous().Transpose(0, 1)
}

// panelWidth is the divisor of out nearest below 256 that vectors of 16 fill, 0
// where there is none of use.
func panelWidth(out int64) int64 {
	for width := int64(256); width >= 64; width -= 16 {
		if out%width == 0 {
			return width
		}
	}
	return 0
}

// linear is x (N, in) times a weight (out, in), transposed, or in panels, plus bias.
func linear(x, weight, bias *torch.Tensor) *torch.Tensor {
	if weight.Dims() == 2 {
		return x.Linear(weight, bias)
	}
	panels, width := weight.Dim(0), weight.Dim(2)
	y := x.Unsqueeze(0).Expand(panels, -1, -1).Bmm(weight).Transpose(0, 1).Reshape(-1, panels*width)
	if bias != nil {
		y = y.Add(bias)
	}
	return y
}
