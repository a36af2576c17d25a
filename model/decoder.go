package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/memopd/memopd-bench/torch"
)

// Parameter is a named weight of a decoder. The query, key and value
// projections are one tensor, qkv_proj, and so are the gate and up projections,
// gate_up_proj; checkpoints hold them apart under Hugging Face's names.
type Parameter = torch.Named

// Decoder is a decoder-only transformer. It belongs to the
// goroutine that uses libtorch. Free releases it; no scope does.
type Decoder struct {
	Config Config

	placement Placement
	live      int  // ids with logits; 0: all rows of the head
	sampling  bool // gradients are off

	slots      []slot
	parameters []Parameter
	rope       *ropeTable

	embed, norm, head *torch.Tensor // (V, D), (D), (V, D); head is embed when tied
	layers            []layer
}

// layer holds the weights of one block; biases are nil where there are none.
type layer struct {
	inputNorm, postNorm *torch.Tensor // (D)
	qkv, qkvBias        *torch.Tensor // ((H+2K)E, D)
	qNorm, kNorm        *torch.Tensor // (E), qwen3 alone
	out, outBias        *torch.Tensor // (D, HE)
	gateUp, gateUpBias  *torch.Tensor // (2F, D)
	down, downBias      *torch.Tensor // (D, F)
}

// New makes a decoder with random weights, float32 on the CPU. The same seed gives the same weights
// with any libtorch: the numbers are drawn in Go.
//
// Projections are normal with standard deviation 1/sqrt(inputs), half of that
// where they write to the residual stream.
// The embedding is normal with standard deviation 1, as large as what the layers
// add to the residual stream; with 1/sqrt(D) a small decoder learns to copy far
// later. Where it is tied, the final norm starts at 1/sqrt(D) instead of 1, so that
// logits start with a deviation of about 1.
func New(c Config, seed uint64) (*Decoder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d := allocate(c, Placement{})
	for i, s := range d.slots {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		data := make([]float32, s.numel())
		for j := range data {
			switch s.kind {
			case kindNorm:
				data[j] = float32(s.std)
			case kindWeight:
				data[j] = float32(rng.NormFloat64() * s.std)
			}
		}
		d.fill(i, data)
	}
	d.bind()
	return d, nil
}

// allocate makes a decoder whose parameters stand where they are placed, their values not yet defined.
func allocate(c Config, p Placement) *Decoder {
	p = p.withDefaults()
	slots := c.slots()
	d := &Decoder{Config: c, placement: p, slots: slots, parameters: make([]Parameter, len(slots)), rope: newRopeTable(&c)}
	whole := false
	defer func() {
		if !whole {
			d.Free() // out of memory
		}
	}()
	for i, s := range slots {
		d.parameters[i] = Parameter{Name: s.name, Tensor: torch.EmptyOn(p.Device, p.Weights, s.shape...).Own().RequiresGrad_(true)}
	}
	whole = true
	return d
}

// fill sets parameter i from its values, row-major.
func (d *Decoder) fill(i int, data []float32) {
	s := torch.NewScope()
	defer s.Close()
	torch.NoGrad(func() { d.parameters[i].Tensor.Copy_(torch.FromFloat32(data, d.slots[i].shape...)) })
}

// bind points the named fields at the parameters, in the order of slots.
func (d *Decoder) bind() {
	i := 0
	next := func(present bool) *torch.Tensor {
		if !present {
			return nil
		}
		i++
		return d.parameters[i-1].Tensor
	}
	c := &d.Config
	d.embed = next(true)
	d.layers = make([]layer, c.NumHiddenLayers)
	for j := range d.layers {
		l := &d.layers[j]
		l.inputNorm = next(true)
		l.qkv, l.qkvBias = next(true), next(c.qkvBias())
		l.qNorm, l.kNorm = next(c.qkNorm()), next(c.qkNorm())
		l.out, l.outBias = next(true), next(c.outBias())
		l.postNorm = next(true)
		l.gateUp, l.gateUpBias = next(true), next(c.mlpBias())
		l.down, l.downBias = next(true), next(c.mlpBias())
	}
	d.norm = next(true)
	d.head = d.embed
	if !c.TieWordEmbeddings {
		d.head = next(true)
	}
}

