package audit

import (
	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/train"
)

// hiddenStates are those at the actions of rows, (A, D) float32, each row forwarded
// alone. The tensor belongs to the innermost scope.
func hiddenStates(d *model.Decoder, rows []*align.Packed) *torch.Tensor {
	s := torch.NewScope()
	defer s.Close()
	var parts []*torch.Tensor
	torch.NoGrad(func() {
		for _, r := range rows {
			if len(r.Actions) > 0 {
				parts = append(parts, d.Hidden([]*align.Packed{r}))
			}
		}
		if len(parts) > 1 {
			parts[0] = torch.Cat(parts, 0)
		}
	})
	return s.Keep(parts[0])
}

// score compares two decoders' distributions, a chunk of logits at a time.
type score struct {
	train.Compute
	exact, compared *model.Decoder
}

// ints is a list as a tensor where the run is.
func (c score) ints(list []int64) *torch.Tensor {
	return torch.FromInt64(list, int64(len(list))).ToDevice(c.Device)
}

// each calls f with runs [start, end) of n, each in a scope of its own.
func (c score) each(n int, f func(start, end int)) {
	torch.NoGrad(func() {
		for start := 0; start < n; start += c.LogitsPerChunk {
			s := torch.NewScope()
			f(start, min(start+c.LogitsPerChunk, n))
			s.Close()
		}
	})
}

// logDistribution is log softmax(logits / temperature) of (C, V).
func logDistribution(logits *torch.Tensor, temperature float64) *torch.Tensor {
	if temperature != 1 {
		logits = logits.DivScalar(temperature)
	}
	return logits.LogSoftmax(-1)
}

// at gathers one value a row: (C) of (C, V).
func at(rows, ids *torch.Tensor) []float32 {
	return rows.Gather(-1, ids.Unsqueeze(-1)).Squeeze(-1).Float32s()
}

// truth scores every token in its own state: log-prob and top id. hidden is (A, D).
func (c score) truth(hidden *torch.Tensor, t *audited) []Token {
	tokens := make([]Token, len(t.truth.actions))
	t.logProbs = make([]float32, 0, len(tokens))
	ids := make([]int64, len(tokens))
	for i, a := range t.truth.actions {
		ids[i] = int64(a.ID)
	}
	c.each(len(tokens), func(start, end int) {
		d := logDistribution(c.exact.Logits(hidden.Narrow(0, int64(start), int64(end-start))), t.temperature)
		t.logProbs = append(t.logProbs, at(d, c.ints(ids[start:end]))...)
		for i, top := range d.Argmax(-1, false).Int64s() {
			tokens[start+i].Top = int32(top)
		}
	})
	for i, a := range t.truth.actions {
		x := &tokens[i]
		x.Call, x.Token, x.ID, x.LogProb, x.Row, x.Place = a.Call, a.Token, a.ID, t.logProbs[i], -1, -1
	}
	return tokens
}

// compare scores the actions of a domain, whose hidden states are own (K, D), against
// the truth's (A, D), and writes what it finds into the tokens of the trajectory.
func (c score) compare(hidden, own *torch.Tensor, d *domain, temperature float64, o Options, tokens []Token) {
	index, ids, tops := make([]int64, len(d.index)), make([]int64, len(d.index)), make([]int64, len(d.index))
	for k, i := range d.index {
		index[k], ids[k], tops[k] = int64(i), int64(tokens[i].ID), int64(tokens[i].Top)
	}
	c.each(len(index), func(start, end int) {
		want := c.exact.Logits(hidden.IndexSelect(0, c.ints(index[start:end])))
		have := c.compared.Logits(own.Narrow(0, int64(start), int64(end-start)))
		far := have.Sub(want).Abs().Amax([]int{-1}, false).Float64s()
		want, have = logDistribution(want, temperature), logDistribution(have, temperature)
		logProbs := at(have, c.ints(ids[start:end]))
		top := have.Argmax(-1, false)
		wasTop := c.ints(tops[start:end])
		trueGap, gap := gaps(want, wasTop, top), gaps(have, wasTop, top)
		for j, best := range top.Int64s() {
			k := start + j
			x := &tokens[d.index[k]]
			x.Row, x.Place = d.row[k], d.actions[k].Index
			x.DLogit = distance(far[j], 0)
			x.Error = distance(float64(logProbs[j]), float64(x.LogProb))
			x.Clip = clipped(float64(logProbs[j]), float64(x.LogProb), o.ClipEpsilon)
			x.Flip = flipped(best, tops[k], gap[j], trueGap[j], o.Tolerance)
		}
	})
}

// flipped tells whether the top id is another one and no tie: gaps are the distances
// of both ids' log-probs in the two passes.
func flipped(top, trueTop int64, gap, trueGap, tolerance float64) bool {
	return top != trueTop && !(gap <= tolerance && trueGap <= tolerance)
}

// gaps are |log p(a) - log p(b)| row by row.
func gaps(rows, a, b *torch.Tensor) []float64 {
	x, y := at(rows, a), at(rows, b)
	out := make([]float64, len(x))
	for i := range x {
		out[i] = distance(float64(x[i]), float64(y[i]))
	}
	return out
}
