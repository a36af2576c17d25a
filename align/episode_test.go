package align_test

import (
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// Every layout's rows name the trajectory that they are of, so that nothing counts
// the calls of one episode as several.
func TestRowsNameTheirTrajectory(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		for _, l := range align.Layouts() {
			rows, err := l.Rows(traj, align.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				if row.TrajectoryID != traj.ID {
					t.Errorf("%s, row %d is of %q", l.Name, i, row.TrajectoryID)
				}
			}
		}
	})
}

// What a call retains of earlier outputs, such as its own summary, was action once
// and is so once: in the call that sampled it, and in no copy.
func TestMemoryTokensAreActionsOnce(t *testing.T) {
	kept := 0
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		type token struct{ call, token int }
		actions := map[token]int{}
		for _, a := range compiled(t, traj).Actions {
			actions[token{a.Call, a.Token}]++
		}
		for k, c := range traj.Calls {
			for _, s := range c.Spans {
				for i := range s.End - s.Start {
					if s.Origin != trace.OriginRetained {
						continue
					}
					kept++
					if n := actions[token{s.FromCall, s.Offset + i}]; n != 1 {
						t.Errorf("token %d of call %d, which call %d retains, is an action %d times", s.Offset+i, s.FromCall, k, n)
					}
				}
			}
		}
		if n := traj.SampledTokens(); len(actions) != n {
			t.Errorf("%d actions of %d sampled tokens", len(actions), n)
		}
	})
	if kept < 500 {
		t.Errorf("only %d tokens were retained", kept)
	}
	// By hand: 10, 11 of call 0 is the memory of call 1, and no action there; stored
	// once, where both see it alike, it is the action.
	for _, c := range []struct {
		o    align.Options
		want []bool
	}{{align.Options{PrefixOnly: true}, []bool{true, true, false, false}}, {align.Options{}, []bool{true, true}}} {
		p, err := align.Compile(example(), c.o)
		if err != nil {
			t.Fatal(err)
		}
		var bears []bool
		for i, id := range p.IDs {
			if id == 10 || id == 11 {
				bears = append(bears, p.ActionMask()[i])
			}
		}
		if !slices.Equal(bears, c.want) {
			t.Errorf("%+v: the memory's places bear loss %v, want %v", c.o, bears, c.want)
		}
	}
}
