// Package aligntest makes random trajectories for property tests, and the
// references that compiled layouts are held against: written from what the layouts
// mean, with nothing of package align but its types.
package aligntest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// Update names the rule that makes a call's mutable context.
type Update string

// The context updates of generated trajectories.
const (
	UpdateMEM1    Update = "mem1"    // the last output and its observation
	UpdateFull    Update = "full"    // all outputs and observations so far
	UpdateSuffix  Update = "suffix"  // a suffix of the last output, then the observation
	UpdateNone    Update = "none"    // nothing: each call sees the prefix alone
	UpdateWindow  Update = "window"  // the last two outputs and their observations
	UpdateSummary Update = "summary" // a part within the last output, then the observation
	UpdateRefresh Update = "refresh" // all outputs so far, then the last observation
)

// Updates lists all of them.
var Updates = []Update{UpdateMEM1, UpdateFull, UpdateSuffix, UpdateNone, UpdateWindow, UpdateSummary, UpdateRefresh}

// UpdateOf gives numbers in a row one update after the other.
func UpdateOf(seed uint64) Update { return Updates[seed%uint64(len(Updates))] }

// Config bounds generated trajectories; each length is drawn from 1 to its
// maximum (observations from 0).
type Config struct {
	Vocab             int // ids are drawn from [0, Vocab)
	MaxPrefix         int
	MaxCalls          int
	MaxOutput         int
	MaxObservation    int
	MaxOpening        int // tokens that the environment shows before the first call, from 0
	Update            Update
	EmptyOutputChance float64 // of a call that sampled nothing (never all of them)
}

// Small is a configuration for quick tests; set other fields as needed.
func Small() Config {
	return Config{Vocab: 40, MaxPrefix: 7, MaxCalls: 5, MaxOutput: 8, MaxObservation: 6, Update: UpdateMEM1}
}

// Long is a configuration of trajectories with hundreds of tokens a call.
func Long() Config {
	return Config{Vocab: 5000, MaxPrefix: 120, MaxCalls: 34, MaxOutput: 150, MaxObservation: 200, Update: UpdateMEM1}
}

// Random generates a trajectory that package align accepts. The same source
// gives the same trajectory.
func Random(rng *rand.Rand, c Config) *trace.Trajectory {
	prefix := ids(rng, 1+rng.IntN(c.MaxPrefix), c.Vocab)
	opening := ids(rng, rng.IntN(c.MaxOpening+1), c.Vocab)
	return random(rng, c, prefix, opening)
}

// Group generates samples of one task: they have its prefix and what the
// environment shows first. With few ids in the vocabulary they begin alike for several calls.
func Group(rng *rand.Rand, c Config, samples int) []*trace.Trajectory {
	prefix := ids(rng, 1+rng.IntN(c.MaxPrefix), c.Vocab)
	opening := ids(rng, rng.IntN(c.MaxOpening+1), c.Vocab)
	group := make([]*trace.Trajectory, samples)
	for i := range group {
		group[i] = random(rng, c, slices.Clone(prefix), opening)
	}
	return group
}

func random(rng *rand.Rand, c Config, prefix, opening []int32) *trace.Trajectory {
	t := &trace.Trajectory{
		Schema: trace.SchemaVersion, ID: fmt.Sprintf("t%d", rng.Uint32()), TaskID: "task",
		Agent: string(c.Update), Model: "random", End: trace.EndAnswered,
		Sampler: trace.Sampler{Temperature: 1, TopP: 1},
		Prefix:  prefix,
	}
	for k, n := 0, 1+rng.IntN(c.MaxCalls); k < n; k++ {
		context, spans := nextContext(rng, t, opening, c.Update)
		call := trace.Call{Index: k, Context: context, Spans: spans, Stop: trace.StopTag, Outcome: trace.OutcomeSearch}
		if k == 0 || rng.Float64() >= c.EmptyOutputChance {
			call.Output = ids(rng, 1+rng.IntN(c.MaxOutput), c.Vocab)
		}
		for range call.Output {
			call.LogProbs = append(call.LogProbs, -4*rng.Float32())
		}
		call.Observation = ids(rng, rng.IntN(c.MaxObservation+1), c.Vocab)
		t.Calls = append(t.Calls, call)
	}
	return t
}

func ids(rng *rand.Rand, n, vocab int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = rng.Int32N(int32(vocab))
	}
	return out
}

// nextContext applies an update rule to the calls so far; the opening is in the
// first context, and stays in a full one.
func nextContext(rng *rand.Rand, t *trace.Trajectory, opening []int32, u Update) ([]int32, []trace.Span) {
	context := slices.Clone(t.Prefix)
	spans := []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: len(context)}}
	add := func(o trace.Origin, from, offset int, ids []int32) {
		if ids = ids[offset:]; len(ids) == 0 {
			return
		}
		spans = append(spans, trace.Span{
			Origin: o, FromCall: from, Offset: offset, Start: len(context), End: len(context) + len(ids),
		})
		context = append(context, ids...)
	}
	if len(t.Calls) == 0 || u == UpdateFull {
		add(trace.OriginObservation, -1, 0, opening)
	}
	for k := range t.Calls {
		c, age := &t.Calls[k], len(t.Calls)-1-k
		both := u != UpdateNone && age == 0 || u == UpdateFull || u == UpdateWindow && age == 1
		output, offset := c.Output, 0
		switch {
		case u == UpdateSuffix && both:
			offset = rng.IntN(len(output) + 1)
		case u == UpdateSummary && both:
			output = output[:rng.IntN(len(output)+1)]
			offset = rng.IntN(len(output) + 1)
		}
		if both || u == UpdateRefresh {
			add(trace.OriginRetained, k, offset, output)
		}
		if both {
			add(trace.OriginObservation, k, 0, c.Observation)
		}
	}
	return context, spans
}
