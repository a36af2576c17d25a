package align_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

// namer names the state at each place by who sees whom, place by place: two states
// get one name when id, position and the states of all that is seen are the same.
type namer map[string]int

func (n namer) names(p *align.Packed) []int {
	names := make([]int, len(p.IDs))
	for q := range p.IDs {
		var seen []int
		for k := range q {
			if p.Visible(q, k) {
				seen = append(seen, names[k])
			}
		}
		slices.Sort(seen)
		key := fmt.Sprint(p.IDs[q], p.Positions[q], seen)
		if _, ok := n[key]; !ok {
			n[key] = len(n)
		}
		names[q] = n[key]
	}
	return names
}

// TestStatesAgainstReference compares every action of every layout with its call's.
func TestStatesAgainstReference(t *testing.T) {
	equal, different := map[string]int{}, map[string]int{}
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		n := namer{}
		truth, err := align.Calls(traj, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range align.Layouts() {
			rows, err := l.Rows(traj, align.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				states, names := align.StatesOf(row), n.names(row)
				for _, a := range row.Actions {
					if a.Spurious() {
						continue
					}
					call := truth[slices.IndexFunc(truth, func(p *align.Packed) bool { return p.Actions[0].Call == a.Call })]
					b := call.Actions[a.Token]
					other := n.names(call)
					want := names[a.Predict] == other[b.Predict] && row.Positions[a.Index] == call.Positions[b.Index]
					if got := states.Equal(a, align.StatesOf(call), b); got != want {
						t.Errorf("%s, %+v: equal %v, want %v", l.Name, a, got, want)
					}
					d := align.Diff(states, a, align.StatesOf(call), b)
					if (len(d.Parts) == 0) != want {
						t.Errorf("%s, %+v: %+v, equal is %v", l.Name, a, d, want)
					}
					if want {
						equal[l.Name]++
					} else {
						different[l.Name]++
					}
				}
			}
		}
	})
	for _, name := range []string{"aligned", "calls", "trajectory-mask", "response-mask"} {
		if equal[name] == 0 || different[name] > 0 {
			t.Errorf("%s: %d states equal, %d not", name, equal[name], different[name])
		}
	}
	for _, name := range []string{"persistent", "visibility", "positions", "both", "mem1"} {
		if equal[name] == 0 || different[name] == 0 {
			t.Errorf("%s: %d states equal, %d not: want some of both", name, equal[name], different[name])
		}
	}
}

