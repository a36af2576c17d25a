package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// smolLM2Shape is the shape of SmolLM2-135M.
func smolLM2Shape() Config {
	return Config{
		ModelType: Llama, VocabSize: 49152, HiddenSize: 576, IntermediateSize: 1536, NumHiddenLayers: 30, NumAttentionHeads: 9,
		NumKeyValueHeads: 3, HeadDim: 64, MaxPositionEmbeddings: 8192, RMSNormEps: 1e-5, RopeTheta: 100000, TieWordEmbeddings: true,
	}
}

// lmModel is the decoder of the LM benchmarks: MEMOPD_LM names a checkpoint, else
// it is one of SmolLM2-135M's shape with random weights, which take as long.
func lmModel(t testing.TB) *Decoder {
	if path := os.Getenv("MEMOPD_LM"); path != "" {
		d, err := Load(path, Placement{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d, err := New(smolLM2Shape(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestExportLM writes the benchmarks' model into MEMOPD_LM_OUT for scripts/peers/lm_speed.py.
func TestExportLM(t *testing.T) {
	dir := os.Getenv("MEMOPD_LM_OUT")
	if dir == "" {
		t.Skip("MEMOPD_LM_OUT is not set: scripts/peers/lm_speed.sh exports a model for transformers with it")
	}
	d := lmModel(t)
	defer d.Free()
	if err := d.Save(dir); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkLM is the Go side of scripts/peers/lm_speed.sh, each case as lm_speed.py
// has it: seconds by the clock and of processor time a round.
func BenchmarkLM(b *testing.B) {
	if os.Getenv("MEMOPD_LM_SPEED") == "" {
		b.Skip("MEMOPD_LM_SPEED is not set: scripts/peers/lm_speed.sh runs this beside transformers")
	}
	d := lmModel(b)
	defer d.Free()
	report := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				start, cpu := time.Now(), cpuSeconds()
				f()
				b.ReportMetric(time.Since(start).Seconds(), "clock-s")
				b.ReportMetric(cpuSeconds()-cpu, "cpu-s")
			}
		})
	}
	for _, c := range []struct{ rows, context int }{{1, 32}, {16, 32}, {64, 32}, {16, 256}} {
		for _, tokens := range []int{1, 33} {
			report(fmt.Sprintf("generate_rows%d_context%d_new%d", c.rows, c.context, tokens), func() { lmGenerate(b, d, c.rows, c.context, tokens) })
		}
	}
	report("prefill_2x512", func() { lmPrefill(d, 2, 512) })
	packed, single := lmEpisodes(2, 100, 5, 60, 40)
	for _, name := range []string{"update_calls_first", "update_calls"} { // the first also gets its memory from the kernel
		report(name, func() { lmUpdate(d, single) })
	}
	report("update_packed", func() { lmUpdate(d, packed) })
}

func lmIDs(rng *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = 20 + rng.Int32N(40000)
	}
	return ids
}

// lmGenerate takes the likeliest tokens, so many for each row.
func lmGenerate(b *testing.B, d *Decoder, rows, tokens, fresh int) {
	s, err := NewSampler(d, trace.Sampler{Greedy: true}, rows)
	if err != nil {
		b.Fatal(err)
	}
	s.EOS = nil
	rng, l := rand.New(rand.NewPCG(1, 1)), &list{}
	for range rows {
		l.requests = append(l.requests, &trace.Request{Context: lmIDs(rng, tokens), MaxNewTokens: fresh})
	}
	if err := s.Generate(context.Background(), l); err != nil {
		b.Fatal(err)
	}
}

// lmPrefill is a forward pass over rows that fills a cache, with the last logits.
func lmPrefill(d *Decoder, rows, tokens int) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := torch.NewScope()
	defer s.Close()
	d, free := d.forSampling()
	defer free()
	c, store := newCache(d, rows), newPrefixStore(d, 0)
	defer c.free()
	c.reserve(tokens)
	var openings []opening
	for i := range rows {
		openings = append(openings, opening{ids: lmIDs(rng, tokens), row: i})
	}
	torch.NoGrad(func() { d.prefill(c, store, store.plan(openings)) })
}

// lmEpisodes are trajectories of calls, packed and call by call: a prefix, then in
// each call own tokens and an output.
func lmEpisodes(n, prefix, calls, own, output int) (packed, single []*align.Packed) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range n {
		head := lmIDs(rng, prefix)
		p := &align.Packed{IDs: head, Positions: positions(0, prefix), PrefixLength: prefix}
		for call := range calls {
			ids := lmIDs(rng, own+output)
			start := len(p.IDs)
			p.IDs = append(p.IDs[:start:start], ids...)
			p.Positions = append(p.Positions, positions(prefix, len(ids))...)
			p.Blocks = append(p.Blocks, align.Block{Call: call, Start: start, End: len(p.IDs)})
			one := &align.Packed{IDs: append(head[:prefix:prefix], ids...), Positions: positions(0, prefix+len(ids)), PrefixLength: prefix}
			one.Blocks = []align.Block{{Start: prefix, End: len(one.IDs)}}
			for i := own; i < len(ids); i++ {
				p.Actions = append(p.Actions, align.Action{Call: call, ID: ids[i], Index: start + i, Predict: start + i - 1})
				one.Actions = append(one.Actions, align.Action{ID: ids[i], Index: prefix + i, Predict: prefix + i - 1})
			}
			single = append(single, one)
		}
		packed = append(packed, p)
	}
	return packed, single
}

func positions(from, n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(from + i)
	}
	return list
}

// lmUpdate is forward, cross entropy of the actions and backward.
func lmUpdate(d *Decoder, batch []*align.Packed) {
	s := torch.NewScope()
	defer s.Close()
	d.Logits(d.Hidden(batch)).CrossEntropy(torch.FromInt64(actionTargets(batch)), torch.ReduceMean).Backward()
	for _, p := range d.parameters {
		p.Tensor.ZeroGrad()
	}
}
