package page

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

// sample is an audit with made-up errors: none to speak of where a layout's states are right.
func sample(t testing.TB, trajectories int, c aligntest.Config) *Audit {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	a := &Audit{
		Title: "Sample", Subtitle: "a test", Pass: true, Verdict: "aligned passes.", Rule: "p99 at most 1e-4", Tolerance: 1e-4, ClipEpsilon: .2,
		Total: trajectories + 3, Hashes: []Fact{{"model", "ab12"}}, Settings: []Fact{{"dtype", "f32"}},
	}
	for range trajectories {
		a.Trajectories = append(a.Trajectories, sampleTrajectory(t, rng, aligntest.Random(rng, c)))
	}
	for _, l := range align.Layouts() {
		r := Row{Layout: l.Name, Description: l.Description, Role: "control", MaxDLogit: 1e-3, GradError: math.NaN(), States: -1}
		var all []TokenError
		for _, tr := range a.Trajectories {
			for _, v := range tr.Layouts {
				if v.Name == l.Name {
					all = append(all, v.Tokens...)
				}
			}
		}
		r.Figures = figures(all, -1)
		for k := range 5 {
			if f := figures(all, k); f.Tokens > 0 {
				r.ByCall = append(r.ByCall, f)
			}
		}
		r.Before, r.After, r.Pass = figures(all, 0), r.Figures, r.P99 <= a.Tolerance
		if l.Name == "persistent" {
			r.Published = &Published{Source: "a paper", P99: "1.774", Flips: "651", FalseClips: "13.29 %"}
		}
		if !r.Pass {
			a.Failures = append(a.Failures, Failure{Layout: l.Name, Trajectory: a.Trajectories[0].Record.ID, Call: 1, Place: 9, Error: 1.5, Flip: true, Parts: []string{"positions"}, Detail: "stands at 12, was 5"})
		}
		a.Rows = append(a.Rows, r)
	}
	return a
}

func sampleTrajectory(t testing.TB, rng *rand.Rand, record *trace.Trajectory) Trajectory {
	t.Helper()
	tr := Trajectory{Record: record}
	for _, l := range align.Layouts() {
		rows, err := l.Rows(record, align.Options{Teacher: align.TeacherFromCall(1)})
		if err != nil {
			t.Fatal(err)
		}
		v := LayoutView{Name: l.Name, Description: l.Description, Rows: rows}
		made := newView(record, rows)
		wrong := map[int]bool{}
		for _, s := range made.segments {
			wrong[s.Owner] = wrong[s.Owner] || len(s.Extra)+len(s.Missing) > 0 || s.Index != s.Position
		}
		for k, c := range record.Calls {
			for i := range c.Output {
				e := TokenError{Call: k, Token: i, Error: math.Pow(10, -7+rng.Float64())}
				if wrong[k] {
					e.Error = math.Pow(10, -3+3.3*rng.Float64())
					e.Flip, e.Clip = e.Error > .8, e.Error > .2
				}
				v.Tokens = append(v.Tokens, e)
			}
		}
		tr.Layouts = append(tr.Layouts, v)
	}
	return tr
}

// figures sums up the tokens of a call, -1: of all.
func figures(all []TokenError, call int) Figures {
	f := Figures{Call: call}
	var kept []TokenError
	for _, e := range all {
		if call < 0 || e.Call == call {
			kept = append(kept, e)
			if e.Flip {
				f.Flips++
			}
			if e.Clip {
				f.FalseClips++
			}
		}
	}
	f.Tokens, f.P99 = len(kept), p99(kept)
	_, _, f.Max = tally(kept, 1)
	f.P50 = f.P99 / 10
	return f
}

// cfg is the size of a sample that is looked at.
func cfg() aligntest.Config {
	c := aligntest.Small()
	c.MaxPrefix, c.MaxCalls, c.MaxOutput, c.MaxObservation = 120, 5, 60, 90
	return c
}
