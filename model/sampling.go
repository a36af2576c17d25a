package model

import (
	"github.com/memopd/memopd-bench/torch"
)

// forSampling is a decoder over the same weights for use without gradients. It has
// the weights once in the compute type, and the head in float32, as Logits wants it,
// where a step would otherwise cast them anew. free releases what was copied, not
// the weights. It holds as long as the weights stay.
func (d *Decoder) forSampling() (ready *Decoder, free func()) {
	s := torch.NewScope()
	defer s.Close()
	c := *d
	c.placement = d.placement.withDefaults()
	c.placement.Weights, c.sampling = c.placement.Compute, true
	var owned []*torch.Tensor
	own := func(t *torch.Tensor) *torch.Tensor {
		t = t.Alias().Own() // a cast may have given back the weight itself
		owned = append(owned, t)
		return t
	}
	torch.NoGrad(func() {
		c.layers = make([]layer, len(d.layers))
		for i := range d.layers {
			c.layers[i] = *d.layers[i].each(func(t *torch.Tensor) *torch.Tensor { return own(d.cast(t)) })
		}
		c.norm, c.head = own(d.cast(d.norm)), own(d.liveHead().To(torch.Float32))
	})
	return &c, func() {
		for _, t := range owned {
			t.Free()
		}
	}
}
