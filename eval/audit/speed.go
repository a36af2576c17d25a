package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// SpeedShapes are how the calls of a measured trajectory hang together.
var SpeedShapes = []string{"memory", "growing", "samples"}

// SpeedShape is the batch of one actor update, in tokens unless said otherwise.
type SpeedShape struct {
	// Shape is one of SpeedShapes: memory (a call sees prefix, last output and last
	// observation), growing (all outputs and observations so far), samples (memory,
	// and the trajectories are of one task: one prefix and first context).
	Shape        string
	Prefix       int
	Calls        int     // of a trajectory
	CallTokens   int     // that a call adds to what it sees of the prefix and, growing, of earlier calls
	ActionShare  float64 // of CallTokens that are sampled, the last ones
	Ragged       float64 // calls have between (1-Ragged) and 1 times CallTokens
	Trajectories int     // in one forward pass
}

// check reports a shape that cannot be made.
func (s SpeedShape) check() error {
	if !slices.Contains(SpeedShapes, s.Shape) {
		return fmt.Errorf("unknown shape %q (known: %v)", s.Shape, SpeedShapes)
	}
	if s.Prefix < 1 || s.Calls < 1 || s.CallTokens < 1 || s.Trajectories < 1 {
		return fmt.Errorf("prefix %d, %d calls of %d tokens, %d trajectories: want at least 1 of each", s.Prefix, s.Calls, s.CallTokens, s.Trajectories)
	}
	if !(s.ActionShare > 0 && s.ActionShare <= 1) || !(s.Ragged >= 0 && s.Ragged < 1) {
		return fmt.Errorf("action share %g, ragged %g: want above 0 and at most 1, from 0 to below 1", s.ActionShare, s.Ragged)
	}
	return nil
}

// trajectories draws those of the shape, with ids below vocab.
func (s SpeedShape) trajectories(vocab int, seed uint64) []*trace.Trajectory {
	rng := rand.New(rand.NewPCG(seed, 0))
	draw := func(n int) []int32 {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = rng.Int32N(int32(vocab))
		}
		return ids
	}
	var all []*trace.Trajectory
	var prefix, opening []int32
	for i := range s.Trajectories {
		output := max(1, int(float64(s.CallTokens)*s.ActionShare+0.5))
		if i == 0 || s.Shape != "samples" {
			prefix, opening = draw(s.Prefix), draw(s.CallTokens-output)
		}
		t := &trace.Trajectory{
			Schema: trace.SchemaVersion, ID: fmt.Sprintf("random-%d", i), End: trace.EndAnswered,
			Sampler: trace.Sampler{Temperature: 1, TopP: 1}, Prefix: prefix,
		}
		for k := range s.Calls {
			own := s.CallTokens - int(rng.Float64()*s.Ragged*float64(s.CallTokens))
			s.addCall(t, opening, own, min(output, own), draw)
			t.Calls[k].LogProbs = make([]float32, len(t.Calls[k].Output))
		}
		all = append(all, t)
	}
	return all
}

// addCall appends a call whose context and output have own tokens more than what it
// shares: the observation before it is made to fit.
func (s SpeedShape) addCall(t *trace.Trajectory, opening []int32, own, output int, draw func(int) []int32) {
	k := len(t.Calls)
	c := trace.Call{Index: k, Context: slices.Clone(t.Prefix), Stop: trace.StopTag}
	c.Spans = []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: len(t.Prefix)}}
	add := func(o trace.Origin, from, offset int, ids []int32) {
		if len(ids) > 0 {
			c.Spans = append(c.Spans, trace.Span{Origin: o, FromCall: from, Offset: offset, Start: len(c.Context), End: len(c.Context) + len(ids)})
			c.Context = append(c.Context, ids...)
		}
	}
	switch {
	case k == 0:
		add(trace.OriginObservation, -1, 0, opening[:min(len(opening), own-output)])
	case s.Shape == "growing":
		t.Calls[k-1].Observation = draw(own - output)
		add(trace.OriginObservation, -1, 0, t.Calls[0].Context[len(t.Prefix):])
		for j := range t.Calls {
			add(trace.OriginRetained, j, 0, t.Calls[j].Output)
			add(trace.OriginObservation, j, 0, t.Calls[j].Observation)
		}
	default:
		kept := t.Calls[k-1].Output[:min(len(t.Calls[k-1].Output), own-output)]
		t.Calls[k-1].Observation = draw(own - output - len(kept))
		add(trace.OriginRetained, k-1, 0, kept)
		add(trace.OriginObservation, k-1, 0, t.Calls[k-1].Observation)
	}
	c.Output = draw(output)
	t.Calls = append(t.Calls, c)
}

// The ways of an actor update, in the order that they are reported in.
const (
	SpeedRows   = "rows"
	SpeedConcat = "concat"
	SpeedDense  = "dense"
	SpeedPacked = "packed"
)

// SpeedWays lists them; the first is the truth that the others are compared with.
var SpeedWays = []string{SpeedRows, SpeedConcat, SpeedDense, SpeedPacked}

// lay lays trajectories out in one of the ways. Actions have the same order in all.
func (s SpeedShape) lay(way string, ts []*trace.Trajectory) ([]*align.Packed, error) {
	var rows []*align.Packed
	switch way {
	case SpeedRows, SpeedConcat:
		for _, t := range ts {
			calls, err := align.Calls(t, align.Options{})
			if err != nil {
				return nil, err
			}
			rows = append(rows, calls...)
		}
		if way == SpeedRows {
			pad(rows)
		}
		return rows, nil
	}
	if s.Shape == "samples" {
		p, err := align.CompileGroup(ts, align.Options{})
		return []*align.Packed{p}, err
	}
	for _, t := range ts {
		p, err := align.Compile(t, align.Options{})
		if err != nil {
			return nil, err
		}
		rows = append(rows, p)
	}
	return rows, nil
}

// pad lengthens causal rows of one block to the longest with id 0, which no token of theirs sees.
func pad(rows []*align.Packed) {
	longest := 0
	for _, p := range rows {
		longest = max(longest, len(p.IDs))
	}
	for _, p := range rows {
		for n := len(p.IDs); n < longest; n++ {
			p.IDs, p.Positions = append(p.IDs, 0), append(p.Positions, int32(n))
		}
		if len(p.Blocks) == 0 {
			p.PrefixLength = longest
			continue
		}
		p.Blocks[len(p.Blocks)-1].End = longest
	}
}
