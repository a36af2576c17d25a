package model

import (
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/torch"
)

// Placement says where a decoder's weights live and in which type it reckons.
// The zero value is the CPU and float32.
//
// A trained decoder keeps float32 weights and may compute in bfloat16: its
// forward pass casts a layer's weights as it comes to them, so gradients reach
// the float32 master weights. A frozen one holds what it computes in.
type Placement struct {
	Device  string      // "cpu" (or ""), "cuda", "cuda:1"
	Weights torch.DType // of the stored weights; zero: float32
	Compute torch.DType // of the forward pass, its norms, softmax and logits apart; zero: as Weights
}

// withDefaults fills in what the zero values stand for.
func (p Placement) withDefaults() Placement {
	if p.Device == "" {
		p.Device = "cpu"
	}
	if p.Weights == 0 {
		p.Weights = torch.Float32
	}
	if p.Compute == 0 {
		p.Compute = p.Weights
	}
	return p
}

// floats are the types that weights and computation can have.
var floats = []torch.DType{torch.Float32, torch.BFloat16, torch.Float16, torch.Float64}

// check reports a placement that this build and machine cannot give.
func (p Placement) check() error {
	p = p.withDefaults()
	for _, kind := range []struct {
		name string
		torch.DType
	}{{"weights", p.Weights}, {"compute", p.Compute}} {
		if !slices.Contains(floats, kind.DType) {
			return fmt.Errorf("placement: %s in %v, want one of %v", kind.name, kind.DType, floats)
		}
	}
	if err := torch.CheckDevice(p.Device); err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	return nil
}

// Placement says where the weights are, with nothing left to its default.
func (d *Decoder) Placement() Placement { return d.placement.withDefaults() }

// Clone returns a decoder with copies of the weights, placed as they are, and no gradients.
func (d *Decoder) Clone() *Decoder { return d.CloneTo(d.placement) }

// CloneTo is Clone with the copies elsewhere or in another type, which rounds
// where that is a narrower one. On a placement that does not exist it panics with
// *torch.Error, as ToDevice does; torch.Try turns that into an error.
func (d *Decoder) CloneTo(p Placement) *Decoder {
	if err := p.check(); err != nil {
		panic(&torch.Error{Op: "clone", Message: err.Error()})
	}
	c := allocate(d.Config, p)
	c.live = d.live
	if err := c.CopyFrom(d); err != nil {
		c.Free()
		panic(&torch.Error{Op: "clone", Message: err.Error()})
	}
	c.bind()
	return c
}

// CopyFrom overwrites the weights with those of a decoder of the same shape,
// wherever and in whatever type they are.
func (d *Decoder) CopyFrom(src *Decoder) error {
	if len(d.slots) != len(src.slots) {
		return fmt.Errorf("copy weights: %d parameters from %d", len(d.slots), len(src.slots))
	}
	for i, s := range d.slots {
		if from := src.slots[i]; s.name != from.name || !slices.Equal(s.shape, from.shape) {
			return fmt.Errorf("copy weights: %s %v from %s %v", s.name, s.shape, from.name, from.shape)
		}
	}
	return torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		torch.NoGrad(func() {
			for i, p := range d.parameters {
				p.Tensor.Copy_(src.parameters[i].Tensor)
			}
		})
		return nil
	})
}

// Vocab is the number of ids that the decoder gives logits for: the rows of its
// head, or fewer after LimitVocab.
func (d *Decoder) Vocab() int {
	if d.live > 0 {
		return d.live
	}
	return d.Config.VocabSize
}

// LimitVocab takes the ids from n on out of the vocabulary. Checkpoints have
// rows beyond their tokenizer (Qwen2.5: 151,665 ids, 151,936 or 152,064 rows):
// what no tokenizer can write is neither sampled nor counted in a distribution,
// and a student and a teacher of unequal padding become comparable. Saved
// checkpoints keep all rows.
func (d *Decoder) LimitVocab(n int) error {
	if n < 1 || n > d.Config.VocabSize {
		return fmt.Errorf("limit vocabulary: %d ids, the model has %d rows", n, d.Config.VocabSize)
	}
	for _, id := range d.Config.EOSTokenID {
		if int(id) >= n {
			return fmt.Errorf("limit vocabulary: the end-of-sequence id %d is not among %d ids", id, n)
		}
	}
	d.live = n
	return nil
}
