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
	backPick *torch.Tensor // (A): index.back at pick, which may be pick itself
	cached   cached        // nil: all keys are the flat tokens'
}

// cached ties a pass to keys and values outside it.
type cached interface {
	// join returns the rotated keys and the values of a layer that its attention
	// looks up, (past+N, K, E) each, given those of the flat tokens.
	join(layer int, k, v *torch.Tensor) (allK, allV *torch.Tensor)
}

// newPass places a layout and the picked tokens on the device. Its tensors are
// made in the innermost scope.
func (d *Decoder) newPass(l *layout, pick []int64, c cached) *pass {
	p := &pass{
		ids: d.ints(l.ids), pick: d.ints(pick), rotation: d.rotation(l.positions),
		index: d.layoutTensors(l), cached: c,
	}
	p.backPick = p.pick
	if p.index.back != nil {
		p.backPick = p.index.back.IndexSelect(0, p.pick)
	}
	return p
}

// tensors lists what the pass holds.
func (p *pass) tensors() []*torch.Tensor {
	list := []*torch.Tensor{p.ids, p.pick, p.rotation.cos, p.rotation.sin}
	if p.index.back != nil {
		list = append(list, p.backPick, p.index.back)
	}
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
	if device := d.device(); device != "cpu" {
		return t.ToDevice(device)
	}
	return t
}

// zeros is zeros on the decoder's device.
func (d *Decoder) zeros(kind torch.DType, shape ...int64) *torch.Tensor {
	return torch.ZerosOn(d.device(), kind, shape...)
}

func (d *Decoder) device() string { return d.placement.withDefaults().Device }

// compute is the type of the residual stream.
func (d *Decoder) compute() torch.DType { return d.placement.withDefaults().Compute }

// cast is t in the compute type. Where weights are stored in another they are cast
// as they are used, so that gradients reach what is stored.
func (d *Decoder) cast(t *torch.Tensor) *torch.Tensor {
	if t == nil || t.DType() == d.compute() {
		return t
	}
	return t.To(d.compute())
}

// layer is the weights of layer i in the compute type.
func (d *Decoder) layer(i int) *layer {
	if p := d.placement.withDefaults(); p.Compute == p.Weights {
		return &d.layers[i]
	}
	return d.layers[i].each(d.cast)
}

// each is the layer with f of every tensor that it has.
func (w *layer) each(f func(*torch.Tensor) *torch.Tensor) *layer {
	out := *w
	for _, t := range []**torch.Tensor{
		&out.inputNorm, &out.postNorm, &out.qkv, &out.qkvBias, &out.qNorm, &out.kNorm,
		&out.out, &out.outBias, &out.gateUp, &out.gateUpBias, &out.down, &out.downBias,
	} {
		if *t != nil {
			*t = f(*t)
		}
	}
	return &out
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
	return s.Keep(x.Add(d.feedForward(w, x)))
}

// finalNorm is the normalised output of the last layer, (A, D) float32, so that
// logits and losses are reckoned in float32 whatever the layers compute in.
func (d *Decoder) finalNorm(x *torch.Tensor) *torch.Tensor {
	return x.RMSNorm(d.cast(d.norm), d.Config.RMSNormEps).To(torch.Float32)
}

// run is the forward pass up to the final norm at the flat tokens pick: (len(pick), D) float32.
func (d *Decoder) run(l *layout, pick []int64, c cached) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	return s.Keep(d.runPass(d.newPass(l, pick, c)))
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
