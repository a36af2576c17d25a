package train

import (
	"math"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// The layout is the state that all of a run's scores are taken in: behaviour and new
// log-probs, the reference's, the critic's values and, with the aligned teacher, the
// teacher's. A wrong layout is wrong everywhere, as it is in published training code
// that has one (MEM1's old and new log-probs are both taken under its mask), so that
// ratios are 1 before the first update, and what is measured is the cost of the states.
// Rollouts and evaluation are the agent's own in every layout.

// ThinkLength is how many tokens of a call's output are its memory.
type ThinkLength = func(t *trace.Trajectory, call int) int

// trainLayouts are the layouts of one row a trajectory, the aligned one first.
func trainLayouts() []string {
	var names []string
	for _, l := range align.Layouts() {
		if l.Name != "calls" { // a row a call
			names = append(names, l.Name)
		}
	}
	return names
}

// invents tells a layout whose mask takes tokens for actions that nothing sampled.
// Those are spurious in every use: they have rewards, advantages and losses, but no
// teacher term.
func (c PPOConfig) invents() bool {
	return slices.Contains([]string{"trajectory-mask", "response-mask"}, c.Layout)
}

// layOut is a trajectory's row. The error is a *align.Rejected, but for unknown names.
func (c PPOConfig) layOut(t *trace.Trajectory, o align.Options) (*align.Packed, error) {
	l, err := align.LayoutNamed(c.Layout)
	if err != nil {
		return nil, err
	}
	rows, err := l.Rows(t, o)
	if err != nil {
		return nil, err
	}
	return rows[0], nil // see trainLayouts
}

// options are those of every compilation of a run.
func (r *ppoRun) options() align.Options {
	o := r.c.limits()
	o.ThinkLength = r.p.ThinkLength
	return o
}

// sampledLogProbs are a trajectory's recorded log-probs, one an action of its row.
func sampledLogProbs(p *align.Packed, t *trace.Trajectory) []float32 {
	all := make([]float32, len(p.Actions))
	for i, a := range p.Actions {
		all[i] = float32(math.NaN())
		if !a.Spurious() {
			all[i] = t.Calls[a.Call].LogProbs[a.Token]
		}
	}
	return all
}

// ofSampled keeps those of one value an action of a row that belong to sampled tokens.
func ofSampled[T any](p *align.Packed, values []T) []T {
	var kept []T
	for i, a := range p.Actions {
		if !a.Spurious() {
			kept = append(kept, values[i])
		}
	}
	return kept
}
