package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// checkSettings reports sampler settings that make no distribution.
func checkSettings(s *trace.Sampler) error {
	switch {
	case s.Greedy:
		return nil
	case !(s.Temperature > 0) || math.IsInf(s.Temperature, 0):
		return fmt.Errorf("sampler: temperature %v is not above 0; use greedy", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("sampler: top_k %d is below 0", s.TopK)
	case !(s.TopP > 0 && s.TopP <= 1):
		return fmt.Errorf("sampler: top_p %v is outside (0, 1]", s.TopP)
	}
	return nil
}

// drawer draws token ids from logits. Its buffers serve one row after another.
type drawer struct {
	settings trace.Sampler
	weights  []float64
	order    []int32
}

// draw returns a token id and its log-probability under the distribution that it
// was drawn from: softmax(logits/temperature), cut to the TopK likeliest, then
// to the fewest likeliest that hold TopP of what is left, and rescaled (ties go to
// the lower id, as the order in which Hugging Face's warpers act). It is the
// inverse cumulative distribution, in order of id, at u in [0, 1). Greedy takes
// the largest logit, with its log-probability at temperature 1.
func (d *drawer) draw(logits []float32, u float64) (int32, float32, error) {
	best, top := 0, math.Inf(-1)
	for i, v := range logits {
		if x := float64(v); x > top {
			best, top = i, x
		} else if x != x {
			return 0, 0, fmt.Errorf("sampler: logit of token %d is not a number", i)
		}
	}
	if math.IsInf(top, 0) {
		return 0, 0, fmt.Errorf("sampler: largest logit is %v", top)
	}
	inverse := 1.0
	if !d.settings.Greedy {
		inverse = 1 / d.settings.Temperature
	}
	d.weights = d.weights[:0]
	total := 0.0
	for _, v := range logits {
		w := math.Exp((float64(v) - top) * inverse)
		d.weights = append(d.weights, w)
		total += w
	}
	if d.settings.Greedy {
		return int32(best), float32(-math.Log(total)), nil
	}
	total = d.cut(total)
	id := d.invert(u * total)
	return id, float32(math.Log(d.weights[id] / total)), nil
}

// cut zeroes the weights outside top-k and top-p and returns the sum of the rest.
func (d *drawer) cut(total float64) float64 {
	k, p := d.settings.TopK, d.settings.TopP
	if (k == 0 || k >= len(d.weights)) && p >= 1 {
		return total
	}
	d.order = d.order[:0]
	for i, w := range d.weights {
		// Tokens this unlikely hold less than 1-p together: top-p alone never needs them.
		if k > 0 || w*float64(len(d.weights)) >= (1-p)*total {
			d.order = append(d.order, int32(i))
		}
	}
	slices.SortFunc(d.order, func(a, b int32) int {
		if wa, wb := d.weights[a], d.weights[b]; wa != wb {
			if wa > wb {
				return -1
			}
			return 1
		}
		return int(a - b)
	})
	if k > 0 && k < len(d.order) {
		d.order = d.order[:k]
		total = 0
		for _, i := range d.order {
			total += d.weights[i]
		}
	}
	kept, sum := len(d.order), 0.0
	for n, i := range d.order {
		if sum += d.weights[i]; p < 1 && sum >= p*total {
			kept = n + 1
			break
		}
	}
	d.order = d.order[:kept]
	slices.Sort(d.order)
	sum = 0
	next := 0
	for i := range d.weights {
		if next < kept && int(d.order[next]) == i {
			next++
			sum += d.weights[i]
			continue
		}
		d.weights[i] = 0
	}
	return sum
}

// invert returns the first id at which the cumulated weights pass goal.
func (d *drawer) invert(goal float64) int32 {
	sum, last := 0.0, 0
	for i, w := range d.weights {
		if w == 0 {
			continue
		}
		if sum += w; sum > goal {
			return int32(i)
		}
		last = i
	}
	return int32(last) // rounding left goal at the very end
}
