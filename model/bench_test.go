package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
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
	best := math.Inf(1)
	for b.Loop() {
		start := cpuSeconds()
		s := torch.NewScope()
		d.Logits(d.Hidden(batch)).CrossEntropy(torch.FromInt64(targets), torch.ReduceMean).Backward()
		for _, p := range d.parameters {
			p.Tensor.ZeroGrad()
		}
		s.Close()
		best = min(best, cpuSeconds()-start)
	}
	// The best round is the one that the rest of the machine disturbed least.
	b.ReportMetric(float64(tokens)/best, "tokens/cpu-s")
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

// benchDecode times the sampler on contexts of n tokens and outputs of 16, with
// that many rows at once, and reports new tokens/s.
func benchDecode(b *testing.B, rows, context int) {
	d, err := New(mini(), 1)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Free()
	s, err := NewSampler(d, trace.Sampler{Temperature: 1, TopP: 1}, rows)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	best, tokens := math.Inf(1), 0
	for b.Loop() {
		l := &list{}
		for i := range 2 * rows {
			r := &trace.Request{MaxNewTokens: 12 + rng.IntN(8), Seed: uint64(i)}
			for range context/2 + rng.IntN(context) {
				r.Context = append(r.Context, rng.Int32N(250))
			}
			l.requests = append(l.requests, r)
		}
		start := cpuSeconds()
		if err := s.Generate(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		tokens = 0
		for _, p := range l.responses {
			tokens += len(p.Output)
		}
		best = min(best, (cpuSeconds()-start)/float64(tokens))
	}
	b.ReportMetric(1/best, "new-tokens/cpu-s")
}

// The decode benchmarks are Q2's and Q16's shapes.
func BenchmarkDecode16RowsQ2(b *testing.B)  { benchDecode(b, 16, 36) }
func BenchmarkDecode64RowsQ2(b *testing.B)  { benchDecode(b, 64, 36) }
func BenchmarkDecode64RowsQ16(b *testing.B) { benchDecode(b, 64, 126) }

// BenchmarkCalls is trajectories of four calls in the shapes of Q2 and Q16: 16
// tasks with two samples each, 64 rows, outputs of 12 to 20 tokens, with the
// prefix kept and without.
func BenchmarkCalls(b *testing.B) {
	for _, shape := range []struct {
		name        string
		prefix, own int // tokens of the prefix, and of what else is in a context
	}{{"Q2", 14, 22}, {"Q16", 78, 60}} {
		for _, reuse := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/reuse=%v", shape.name, reuse), func(b *testing.B) { benchCalls(b, shape.prefix, shape.own, reuse) })
		}
	}
}

func benchCalls(b *testing.B, prefix, own int, reuse bool) {
	d, err := New(mini(), 1)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Free()
	s, err := NewSampler(d, trace.Sampler{Temperature: 1, TopP: 1}, 64)
	if err != nil {
		b.Fatal(err)
	}
	if !reuse {
		s.PrefixBytesMax = 0
	}
	rng := rand.New(rand.NewPCG(1, 1))
	best, tokens := math.Inf(1), 0
	for b.Loop() {
		l := &list{}
		prefixes := make([][]int32, 16)
		for i := range prefixes {
			prefixes[i] = plainRow(rng, 250, prefix).IDs
		}
		for i := range 4 * 2 * len(prefixes) {
			context := append(slices.Clone(prefixes[i%len(prefixes)]), plainRow(rng, 250, own).IDs...)
			l.requests = append(l.requests, &trace.Request{Context: context, PrefixLength: prefix, MaxNewTokens: 12 + rng.IntN(8), Seed: uint64(i)})
		}
		start := cpuSeconds()
		if err := s.Generate(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		tokens = 0
		for _, p := range l.responses {
			tokens += len(p.Output)
		}
		best = min(best, (cpuSeconds()-start)/float64(tokens))
	}
	b.ReportMetric(1/best, "new-tokens/cpu-s")
}

// BenchmarkPrefill times contexts alone: 64 of about 120 tokens.
func BenchmarkPrefill(b *testing.B) {
	d, err := New(mini(), 1)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Free()
	rng := rand.New(rand.NewPCG(1, 1))
	var openings []opening
	tokens := 0
	for i := range 64 {
		n := 100 + rng.IntN(40)
		openings = append(openings, opening{ids: plainRow(rng, 250, n).IDs, row: i})
		tokens += n
	}
	c, store := newCache(d, 64), newPrefixStore(d, 0)
	defer c.free()
	c.reserve(150)
	best := math.Inf(1)
	for b.Loop() {
		start := cpuSeconds()
		s := torch.NewScope()
		torch.NoGrad(func() { d.prefill(c, store, store.plan(openings)) })
		s.Close()
		best = min(best, cpuSeconds()-start)
	}
	b.ReportMetric(float64(tokens)/best, "tokens/cpu-s")
}
