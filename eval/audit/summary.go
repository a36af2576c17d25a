package audit

import (
	"fmt"
	"math"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/train"
)

// percentile is the smallest value that at least the share q of sorted ones are not
// above; NaN of none.
func percentile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// figures sums up those tokens that keep says; tokens without an action are left out.
func figures(tokens []Token, call int, keep func(Token) bool) Part {
	p := Part{Call: call, MaxDLogit: math.NaN(), GradError: math.NaN()}
	var errors []float64
	for _, t := range tokens {
		if t.Row < 0 || !keep(t) {
			continue
		}
		errors = append(errors, t.Error)
		if t.Flip {
			p.Flips++
		}
		if t.Clip {
			p.FalseClips++
		}
		if !(t.DLogit <= p.MaxDLogit) && !math.IsNaN(t.DLogit) {
			p.MaxDLogit = t.DLogit
		}
	}
	slices.Sort(errors)
	p.Tokens, p.P50, p.P99, p.Max = len(errors), percentile(errors, .5), percentile(errors, .99), percentile(errors, 1)
	return p
}

// summarise fills in a layout's figures, the gradient's apart.
func (l *LayoutReport) summarise() {
	all := figures(l.Records, -1, func(Token) bool { return true })
	l.Tokens, l.P50, l.P99, l.Max = all.Tokens, all.P50, all.P99, all.Max
	l.Flips, l.FalseClips, l.MaxDLogit, l.GradError = all.Flips, all.FalseClips, all.MaxDLogit, math.NaN()
	l.Before = figures(l.Records, 0, func(t Token) bool { return t.Call == 0 })
	l.After = figures(l.Records, -1, func(t Token) bool { return t.Call > 0 })
	last := -1
	for _, t := range l.Records {
		last = max(last, t.Call)
		if t.Row >= 0 && !t.Same {
			l.States++
		}
	}
	for k := range last + 1 {
		if p := figures(l.Records, k, func(t Token) bool { return t.Call == k }); p.Tokens > 0 {
			l.ByCall = append(l.ByCall, p)
		}
	}
}

// summarise sums up all layouts. Tokens get the trajectories' numbers here.
func (a *rce) summarise() {
	for _, m := range a.layouts {
		for i, t := range a.report.Trajectories {
			for k := range t.Tokens {
				m.report.Records[t.First+k].Trajectory = i
			}
		}
		m.report.summarise()
	}
	if len(a.recorded) > 0 {
		a.report.Recorded = &LayoutReport{Name: RecordedName, Records: a.recorded}
		a.report.Recorded.summarise()
	}
}

// judge decides which layouts pass, and hands them to the report.
func (a *rce) judge() {
	for _, m := range a.layouts {
		m.report.judge(a.o.Tolerance)
		if m.floor {
			a.report.Floor = &m.report
		} else {
			a.report.Layouts = append(a.report.Layouts, m.report)
		}
	}
	if r := a.report.Recorded; r != nil {
		r.judge(a.o.Tolerance)
	}
}

// judge applies the rule of the package comment.
func (l *LayoutReport) judge(tolerance float64) {
	no := func(format string, args ...any) { l.Reasons = append(l.Reasons, fmt.Sprintf(format, args...)) }
	if l.Tokens == 0 {
		no("nothing was compared")
	}
	if l.Spurious > 0 {
		no("%d actions that were not sampled", l.Spurious)
	}
	if l.Missing > 0 {
		no("%d sampled tokens that are no actions", l.Missing)
	}
	if l.Tokens > 0 && !(l.P99 <= tolerance) {
		no("p99 %.3g above %.3g", l.P99, tolerance)
	}
	if l.Flips > 0 {
		no("%d top-1 flips", l.Flips)
	}
	if l.FalseClips > 0 {
		no("%d false clips", l.FalseClips)
	}
	l.Pass = len(l.Reasons) == 0
}

// explain notes which tokens have their true state, and why the first token of each
// call that fails does.
func (a *rce) explain(m *measured, id string, t *truth, d *domain, tokens []Token) {
	if d.first != "" {
		m.report.Failures = append(m.report.Failures, Failure{
			Trajectory: id, Call: -1, Token: -1, Row: -1, Place: -1, At: -1, Parts: []align.Part{align.PartMask},
			Detail: fmt.Sprintf("%d actions that were not sampled, %d sampled tokens that are no actions; the first: %s", d.spurious, d.missing, d.first),
		})
	}
	states := make([]*align.States, len(d.rows))
	for i, r := range d.rows {
		states[i] = align.StatesOf(r)
	}
	explained := map[int]bool{} // calls
	for k, action := range d.actions {
		i := d.index[k]
		row, true1 := states[d.row[k]], t.states[t.row[i]]
		x := &tokens[i]
		x.Same = row.Equal(action, true1, t.actions[i])
		if !x.failed(a.o.Tolerance) || explained[action.Call] {
			continue
		}
		explained[action.Call] = true
		f := Failure{
			Trajectory: id, Call: action.Call, Token: action.Token, Row: d.row[k], Place: action.Index,
			Error: Number(x.Error), Flip: x.Flip, Clip: x.Clip, At: -1,
		}
		if diff := align.Diff(row, action, true1, t.actions[i]); len(diff.Parts) > 0 {
			f.Parts, f.At, f.Detail = diff.Parts, diff.Place, diff.Detail
		} else if a.o.Compute.DType != train.Float32 {
			f.Parts, f.Detail = []align.Part{align.PartDType}, "the state is the true one; it was reckoned in "+a.o.Compute.DType+", the truth in "+train.Float32
		} else {
			f.Parts, f.Detail = []align.Part{align.PartNumerics}, "the state is the true one: rounding, or a fault of the forward pass"
		}
		m.report.Failures = append(m.report.Failures, f)
	}
}
