package train

import (
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// Parameters counts the weights of a decoder.
func Parameters(c model.Config) int64 {
	hidden, vocab := int64(c.HiddenSize), int64(c.VocabSize)
	total := vocab*hidden + hidden + int64(c.NumHiddenLayers)*layerParameters(c)
	if !c.TieWordEmbeddings {
		total += vocab * hidden
	}
	return total
}

// layerParameters counts the weights of one layer.
func layerParameters(c model.Config) int64 {
	hidden, ffn := int64(c.HiddenSize), int64(c.IntermediateSize)
	q, kv := int64(c.NumAttentionHeads*c.HeadDim), int64(c.NumKeyValueHeads*c.HeadDim)
	n := 2*hidden + hidden*(q+2*kv) + q*hidden + 3*hidden*ffn
	if c.ModelType == model.Qwen2 || c.AttentionBias {
		n += q + 2*kv
	}
	if c.ModelType != model.Qwen2 && c.AttentionBias {
		n += hidden
	}
	if c.ModelType == model.Qwen3 {
		n += 2 * int64(c.HeadDim)
	}
	if c.ModelType == model.Llama && c.MLPBias {
		n += 2*ffn + hidden
	}
	return n
}

// layerBytes is what one layer of a pass over a microbatch takes, in bytes.
type layerBytes struct {
	input    int64 // what enters it
	saved    int64 // what autograd keeps for the backward pass
	working  int64 // everything that its forward pass makes
	backward int64 // gradients on the way through it
	weights  int64 // its weights cast to the compute type

	feedForwardPerToken int64 // the feed-forward's share of saved, for one token
}

// layerMemory counts the tensors of model's layer one by one. N is the number of
// tokens, D the width, Q the width of all query heads, F that of the feed-forward.
// Grouped keys and values are repeated to Q where a block has a prefix.
func layerMemory(c model.Config, compute Compute, w Workload) layerBytes {
	size := int64(compute.Trained().Compute.Size())
	n, d, f := int64(w.PackedTokens), int64(c.HiddenSize), int64(c.IntermediateSize)
	q, kv := int64(c.NumAttentionHeads*c.HeadDim), int64(c.NumKeyValueHeads*c.HeadDim)
	keys := w.keys()

	// A norm reckons in float32: its input and the normalised one before and after
	// the weights are kept.
	normSaved, normWorking := 3*d*size, 3*d*size
	if size < 4 {
		normSaved, normWorking = d*(4+2*size), d*(3*4+2*size)
	}
	attention := n*q*size + 2*keys*q*size // queries, keys, values as they are multiplied
	attentionWorking := attention + n*(q+2*kv)*size + 2*n*(q+kv)*size + 2*keys*kv*size + n*q*size
	if compute.fusedAttention() {
		attention += n * q * size // its result
	} else {
		weights := w.scores() * int64(c.NumAttentionHeads)
		attention += weights * 4
		attentionWorking += weights*4*2 + 2*n*q*size
		if size < 4 {
			attention += weights * size
			attentionWorking += weights * size
		}
	}
	perToken := normSaved + 4*f*size
	return layerBytes{
		input:    n * d * size,
		saved:    n*normSaved + attention + n*q*size + n*perToken,
		working:  2*n*normWorking + attentionWorking + 2*n*q*size + 4*n*f*size + 4*n*d*size,
		backward: n * (3*f + 2*d) * size,
		weights:  castBytes(c, size),

		feedForwardPerToken: perToken,
	}
}

// castBytes is a layer's weights in the compute type, none where they are used as stored.
func castBytes(c model.Config, size int64) int64 {
	if size == 4 {
		return 0
	}
	return layerParameters(c) * size
}

// fusedAttention tells whether attention is one operator that keeps no weights:
// libtorch has it from 2.0, which runs on a GPU are taken to have.
func (c Compute) fusedAttention() bool { return c.Device != "cpu" || torch.Version()[0] != '1' }

// UpdateOperations is the number of floating-point operations of a forward and
// backward pass over a microbatch: twice the weights for each token and the scores
// of attention that causality leaves, three times over. Layers that are run again
// are not counted.
func UpdateOperations(c model.Config, w Workload) float64 {
	layers := float64(c.NumHiddenLayers)
	products := 2 * layers * float64(layerParameters(c)) * float64(w.PackedTokens)
	attention := 4 * layers * float64(w.causalScores()) * float64(c.NumAttentionHeads*c.HeadDim)
	head := 2 * float64(w.actions()) * float64(c.VocabSize) * float64(c.HiddenSize)
	return 3 * (products + attention + head)
}
