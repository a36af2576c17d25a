package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// TestDrawDistribution draws often and compares the frequencies with
// distributions reckoned by hand from the weights 1, 2, 4, 8 and 1.
func TestDrawDistribution(t *testing.T) {
	logits := []float32{0, float32(math.Log(2)), float32(math.Log(4)), float32(math.Log(8)), 0}
	for _, c := range []struct {
		name string
		set  trace.Sampler
		want []float64
	}{
		{"plain", trace.Sampler{Temperature: 1, TopP: 1}, []float64{1. / 16, 2. / 16, 4. / 16, 8. / 16, 1. / 16}},
		{"temperature 0.5", trace.Sampler{Temperature: 0.5, TopP: 1}, []float64{1. / 86, 4. / 86, 16. / 86, 64. / 86, 1. / 86}},
		{"top 2", trace.Sampler{Temperature: 1, TopK: 2, TopP: 1}, []float64{0, 0, 4. / 12, 8. / 12, 0}},
		{"top 4, a tie", trace.Sampler{Temperature: 1, TopK: 4, TopP: 1}, []float64{1. / 15, 2. / 15, 4. / 15, 8. / 15, 0}},
		{"top p 0.6", trace.Sampler{Temperature: 1, TopP: 0.6}, []float64{0, 0, 4. / 12, 8. / 12, 0}},
		{"top p 0.5", trace.Sampler{Temperature: 1, TopP: 0.5}, []float64{0, 0, 0, 1, 0}},
		{"top p 0.8", trace.Sampler{Temperature: 1, TopP: 0.8}, []float64{0, 2. / 14, 4. / 14, 8. / 14, 0}},
		{"both", trace.Sampler{Temperature: 1, TopK: 3, TopP: 0.8}, []float64{0, 0, 4. / 12, 8. / 12, 0}},
		{"k beyond", trace.Sampler{Temperature: 1, TopK: 99, TopP: 1}, []float64{1. / 16, 2. / 16, 4. / 16, 8. / 16, 1. / 16}},
	} {
		d := drawer{settings: c.set}
		rng := rand.New(rand.NewPCG(1, 2))
		counts := make([]int, len(logits))
		const draws = 40000
		for range draws {
			id, logProb, err := d.draw(logits, rng.Float64())
			if err != nil {
				t.Fatal(err)
			}
			counts[id]++
			if want := math.Log(c.want[id]); math.Abs(want-float64(logProb)) > 1e-6 {
				t.Fatalf("%s: token %d has log-probability %v, want %v", c.name, id, logProb, want)
			}
		}
		for i, p := range c.want {
			got := float64(counts[i]) / draws
			if sd := math.Sqrt(p * (1 - p) / draws); math.Abs(got-p) > 5*sd {
				t.Errorf("%s: token %d drawn %.4f of the time, want %.4f", c.name, i, got, p)
			}
		}
	}
}

// TestDrawEnds draws at both ends of [0, 1): a token without weight must never come.
func TestDrawEnds(t *testing.T) {
	logits := []float32{negativeInfinity, 0, 0.1, -0.3, negativeInfinity}
	d := drawer{settings: trace.Sampler{Temperature: 0.9, TopP: 1}}
	for u, want := range map[float64]int32{0: 1, math.Nextafter(1, 0): 3} {
		if id, _, err := d.draw(logits, u); err != nil || id != want {
			t.Errorf("at %v: token %d (%v), want %d", u, id, err, want)
		}
	}
}

func TestDrawRefusesBrokenLogits(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, logits := range [][]float32{{0, float32(math.NaN())}, {0, inf}, {negativeInfinity, negativeInfinity}} {
		for _, s := range []trace.Sampler{{Greedy: true}, {Temperature: 1, TopP: 1}} {
			d := drawer{settings: s}
			if id, _, err := d.draw(logits, 0.5); err == nil {
				t.Errorf("%v: drew %d", logits, id)
			}
		}
	}
}

// TestTopPAtItsEdge holds that the tokens that hold exactly TopP are enough, and
// that of two alike the lower id stays.
func TestTopPAtItsEdge(t *testing.T) {
	d := drawer{settings: trace.Sampler{Temperature: 1, TopP: 0.5}}
	for _, u := range []float64{0, 0.5, 0.999} {
		if id, logProb, err := d.draw([]float32{1, 1}, u); err != nil || id != 0 || logProb != 0 {
			t.Errorf("at %v: token %d with log-probability %v (%v), want token 0 with 0", u, id, logProb, err)
		}
	}
}