// TestDiffNamesThePart spoils one part of the compiled example at a time. Its places
// are, prefix first, 1 2 | 10 11 | 10 11 20 12 13 14, its last action stands at 9.
func TestDiffNamesThePart(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*align.Packed)
		parts  []align.Part
		place  int
		detail string
	}{
		{"nothing", func(*align.Packed) {}, nil, 0, ""},
		{"id of a context token", func(p *align.Packed) { p.IDs[5] = 39 }, []align.Part{align.PartIDs}, 5, "1 tokens of other ids"},
		{"id of the action", func(p *align.Packed) { p.Actions[4].ID = 39 }, []align.Part{align.PartIDs}, 9, "id 39, sampled was 14"},
		{"position of a context token", func(p *align.Packed) { p.Positions[6] = 17 }, []align.Part{align.PartPositions}, 6, "1 tokens at other positions"},
		{"two positions swapped", func(p *align.Packed) { p.Positions[4], p.Positions[6] = 4, 2 }, []align.Part{align.PartPositions}, 4, "2 tokens at other"},
		{"position of the action", func(p *align.Packed) { p.Positions[9] = 8 }, []align.Part{align.PartPositions}, 9, "stands at position 8, sampled at 7"},
		{"the other call is seen", func(p *align.Packed) { p.Blocks[1].Sees = []align.Range{{0, 4}} }, []align.Part{align.PartVisibility}, 4, "2 tokens that the call did not read"},
		{"the prefix is hidden", func(p *align.Packed) { p.Blocks[1].Sees = []align.Range{} }, []align.Part{align.PartVisibility}, 8, "does not see 2 tokens that it read"},
		{"an observation that sees itself alone", func(p *align.Packed) {
			p.Blocks = []align.Block{{Call: 0, Start: 2, End: 4}, {Call: 1, Start: 4, End: 6}, {Call: 1, Start: 6, End: 7, Sees: []align.Range{}},
				{Call: 1, Start: 7, End: 10, Sees: []align.Range{{0, 2}, {4, 7}}}}
		}, []align.Part{align.PartVisibility}, 6, "the token at place 6, seen from place 8, does not see 4 tokens that it read"},
		{"predicted one early", func(p *align.Packed) { p.Actions[4].Predict = 7 }, []align.Part{align.PartPrediction}, 7, "ends at place 8"},
		{"predicted by itself", func(p *align.Packed) { p.Actions[4].Predict = 9 }, []align.Part{align.PartPrediction}, 9, "ends at place 8"},
		{"predicted nowhere", func(p *align.Packed) { p.Actions[4].Predict = 10 }, []align.Part{align.PartPrediction}, 10, "place 10 of 10"},
		{"an action nowhere", func(p *align.Packed) { p.Actions[4].Index = 10 }, []align.Part{align.PartMask}, 10, "place 10 of 10"},
		{"a context token cut", func(p *align.Packed) { cutPlace(p, 6) }, []align.Part{align.PartTruncation}, 7, "the row does not hold"},
		{"positions and visibility", func(p *align.Packed) {
			p.Blocks = []align.Block{{Call: -1, Start: 2, End: 10}}
			for i := range p.Positions {
				p.Positions[i] = int32(i)
			}
		}, []align.Part{align.PartPositions, align.PartVisibility}, 4, "did not read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := align.Compile(example(), align.Options{PrefixOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			truth, err := align.Calls(example(), align.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(p)
			a, b := p.Actions[4], truth[1].Actions[2]
			d := align.Diff(align.StatesOf(p), a, align.StatesOf(truth[1]), b)
			if !slices.Equal(d.Parts, c.parts) || d.Place != c.place || !strings.Contains(d.Detail, c.detail) {
				t.Errorf("%+v, want %v at %d, %q", d, c.parts, c.place, c.detail)
			}
		})
	}
}

// cutPlace drops a token of the last block from a row, positions left as they are.
func cutPlace(p *align.Packed, place int) {
	p.IDs = slices.Delete(p.IDs, place, place+1)
	p.Positions = slices.Delete(p.Positions, place, place+1)
	p.Blocks[len(p.Blocks)-1].End--
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Index > place {
			a.Index--
			a.Predict--
		}
	}
}

// TestDiffOfCorruptedLayouts: what is spoiled, and nothing else, is named wherever a
// state differs at all.
func TestDiffOfCorruptedLayouts(t *testing.T) {
	allowed := map[string][]align.Part{
		"visibility": {align.PartVisibility},
		"positions":  {align.PartPositions},
		"both":       {align.PartVisibility, align.PartPositions},
		"persistent": {align.PartVisibility, align.PartPositions},
		"mem1":       {align.PartVisibility, align.PartPositions},
	}
	found := map[string]map[align.Part]int{}
	for seed := range uint64(40) {
		c := aligntest.Small()
		c.Vocab = 100000 // no id twice by chance
		traj := aligntest.Random(rand.New(rand.NewPCG(seed, 3)), c)
		truth, err := align.Calls(traj, align.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, parts := range allowed {
			l, err := align.LayoutNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := l.Rows(traj, align.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if found[name] == nil {
				found[name] = map[align.Part]int{}
			}
			for _, a := range rows[0].Actions {
				call := truth[slices.IndexFunc(truth, func(p *align.Packed) bool { return p.Actions[0].Call == a.Call })]
				for _, part := range align.Diff(align.StatesOf(rows[0]), a, align.StatesOf(call), call.Actions[a.Token]).Parts {
					if found[name][part]++; !slices.Contains(parts, part) {
						t.Errorf("%s, seed %d, %+v: %s differs", name, seed, a, part)
					}
				}
			}
		}
	}
	for name, parts := range allowed {
		for _, part := range parts {
			if found[name][part] == 0 {
				t.Errorf("%s: %s was never found to differ", name, part)
			}
		}
	}
}
