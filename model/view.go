package model

import "github.com/memopd/memopd-bench/torch"

// In is the same decoder computing in another type: the weights are d's own, and
// whoever frees d ends it too.
func (d *Decoder) In(compute torch.DType) *Decoder {
	c := *d
	c.placement = d.placement.withDefaults()
	c.placement.Compute = compute
	return &c
}

// Head is a decoder's head alone, float32, for losses long after the layers ran.
type Head struct {
	weight *torch.Tensor // (V, D)
}

// Head returns the decoder's head on a device. It shares memory with the decoder
// where that has float32 weights there already. Free ends it.
func (d *Decoder) Head(device string) *Head {
	s := torch.NewScope()
	defer s.Close()
	h := &Head{}
	torch.NoGrad(func() {
		h.weight = d.head.Narrow(0, 0, int64(d.Vocab())).To(torch.Float32).ToDevice(device).Own()
	})
	return h
}

// Logits maps hidden states (A, D) to logits (A, V), as (*Decoder).Logits does.
func (h *Head) Logits(hidden *torch.Tensor) *torch.Tensor {
	return hidden.To(torch.Float32).Linear(h.weight, nil)
}

// Free ends the head.
func (h *Head) Free() { h.weight.Free() }