// Parameters lists the weights in a fixed order. The tensors are the decoder's own.
func (d *Decoder) Parameters() []Parameter { return append([]Parameter(nil), d.parameters...) }

// NumParameters counts the weights' elements.
func (d *Decoder) NumParameters() int {
	n := 0
	for _, s := range d.slots {
		n += s.numel()
	}
	return n
}

// Freeze makes the weights constants, for a reference or a teacher: forward
// passes then record nothing for gradients.
func (d *Decoder) Freeze() {
	for _, p := range d.parameters {
		p.Tensor.RequiresGrad_(false)
	}
}

// Free releases the weights.
func (d *Decoder) Free() {
	for _, p := range d.parameters {
		p.Tensor.Free()
	}
}

// slotKind says how a parameter starts.
type slotKind int

const (
	kindWeight slotKind = iota // normal
	kindNorm                   // one value throughout
	kindBias                   // zeros
)

// slot describes one parameter: its shape, how it starts, and the tensors of a
// checkpoint that it is made of, stacked along dimension 0.
type slot struct {
	name  string
	shape []int64
	kind  slotKind
	std   float64 // of a weight; a norm's value
	parts []part
}

// part is a tensor of Hugging Face's layout that fills some rows of a slot.
type part struct {
	name string
	rows int64
}

func (s *slot) numel() int {
	n := 1
	for _, d := range s.shape {
		n *= int(d)
	}
	return n
}

// slots lists the parameters in the order in which bind takes them.
func (c *Config) slots() []slot {
	hidden, ffn := int64(c.HiddenSize), int64(c.IntermediateSize)
	q, kv := int64(c.NumAttentionHeads*c.HeadDim), int64(c.NumKeyValueHeads*c.HeadDim)
	var slots []slot
	norm := func(name string, size int64) {
		slots = append(slots, slot{name: name, shape: []int64{size}, kind: kindNorm, std: 1, parts: []part{{name, size}}})
	}
	linear := func(prefix, fused string, in int64, scale float64, bias bool, parts ...part) {
		w := slot{name: prefix + fused + ".weight", std: scale / math.Sqrt(float64(in))}
		b := slot{name: prefix + fused + ".bias", kind: kindBias}
		out := int64(0)
		for _, p := range parts {
			w.parts = append(w.parts, part{prefix + p.name + ".weight", p.rows})
			b.parts = append(b.parts, part{prefix + p.name + ".bias", p.rows})
			out += p.rows
		}
		w.shape, b.shape = []int64{out, in}, []int64{out}
		slots = append(slots, w)
		if bias {
			slots = append(slots, b)
		}
	}
	linear("model.", "embed_tokens", hidden, math.Sqrt(float64(hidden)), false, part{"embed_tokens", int64(c.VocabSize)})
	for i := range c.NumHiddenLayers {
		at := fmt.Sprintf("model.layers.%d.", i)
		norm(at+"input_layernorm.weight", hidden)
		linear(at+"self_attn.", "qkv_proj", hidden, 1, c.qkvBias(), part{"q_proj", q}, part{"k_proj", kv}, part{"v_proj", kv})
		if c.qkNorm() {
			norm(at+"self_attn.q_norm.weight", int64(c.HeadDim))
			norm(at+"self_attn.k_norm.weight", int64(c.HeadDim))
		}
		linear(at+"self_attn.", "o_proj", q, 0.5, c.outBias(), part{"o_proj", hidden})
		norm(at+"post_attention_layernorm.weight", hidden)
		linear(at+"mlp.", "gate_up_proj", hidden, 1, c.mlpBias(), part{"gate_proj", ffn}, part{"up_proj", ffn})
		linear(at+"mlp.", "down_proj", ffn, 0.5, c.mlpBias(), part{"down_proj", hidden})
	}
	norm("model.norm.weight", hidden)
	if c.TieWordEmbeddings {
		slots[len(slots)-1].std = 1 / math.Sqrt(float64(hidden))
	}
	if !c.TieWordEmbeddings {
		linear("", "lm_head", hidden, 1, false, part{"lm_head", int64(c.VocabSize)})
	}
	return slots
}
