package model

import (
	"fmt"

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
