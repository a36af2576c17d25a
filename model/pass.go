package model

import (
	"github.com/memopd/memopd-bench/torch"
)

// pass is what the layers of one forward pass share, on the decoder's device.
type pass struct {
	ids      *torch.Tensor // (N)
	pick     *torch.Tensor // (A): the flat tokens whose hidden states are asked for
	rotation rotation
	index    *layoutTensors
	backPick *torch.Tensor // (A): index.back at pick
	tap      tap
}

// tap receives the rotated keys and the values of a layer, (N, K, E) each.
type tap func(layer int, k, v *torch.Tensor)

// newPass places a layout and the picked tokens on the device. Its tensors are
// made in the innermost scope.
func (d *Decoder) newPass(l *layout, pick []int64, t tap) *pass {
	p := &pass{
		ids: d.ints(l.ids), pick: d.ints(pick), rotation: d.rotation(l.positions),
		index: d.layoutTensors(l), tap: t,
	}
	p.backPick = p.index.back.IndexSelect(0, p.pick)
	return p
}

// tensors lists what the pass holds.
func (p *pass) tensors() []*torch.Tensor {
	list := []*torch.Tensor{p.ids, p.pick, p.backPick, p.rotation.cos, p.rotation.sin, p.index.back}
	for _, g := range p.index.groups {
		for _, t := range []*torch.Tensor{g.queries, g.keys, g.mask} {
			if t != nil {
				list = append(list, t)
			}
		}
	}
	return list
}

// ints is data as a vector on the decoder's device.
func (d *Decoder) ints(data []int64) *torch.Tensor { return d.onDevice(torch.FromInt64(data)) }

// onDevice is t where the decoder is.
func (d *Decoder) onDevice(t *torch.Tensor) *torch.Tensor {
	if device := d.placement.withDefaults().Device; device != "cpu" {
		return t.ToDevice(device)
	}
	return t
}

// compute is the type of the residual stream.
func (d *Decoder) compute() torch.DType { return d.placement.withDefaults().Compute }

// cast is t in the compute type, t itself where it has that already.
func (d *Decoder) cast(t *torch.Tensor) *torch.Tensor {
	p := d.placement.withDefaults()
	if t == nil || p.Compute == p.Weights {
		return t
	}
	return t.To(p.Compute)
}

// layer is the weights of layer i in the compute type. Where they are stored in
// another they are cast as they are used: gradients reach what is stored.
func (d *Decoder) layer(i int) *layer {
	w := &d.layers[i]
	if p := d.placement.withDefaults(); p.Compute == p.Weights {
		return w
	}
	return &layer{
		inputNorm: d.cast(w.inputNorm), postNorm: d.cast(w.postNorm),
		qkv: d.cast(w.qkv), qkvBias: d.cast(w.qkvBias), out: d.cast(w.out), outBias: d.cast(w.outBias),
		gateUp: d.cast(w.gateUp), gateUpBias: d.cast(w.gateUpBias), down: d.cast(w.down), downBias: d.cast(w.downBias),
	}
}

// embedding is the first layer's input (N, D).
func (d *Decoder) embedding(p *pass) *torch.Tensor { return d.cast(torch.Embedding(d.embed, p.ids)) }

// layerOutput runs layer i on x (N, D). The last layer gives the picked tokens
// alone, (A, D): nothing attends to its outputs.
func (d *Decoder) layerOutput(p *pass, i int, x *torch.Tensor) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	w, back := d.layer(i), p.index.back
	last := i == len(d.layers)-1
	if last {
		back = p.backPick
	}
	a := d.attend(w, i, x, p, back)
	if last {
		x = x.IndexSelect(0, p.pick)
	}
	x = x.Add(a)
	return s.Keep(x.Add(w.feedForward(x, d.Config.RMSNormEps)))
}

// finalNorm is the normalised output of the last layer, (A, D) float32, so that
// logits and losses are reckoned in float32 whatever the layers compute in.
func (d *Decoder) finalNorm(x *torch.Tensor) *torch.Tensor {
	return x.RMSNorm(d.cast(d.norm), d.Config.RMSNormEps).To(torch.Float32)
}

// run is the forward pass up to the final norm at the flat tokens pick: (len(pick), D) float32.
func (d *Decoder) run(l *layout, pick []int64, t tap) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	return s.Keep(d.runPass(d.newPass(l, pick, t)))
}

// runPass frees what no gradient needs as it goes.
func (d *Decoder) runPass(p *pass) *torch.Tensor {
	x := d.embedding(p)
	for i := range d.layers {
		y := d.layerOutput(p, i, x)
		x.Free()
		x = y
	}
	return d.finalNorm(x)
}

// rotation is the rotary angles of the given positions, reckoned in float32 and
// used in the compute type.
func (d *Decoder) rotation(positions []int32) rotation {
	r := d.rope.at(positions)
	return rotation{d.onDevice(r.cos.To(d.compute())), d.onDevice(r.sin.To(d.compute()))}
}
