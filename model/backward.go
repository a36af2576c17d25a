package model

import (
	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// ForwardOptions says how Forward trades time for memory.
type ForwardOptions struct {
	// CheckpointLayers keeps each layer's input alone, and Backward runs the
	// layers again, one at a time (gradient checkpointing, arXiv 1604.06174): the
	// activations of one layer in memory instead of all, for one more forward pass.
	CheckpointLayers bool
	// DenseMask gives each sequence to the attention whole, under a mask of the
	// square of its length: the slow reference that the speed of blocks is measured
	// against.
	DenseMask bool
}

// Forward is a forward pass cut at the hidden states: losses are taken on
// Hidden, in as many pieces as one likes, each with its own Backward, and then
// (*Forward).Backward carries the summed gradient through the network. So no
// more logits than those of one piece need exist at a time.
//
// It belongs to the scope that was innermost when it was made; Free ends it before.
type Forward struct {
	// Hidden is what (*Decoder).Hidden returns, (A, D) float32, as a leaf that
	// collects the gradients of the losses.
	Hidden *torch.Tensor

	decoder *Decoder
	pass    *pass
	inputs  []*torch.Tensor // each layer's input and the last one's output, without gradients; nil: not checkpointed
	output  *torch.Tensor   // Hidden with the whole graph, where it is not checkpointed
}

// Forward runs batch for training. It panics as Hidden does.
func (d *Decoder) Forward(batch []*align.Packed, o ForwardOptions) *Forward {
	s := torch.NewScope()
	defer s.Close()
	l, pick := layActions("forward", batch)
	if o.DenseMask {
		l.dense(batch)
	}
	f := &Forward{decoder: d, pass: d.newPass(l, pick, nil)}
	if o.CheckpointLayers {
		torch.NoGrad(f.runCheckpointed)
	} else {
		torch.EnableGrad(func() { f.output = d.runPass(f.pass) })
		f.Hidden = f.output.Detach()
		s.Keep(f.output)
	}
	s.Keep(f.Hidden.RequiresGrad_(true))
	return f
}

// runCheckpointed keeps the layers' inputs, and what running them again takes.
func (f *Forward) runCheckpointed() {
	s := torch.NewScope()
	defer s.Close()
	x := f.decoder.embedding(f.pass)
	f.inputs = append(f.inputs, x)
	for i := range f.decoder.layers {
		x = f.decoder.layerOutput(f.pass, i, x)
		f.inputs = append(f.inputs, x)
	}
	f.Hidden = s.Keep(f.decoder.finalNorm(x).Detach())
	for _, t := range append(f.pass.tensors(), f.inputs...) {
		s.Keep(t).Keep()
	}
}

// Backward adds to the gradients of the weights what Hidden's gradient amounts to,
// and drops the activations: it works once. Without a gradient at Hidden, or with
// frozen weights, it does nothing.
func (f *Forward) Backward() {
	s := torch.NewScope()
	defer s.Close()
	gradient := f.Hidden.Grad()
	if gradient == nil || !f.decoder.embed.RequiresGrad() {
		return
	}
	if f.output == nil && f.inputs == nil {
		panic(&torch.Error{Op: "forward", Message: "backward a second time, or after Free"})
	}
	if f.output != nil {
		f.output.BackwardWith(gradient, false)
	} else {
		torch.EnableGrad(func() { f.backCheckpointed(gradient) })
	}
	f.drop()
}

// backCheckpointed goes from the final norm down to the embedding. Each part is
// run anew on a leaf, whose gradient is the next part's.
func (f *Forward) backCheckpointed(gradient *torch.Tensor) {
	d := f.decoder
	for i := len(d.layers); i >= 0; i-- {
		s := torch.NewScope()
		x := f.inputs[i].Detach().RequiresGrad_(true)
		var y *torch.Tensor
		if i == len(d.layers) {
			y = d.finalNorm(x)
		} else {
			y = d.layerOutput(f.pass, i, x)
		}
		y.BackwardWith(gradient, false)
		gradient = s.Keep(x.Grad())
		s.Close()
		f.inputs[i].Free()
	}
	d.embedding(f.pass).BackwardWith(gradient, false)
}

// drop frees the activations.
func (f *Forward) drop() {
	f.output.Free()
	for _, t := range append(f.pass.tensors(), f.inputs...) {
		t.Free()
	}
	f.output, f.inputs = nil, nil
}

// Free ends the pass and Hidden.
func (f *Forward) Free() {
	f.drop()
	f.Hidden.Free()
}
