package align_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

// sampled is a call of given context and output after the prefix 1 2, nothing of
// which is a copy.
func sampled(k int, context, output []int32) trace.Call {
	c := trace.Call{Index: k, Context: append([]int32{1, 2}, context...), Spans: []trace.Span{span(trace.OriginPrefix, -1, 0, 2)}, Output: output}
	if len(context) > 0 {
		c.Spans = append(c.Spans, span(trace.OriginObservation, -1, 2, len(c.Context)))
	}
	return c
}

// TestTreeByHand holds the places of a tree of three levels: two samples whose
// calls part at different tokens, end where another goes on, or begin their outputs alike.
func TestTreeByHand(t *testing.T) {
	a := &trace.Trajectory{ID: "a", Prefix: []int32{1, 2}, Calls: []trace.Call{
		sampled(0, nil, []int32{5, 6, 7}),
		sampled(1, []int32{5, 6}, []int32{8, 9}),
		sampled(2, []int32{5}, []int32{6}), // ends inside what others share
		sampled(3, []int32{4}, []int32{5}),
	}}
	b := &trace.Trajectory{ID: "b", Prefix: []int32{1, 2}, Calls: []trace.Call{
		sampled(0, nil, []int32{5, 6, 8, 9, 3}), // goes on where a's call 1 ended
		sampled(1, []int32{5}, []int32{6, 8, 10}),
	}}
	got, err := align.CompileGroup([]*trace.Trajectory{a, b}, align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &align.Packed{
		TrajectoryID: "a and 1 more", PrefixLength: 2,
		IDs:       []int32{1, 2, 5, 6, 7, 8, 9, 3, 10, 4, 5},
		Positions: []int32{0, 1, 2, 3, 4, 4, 5, 6, 5, 2, 3},
		Blocks: []align.Block{
			{Trajectory: -1, Call: -1, Start: 2, End: 4},
			{Trajectory: 0, Call: 0, Start: 4, End: 5, Sees: []align.Range{{Start: 0, End: 4}}},
			{Trajectory: -1, Call: -1, Start: 5, End: 6, Sees: []align.Range{{Start: 0, End: 4}}},
			{Trajectory: -1, Call: -1, Start: 6, End: 8, Sees: []align.Range{{Start: 0, End: 4}, {Start: 5, End: 6}}},
			{Trajectory: 1, Call: 1, Start: 8, End: 9, Sees: []align.Range{{Start: 0, End: 4}, {Start: 5, End: 6}}},
			{Trajectory: 0, Call: 3, Start: 9, End: 11},
		},
		Actions: []align.Action{
			{Call: 0, Token: 0, ID: 5, Index: 2, Predict: 1, Teacher: true},
			{Call: 0, Token: 1, ID: 6, Index: 3, Predict: 2, Teacher: true},
			{Call: 0, Token: 2, ID: 7, Index: 4, Predict: 3, Teacher: true},
			{Call: 1, Token: 0, ID: 8, Index: 5, Predict: 3, Teacher: true},
			{Call: 1, Token: 1, ID: 9, Index: 6, Predict: 5, Teacher: true},
			{Call: 2, Token: 0, ID: 6, Index: 3, Predict: 2, Teacher: true},
			{Call: 3, Token: 0, ID: 5, Index: 10, Predict: 9, Teacher: true},
			{Trajectory: 1, Call: 0, Token: 0, ID: 5, Index: 2, Predict: 1, Teacher: true},
			{Trajectory: 1, Call: 0, Token: 1, ID: 6, Index: 3, Predict: 2, Teacher: true},
			{Trajectory: 1, Call: 0, Token: 2, ID: 8, Index: 5, Predict: 3, Teacher: true},
			{Trajectory: 1, Call: 0, Token: 3, ID: 9, Index: 6, Predict: 5, Teacher: true},
			{Trajectory: 1, Call: 0, Token: 4, ID: 3, Index: 7, Predict: 6, Teacher: true},
			{Trajectory: 1, Call: 1, Token: 0, ID: 6, Index: 3, Predict: 2, Teacher: true},
			{Trajectory: 1, Call: 1, Token: 1, ID: 8, Index: 5, Predict: 3, Teacher: true},
			{Trajectory: 1, Call: 1, Token: 2, ID: 10, Index: 8, Predict: 5, Teacher: true},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("compiled\n got %+v\nwant %+v", got, want)
	}
	stats := align.Stats{Calls: 6, Blocks: 6, StoredTokens: 11, SeparateTokens: 5 + 6 + 4 + 4 + 7 + 6, Actions: 15, TeacherActions: 15}
	if s := got.Stats(); s != stats {
		t.Errorf("stats %+v, want %+v", s, stats)
	}
}

// TestGrowingCallsAreOneChain holds that a context which only grows needs no more
// than the transcript: one causal row.
func TestGrowingCallsAreOneChain(t *testing.T) {
	for seed := range uint64(30) {
		c := aligntest.Small()
		c.Update = aligntest.UpdateFull
		traj := aligntest.Random(rand.New(rand.NewPCG(seed, 3)), c)
		p := compiled(t, traj)
		persistent, err := align.Persistent(traj, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Blocks) != 1 || p.Blocks[0].Sees != nil || !slices.Equal(p.IDs, persistent.IDs) || !slices.Equal(p.Positions, persistent.Positions) {
			t.Errorf("seed %d: %+v, want one row of %v", seed, p, persistent.IDs)
		}
		if !reflect.DeepEqual(p.Actions, persistent.Actions) {
			t.Errorf("seed %d: actions %+v, want %+v", seed, p.Actions, persistent.Actions)
		}
	}
}

// TestTreeShares holds that a tree stores each beginning of any call once, that what
// sees what is what begins with what, and that each action has its state.
func TestTreeShares(t *testing.T) {
	deepest := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		c := aligntest.Small()
		c.Update = aligntest.UpdateOf(seed)
		c.Vocab = 2 + int(seed/5%3) // so that much is shared by chance
		c.EmptyOutputChance, c.MaxOpening = []float64{0, 0.3}[seed%2], int(seed%3)
		group := aligntest.Group(rng, c, 1+int(seed%4))
		p, err := align.CompileGroup(group, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkTree(t, p, group)
		if n := checkStates(t, p, group...); n != sampledTokens(group) {
			t.Errorf("%d actions, %d sampled", n, sampledTokens(group))
		}
		deepest = max(deepest, depth(p))
		if t.Failed() {
			t.Fatalf("seed %d, update %s", seed, c.Update)
		}
	}
	if deepest < 5 {
		t.Errorf("the deepest tree has %d levels", deepest)
	}
}

func sampledTokens(group []*trace.Trajectory) int {
	n := 0
	for _, t := range group {
		n += t.SampledTokens()
	}
	return n
}

// depth is the most blocks that one token sees, its own and the prefix among them.
func depth(p *align.Packed) int {
	most := 0
	for _, b := range p.Blocks {
		levels := 2
		for _, other := range p.Blocks {
			if p.Visible(b.Start, other.Start) && other.Start != b.Start {
				levels++
			}
		}
		most = max(most, levels)
	}
	return most
}

// checkTree compares the stored places with all beginnings of all calls.
func checkTree(t *testing.T, p *align.Packed, group []*trace.Trajectory) {
	t.Helper()
	beginnings := map[string]bool{}
	for _, traj := range group {
		for _, c := range traj.Calls {
			if len(c.Output) == 0 {
				continue
			}
			whole := slices.Concat(c.Context, c.Output)
			for n := 1; n <= len(whole); n++ {
				beginnings[fmt.Sprint(whole[:n])] = true
			}
		}
	}
	places := make([]string, len(p.IDs))
	for q := range p.IDs {
		ids, positions := state(p, q)
		places[q] = fmt.Sprint(ids)
		if int(p.Positions[q]) != len(ids)-1 || !slices.IsSorted(positions) {
			t.Errorf("place %d, of %d seen tokens, stands at %d", q, len(ids), p.Positions[q])
		}
		if !beginnings[places[q]] {
			t.Errorf("place %d sees %s, which no call begins with, or stands twice", q, places[q])
		}
		delete(beginnings, places[q])
	}
	if len(beginnings) > 0 {
		t.Errorf("%d beginnings are not stored", len(beginnings))
	}
	for q := range places {
		for k := range places {
			begins := strings.HasPrefix(strings.TrimSuffix(places[q], "]")+" ", strings.TrimSuffix(places[k], "]")+" ")
			if p.Visible(q, k) != begins {
				t.Errorf("place %d (%s) sees %d (%s): %v", q, places[q], k, places[k], !begins)
			}
		}
	}
	for i, b := range p.Blocks { // chains are merged: no block is another's only continuation
		n := 0
		for _, other := range p.Blocks {
			if other.Start != b.Start && p.Visible(other.Start, b.End-1) && p.Positions[other.Start] == p.Positions[b.End-1]+1 {
				n++
			}
		}
		if n == 1 {
			t.Errorf("block %d has one continuation", i)
		}
	}
}

// TestUnsharedIsPrefixOnly holds that a trajectory whose calls have but the prefix in
// common compiles as with PrefixOnly.
func TestUnsharedIsPrefixOnly(t *testing.T) {
	for seed := range uint64(40) {
		c := aligntest.Small()
		c.Vocab, c.Update, c.MaxOpening = 1<<30, aligntest.UpdateNone, 3
		traj := aligntest.Random(rand.New(rand.NewPCG(seed, 5)), c)
		alone, err := align.Compile(traj, align.Options{PrefixOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if p := compiled(t, traj); !reflect.DeepEqual(p, alone) {
			t.Errorf("seed %d: %+v, want %+v", seed, p, alone)
		}
	}
}

func TestGroupRejections(t *testing.T) {
	other := example()
	other.ID = "other"
	other.Prefix = []int32{1, 3}
	for i := range other.Calls {
		other.Calls[i].Context[1] = 3
	}
	for name, c := range map[string]struct {
		group  []*trace.Trajectory
		o      align.Options
		reason align.Reason
		id     string
	}{
		"no samples":     {nil, align.Options{}, align.ReasonNoActions, ""},
		"a nil sample":   {[]*trace.Trajectory{example(), nil}, align.Options{}, align.ReasonInconsistent, ""},
		"another prefix": {[]*trace.Trajectory{example(), other}, align.Options{}, align.ReasonInconsistent, "other"},
		"too long":       {[]*trace.Trajectory{example(), example()}, align.Options{MaxPackedTokens: 7}, align.ReasonPackedTokens, "ex"},
	} {
		_, err := align.CompileGroup(c.group, c.o)
		var r *align.Rejected
		if !errors.As(err, &r) || r.Reason != c.reason || r.TrajectoryID != c.id && !strings.HasPrefix(r.TrajectoryID, c.id+" and") {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := align.CompileGroup([]*trace.Trajectory{example(), example()}, align.Options{MaxPackedTokens: 8})
	if err != nil || len(p.IDs) != 8 || len(p.Actions) != 10 {
		t.Errorf("the same sample twice: %+v, %v", p, err)
	}
}

// TestVisibleIsDense holds Visible to the blocks, of every layout.
func TestVisibleIsDense(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		for _, l := range align.Layouts() {
			rows, err := l.Rows(traj, align.Options{ThinkLength: thirds})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range rows {
				for q, line := range aligntest.Dense(p) {
					for k, sees := range line {
						if p.Visible(q, k) != sees {
							t.Fatalf("%s: visible(%d, %d) = %v, blocks %+v", l.Name, q, k, !sees, p.Blocks)
						}
					}
				}
				if p.Visible(len(p.IDs), 0) || p.Visible(-1, -1) {
					t.Error("a place outside the sequence sees something")
				}
			}
		}
	})
}
