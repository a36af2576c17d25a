package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// rowsOf makes random logits (rows, vocab) with some ruled out.
func rowsOf(rng *rand.Rand, rows, vocab int) []float32 {
	values := make([]float32, rows*vocab)
	for i := range values {
		values[i] = float32(rng.NormFloat64() * 4)
		if rng.IntN(10) == 0 && i%vocab != 0 {
			values[i] = negativeInfinity
		}
	}
	return values
}

// TestChooseIsDraw holds that tokens chosen on the device, block by block, are
// those that draw takes from one row at a time on the host.
func TestChooseIsDraw(t *testing.T) {
	noLeaks(t)
	rng := rand.New(rand.NewPCG(3, 3))
	for _, vocab := range []int{1, 2, 3, 15, 16, 17, 250, 1000, 4096, 49152} {
		for _, settings := range []trace.Sampler{
			{Greedy: true}, {Temperature: 1, TopP: 1}, {Temperature: 0.6, TopP: 1}, {Temperature: 1.7, TopP: 1, TopK: vocab},
			{Temperature: 1, TopP: 0.9}, {Temperature: 1, TopP: 1, TopK: 2},
		} {
			const rows = 8
			s := torch.NewScope()
			values := rowsOf(rng, rows, vocab)
			u := []float64{0, 0.999, 0.5, rng.Float64(), rng.Float64(), rng.Float64(), rng.Float64(), rng.Float64()}
			got, err := choose(&settings, &drawer{settings: settings}, torch.FromFloat32(values, rows, int64(vocab)), u)
			if err != nil {
				t.Fatal(err)
			}
			for r, c := range got {
				id, logProb, err := (&drawer{settings: settings}).draw(values[r*vocab:(r+1)*vocab], u[r])
				if err != nil {
					t.Fatal(err)
				}
				if id != c.id || math.Abs(float64(logProb-c.logProb)) > 1e-6*(1+math.Abs(float64(logProb))) {
					t.Errorf("%d tokens, %+v, u %v: token %d with log-probability %v, want %d with %v", vocab, settings, u[r], c.id, c.logProb, id, logProb)
				}
			}
			s.Close()
		}
	}
}

// TestChooseEnds draws at both ends of [0, 1): a token without weight must never come.
func TestChooseEnds(t *testing.T) {
	noLeaks(t)
	for _, vocab := range []int{5, 300} {
		logits := make([]float32, vocab)
		logits[0], logits[vocab-1] = negativeInfinity, negativeInfinity
		settings := trace.Sampler{Temperature: 0.9, TopP: 1}
		s := torch.NewScope()
		got, err := choose(&settings, nil, torch.FromFloat32(append(logits, logits...), 2, int64(vocab)), []float64{0, math.Nextafter(1, 0)})
		if err != nil || got[0].id != 1 || int(got[1].id) != vocab-2 {
			t.Errorf("%d tokens: %v (%v), want the second and the last but one", vocab, got, err)
		}
		s.Close()
	}
}

func TestChooseRefusesBrokenLogits(t *testing.T) {
	noLeaks(t)
	inf := float32(math.Inf(1))
	for _, logits := range [][]float32{{0, float32(math.NaN())}, {0, inf}, {negativeInfinity, negativeInfinity}} {
		for _, settings := range []trace.Sampler{{Greedy: true}, {Temperature: 1, TopP: 1}, {Temperature: 1, TopP: 0.5}} {
			s := torch.NewScope()
			if got, err := choose(&settings, &drawer{settings: settings}, torch.FromFloat32(logits, 1, 2), []float64{0.5}); err == nil {
				t.Errorf("%v: drew %v", logits, got)
			}
			s.Close()
		}
	}
}
