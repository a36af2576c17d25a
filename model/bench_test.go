package model

import (
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
)

// cpuSeconds is the processor time of this process, which other processes on
// the machine disturb less than the clock.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// plainRow is one causal row of n tokens with actions on its last quarter.
func plainRow(rng *rand.Rand, vocab, n int) *align.Packed {
	p := &align.Packed{PrefixLength: 0, Blocks: []align.Block{{End: n}}}
	for i := range n {
		p.IDs = append(p.IDs, rng.Int32N(int32(vocab)))
		p.Positions = append(p.Positions, int32(i))
		if i >= n*3/4 {
			p.Actions = append(p.Actions, align.Action{ID: p.IDs[i], Index: i, Predict: i - 1})
		}
	}
	return p
}

// benchUpdate times forward, loss and backward on batch and reports tokens/s.
func benchUpdate(b *testing.B, batch []*align.Packed) {
	d, err := New(mini(), 1)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Free()
	var targets []int64
	tokens := 0
	for _, p := range batch {
		tokens += len(p.IDs)
		for _, a := range p.Actions {
			targets = append(targets, int64(a.ID))
		}
	}
	start := cpuSeconds()
	for b.Loop() {
		s := torch.NewScope()
		d.Logits(d.Hidden(batch)).CrossEntropy(torch.FromInt64(targets), torch.ReduceMean).Backward()
		for _, p := range d.parameters {
			p.Tensor.ZeroGrad()
		}
		s.Close()
	}
	b.ReportMetric(float64(tokens*b.N)/(cpuSeconds()-start), "tokens/cpu-s")
}

// BenchmarkUpdateRows is SFT's shape: about 3,072 tokens in rows of 50 to 63.
func BenchmarkUpdateRows(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var batch []*align.Packed
	for n := 0; n < 3000; {
		p := plainRow(rng, 250, 50+rng.IntN(14))
		n += len(p.IDs)
		batch = append(batch, p)
	}
	benchUpdate(b, batch)
}

// BenchmarkUpdatePacked is an RL update's shape: Q2 trajectories, four calls each.
func BenchmarkUpdatePacked(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var batch []*align.Packed
	for n := 0; n < 3000; {
		p, _ := episode(rng, 250, 4, 30)
		n += len(p.IDs)
		batch = append(batch, p)
	}
	benchUpdate(b, batch)
}
