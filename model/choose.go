package model

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// choice is a sampled token with its log-probability under the distribution that
// it was drawn from.
type choice struct {
	id      int32
	logProb float32
}

// choose takes a token of each row of logits (rows, V), as drawer.draw does with
// one row, u[r] in [0, 1) deciding for row r. Where all tokens are in the running
// only a few numbers a row leave the logits' device: the vocabulary is cut into
// about sqrt(V) blocks, their sums say in which one the draw falls, and that one
// block is read. With top-k or top-p all logits are read and cut on the host.
func choose(settings *trace.Sampler, d *drawer, logits *torch.Tensor, u []float64) ([]choice, error) {
	s := torch.NewScope()
	defer s.Close()
	vocab := int(logits.Dim(1))
	switch {
	case settings.Greedy:
		return chooseGreedy(logits)
	case settings.TopP >= 1 && (settings.TopK == 0 || settings.TopK >= vocab):
		return chooseBlockwise(logits, settings.Temperature, u)
	}
	values := logits.Float32s()
	out := make([]choice, len(u))
	for r := range out {
		id, logProb, err := d.draw(values[r*vocab:(r+1)*vocab], u[r])
		if err != nil {
			return nil, err
		}
		out[r] = choice{id, logProb}
	}
	return out, nil
}

// chooseGreedy takes the first largest logit, with its log-probability at temperature
// 1. It overwrites logits.
func chooseGreedy(logits *torch.Tensor) ([]choice, error) {
	top, id := largest(logits)
	total := logits.Sub_(top.Unsqueeze(1)).Exp_().SumDim([]int{1}, false)
	// float64 holds any id, so that one transfer brings all.
	both := torch.Stack([]*torch.Tensor{id.To(torch.Float64), total.To(torch.Float64)}, 1).Float64s()
	out := make([]choice, len(both)/2)
	for r := range out {
		total := both[2*r+1]
		if err := checkTotal(total); err != nil {
			return nil, err
		}
		out[r] = choice{int32(both[2*r]), float32(-math.Log(total))}
	}
	return out, nil
}

// largest is the first largest element of each row of x (rows, V), and its place.
// Finding a place takes libtorch five times as long as the value alone, so it is
// looked for in the block that has the largest value.
func largest(x *torch.Tensor) (values, places *torch.Tensor) {
	rows, vocab := x.Dim(0), x.Dim(1)
	size := int64(1) << (bits.Len64(uint64(vocab)) / 2)
	if vocab%size != 0 {
		return x.MaxDim(-1)
	}
	blocks := x.View(rows, vocab/size, size)
	values, block := blocks.Amax([]int{2}, false).MaxDim(-1)
	_, place := blocks.Gather(1, block.View(rows, 1, 1).Expand(rows, 1, size)).Squeeze(1).MaxDim(-1)
	return values, block.MulScalar(float64(size)).Add(place)
}

// checkTotal refuses the sum of exp(logit - largest) that broken logits give.
func checkTotal(total float64) error {
	if math.IsNaN(total) || math.IsInf(total, 0) {
		return fmt.Errorf("sampler: a logit is not a number, or the largest is infinite")
	}
	return nil
}

// chooseBlockwise draws from softmax(logits/temperature).
func chooseBlockwise(logits *torch.Tensor, temperature float64, u []float64) ([]choice, error) {
	rows, vocab := logits.Dim(0), logits.Dim(1)
	scaled := logits.Sub(logits.Amax([]int{-1}, true)) // (rows, V), 0 at the largest
	if temperature != 1 {
		scaled.MulScalar_(1 / temperature)
	}
	size := int64(1) << ((bits.Len64(uint64(vocab)) + 1) / 2)
	sums := blockSums(scaled.Exp(), size) // (rows, blocks) on the host
	blocks := len(sums) / int(rows)
	totals, goals := make([]float64, rows), make([]float64, rows)
	places := make([]int64, 0, rows*size) // of the drawn block's tokens; beyond the vocabulary, the last one again
	starts := make([]int64, rows)
	for r := range totals {
		line := sums[r*blocks : (r+1)*blocks]
		for _, v := range line {
			totals[r] += v
		}
		if err := checkTotal(totals[r]); err != nil {
			return nil, err
		}
		block, before := pickBlock(line, u[r]*totals[r])
		goals[r], starts[r] = u[r]*totals[r]-before, int64(block)*size
		for i := range size {
			places = append(places, min(starts[r]+i, vocab-1))
		}
	}
	index := torch.FromInt64(places, rows, size).ToDevice(logits.Device())
	values := scaled.Gather(1, index).Float64s()
	out := make([]choice, rows)
	for r := range out {
		length := min(size, vocab-starts[r])
		i := pickToken(values[int64(r)*size:][:length], goals[r])
		out[r] = choice{int32(starts[r]) + int32(i), float32(values[int64(r)*size+int64(i)] - math.Log(totals[r]))}
	}
	return out, nil
}

// blockSums sums each run of size values of the rows of x, the last run being
// shorter, row-major.
func blockSums(x *torch.Tensor, size int64) []float64 {
	rows, all := x.Dim(0), x.Dim(1)
	whole := all / size
	var parts []*torch.Tensor
	if whole > 0 {
		parts = append(parts, x.Narrow(1, 0, whole*size).View(rows, whole, size).SumDim([]int{2}, false))
	}
	if rest := all - whole*size; rest > 0 {
		parts = append(parts, x.Narrow(1, whole*size, rest).SumDim([]int{1}, true))
	}
	return torch.Cat(parts, 1).Float64s()
}

// pickBlock is the first block at which the cumulated sums pass goal, and the sum
// of those before it.
func pickBlock(sums []float64, goal float64) (block int, before float64) {
	sum := 0.0
	for i, v := range sums {
		if v == 0 {
			continue
		}
		block, before = i, sum
		if sum += v; sum > goal {
			break
		}
	}
	return block, before
}

// pickToken is the first token of a block at which the cumulated exp(values)
// pass goal; where rounding leaves goal at the very end, the last with any weight.
func pickToken(values []float64, goal float64) int {
	sum, last := 0.0, 0
	for i, v := range values {
		w := math.Exp(v)
		if w == 0 {
			continue
		}
		last = i
		if sum += w; sum > goal {
			break
		}
	}
	return last
}
