package audit

import (
	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
)

// updateFLOPs is the number of floating-point operations in the matrix products of
// a forward and backward pass over rows, which is what an ideal machine's time goes
// by: two for a multiplication and addition, three times over (forward, and the
// gradients of both factors):
//
//   - each token goes through the projections of all layers, 2 a weight; of the last
//     layer only the actions' prediction positions go on to its output projection and
//     feed-forward;
//   - a query that sees a key costs 4 times the width of all heads in each layer
//     (score and weighted value); with a dense mask every query meets every key;
//   - each action has the logits of the vocabulary, 2 D V.
//
// Norms, rotations, softmax, the embedding and the loss are left out.
func updateFLOPs(c model.Config, vocab int, rows []*align.Packed, dense bool) float64 {
	tokens, actions, pairs := 0.0, 0.0, 0.0
	for _, p := range rows {
		tokens += float64(len(p.IDs))
		actions += float64(len(p.Actions))
		pairs += visiblePairs(p, dense)
	}
	hidden, width := float64(c.HiddenSize), float64(c.NumAttentionHeads*c.HeadDim)
	qkv := hidden * (width + 2*float64(c.NumKeyValueHeads*c.HeadDim))
	rest := width*hidden + 3*hidden*float64(c.IntermediateSize)
	layers := float64(c.NumHiddenLayers)
	products := tokens*(layers*qkv+(layers-1)*rest) + actions*rest + actions*hidden*float64(vocab)
	return 3 * (2*products + 4*layers*width*pairs)
}

// visiblePairs counts the queries and keys that meet.
func visiblePairs(p *align.Packed, dense bool) float64 {
	triangle := func(n int) float64 { return float64(n) * float64(n+1) / 2 }
	if dense {
		return float64(len(p.IDs)) * float64(len(p.IDs))
	}
	pairs := triangle(p.PrefixLength)
	for i := range p.Blocks {
		b := &p.Blocks[i]
		n := b.End - b.Start
		pairs += float64(n)*float64(p.SeenBefore(b)) + triangle(n)
	}
	return pairs
}
