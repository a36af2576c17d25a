package align_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

func span(o trace.Origin, from, start, end int) trace.Span {
	return trace.Span{Origin: o, FromCall: from, Start: start, End: end}
}

// example is a MEM1 trajectory of two calls, small enough to compile by hand.
func example() *trace.Trajectory {
	return &trace.Trajectory{ID: "ex", Prefix: []int32{1, 2}, Calls: []trace.Call{
		{Index: 0, Context: []int32{1, 2}, Spans: []trace.Span{span(trace.OriginPrefix, -1, 0, 2)},
			Output: []int32{10, 11}, Observation: []int32{20}},
		{Index: 1, Context: []int32{1, 2, 10, 11, 20}, Spans: []trace.Span{span(trace.OriginPrefix, -1, 0, 2),
			span(trace.OriginRetained, 0, 2, 4), span(trace.OriginObservation, 0, 4, 5)},
			Output: []int32{12, 13, 14}, Observation: []int32{21}},
	}}
}

func TestCompileByHand(t *testing.T) {
	got, err := align.Compile(example(), align.Options{Teacher: align.TeacherFromCall(1), PrefixOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	want := &align.Packed{
		TrajectoryID: "ex", PrefixLength: 2,
		IDs:       []int32{1, 2, 10, 11, 10, 11, 20, 12, 13, 14},
		Positions: []int32{0, 1, 2, 3, 2, 3, 4, 5, 6, 7},
		Blocks:    []align.Block{{Call: 0, Start: 2, End: 4}, {Call: 1, Start: 4, End: 10}},
		Actions: []align.Action{
			{Call: 0, Token: 0, ID: 10, Index: 2, Predict: 1},
			{Call: 0, Token: 1, ID: 11, Index: 3, Predict: 2},
			{Call: 1, Token: 0, ID: 12, Index: 7, Predict: 6, Teacher: true},
			{Call: 1, Token: 1, ID: 13, Index: 8, Predict: 7, Teacher: true},
			{Call: 1, Token: 2, ID: 14, Index: 9, Predict: 8, Teacher: true},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("compiled\n got %+v\nwant %+v", got, want)
	}
	actions := []bool{false, false, true, true, false, false, false, true, true, true}
	if m := got.ActionMask(); !slices.Equal(m, actions) {
		t.Errorf("action mask %v, want %v", m, actions)
	}
	teacher := []bool{false, false, false, false, false, false, false, true, true, true}
	if m := got.TeacherMask(); !slices.Equal(m, teacher) {
		t.Errorf("teacher mask %v, want %v", m, teacher)
	}
	stats := align.Stats{Calls: 2, Blocks: 2, StoredTokens: 10, SeparateTokens: 12, Actions: 5, TeacherActions: 3}
	if got.Stats() != stats {
		t.Errorf("stats %+v, want %+v", got.Stats(), stats)
	}
	if s := stats.Add(stats).Saved(); s < 0.16666 || s > 0.16667 {
		t.Errorf("saved %v, want 1/6", s)
	}
}

func TestPersistentByHand(t *testing.T) {
	got, err := align.Persistent(example(), align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &align.Packed{
		TrajectoryID: "ex", PrefixLength: 2,
		IDs:       []int32{1, 2, 10, 11, 20, 12, 13, 14},
		Positions: []int32{0, 1, 2, 3, 4, 5, 6, 7},
		Blocks:    []align.Block{{Call: -1, Start: 2, End: 8}},
		Actions: []align.Action{
			{Call: 0, Token: 0, ID: 10, Index: 2, Predict: 1, Teacher: true},
			{Call: 0, Token: 1, ID: 11, Index: 3, Predict: 2, Teacher: true},
			{Call: 1, Token: 0, ID: 12, Index: 5, Predict: 4, Teacher: true},
			{Call: 1, Token: 1, ID: 13, Index: 6, Predict: 5, Teacher: true},
			{Call: 1, Token: 2, ID: 14, Index: 7, Predict: 6, Teacher: true},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("persistent\n got %+v\nwant %+v", got, want)
	}
}

// generated calls check with trajectories of every update rule and size.
func generated(t *testing.T, check func(*testing.T, *trace.Trajectory)) {
	t.Helper()
	for seed := range uint64(120) {
		c := aligntest.Small()
		if seed%40 == 39 {
			c = aligntest.Long()
			c.MaxCalls = 6
		}
		c.Update = aligntest.UpdateOf(seed)
		c.EmptyOutputChance = []float64{0, 0.3}[seed/5%2]
		c.MaxOpening = []int{0, 5}[seed/10%2]
		traj := aligntest.Random(rand.New(rand.NewPCG(seed, 1)), c)
		check(t, traj)
		if t.Failed() {
			t.Fatalf("seed %d, update %s: %+v", seed, c.Update, traj)
		}
	}
}

// TestStatesOfActions rebuilds each action's memory state from the layout alone
// and compares it with the call record.
func TestStatesOfActions(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		rows, err := align.Calls(traj, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := checkStates(t, compiled(t, traj), traj)
		sum := 0
		for _, row := range rows {
			if len(row.Blocks) != 1 {
				t.Errorf("a call's row has %d blocks", len(row.Blocks))
			}
			sum += checkStates(t, row, traj)
		}
		if n != traj.SampledTokens() || sum != n {
			t.Errorf("%d actions packed, %d in rows, %d sampled", n, sum, traj.SampledTokens())
		}
	})
}

func compiled(t *testing.T, traj *trace.Trajectory) *align.Packed {
	t.Helper()
	p, err := align.Compile(traj, align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkStates returns the number of actions it checked.
func checkStates(t *testing.T, p *align.Packed, samples ...*trace.Trajectory) int {
	t.Helper()
	last := align.Action{Trajectory: -1}
	for _, a := range p.Actions {
		c := &samples[a.Trajectory].Calls[a.Call]
		next := last.Token + 1
		if a.Trajectory != last.Trajectory || a.Call != last.Call {
			next = 0
		}
		if a.Trajectory < last.Trajectory || a.Trajectory == last.Trajectory && a.Call < last.Call || a.Token != next ||
			a.ID != c.Output[a.Token] || p.IDs[a.Index] != a.ID {
			t.Errorf("action %+v after %+v is out of order or not its call's token", a, last)
		}
		last = a
		ids, positions := state(p, a.Predict)
		want := append(slices.Clone(c.Context), c.Output[:a.Token]...)
		if !slices.Equal(ids, want) {
			t.Errorf("action %+v is conditioned on %v, want %v", a, ids, want)
		}
		for i, position := range positions {
			if int(position) != i {
				t.Errorf("action %+v: token %d stands at position %d", a, i, position)
			}
		}
		if int(p.Positions[a.Index]) != len(want) {
			t.Errorf("action %+v stands at position %d, want %d", a, p.Positions[a.Index], len(want))
		}
	}
	return len(p.Actions)
}

// state lists what place q sees, ordered by position.
func state(p *align.Packed, q int) (ids, positions []int32) {
	var seen []int
	for k := range p.IDs {
		if p.Visible(q, k) {
			seen = append(seen, k)
		}
	}
	slices.SortStableFunc(seen, func(a, b int) int { return int(p.Positions[a] - p.Positions[b]) })
	for _, k := range seen {
		ids, positions = append(ids, p.IDs[k]), append(positions, p.Positions[k])
	}
	return ids, positions
}

func TestPersistentCorresponds(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		packed := compiled(t, traj)
		p, err := align.Persistent(traj, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		history := slices.Clone(traj.Calls[0].Context)
		i := 0
		for k, c := range traj.Calls {
			for token, id := range c.Output {
				a, b := p.Actions[i], packed.Actions[i]
				if a.Call != k || a.Token != token || a.ID != id || b.Call != k || b.Token != token || b.ID != id {
					t.Errorf("action %d: %+v and %+v, want call %d token %d", i, a, b, k, token)
				}
				ids, _ := state(p, a.Predict)
				if !slices.Equal(ids, history) || a.Index != len(history) {
					t.Errorf("action %d is conditioned on %v, want %v", i, ids, history)
				}
				history = append(history, id)
				i++
			}
			history = append(history, c.Observation...)
		}
		if i != len(p.Actions) || i != len(packed.Actions) || len(p.IDs) != p.Actions[i-1].Index+1 {
			t.Errorf("%d actions, %d persistent and %d packed ones, %d ids", i, len(p.Actions), len(packed.Actions), len(p.IDs))
		}
		for i, position := range p.Positions {
			if int(position) != i {
				t.Errorf("token %d stands at position %d", i, position)
			}
		}
	})
}
