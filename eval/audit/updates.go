package audit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// UpdateReport is what the rollouts of one context update showed.
type UpdateReport struct {
	Update string // as trace.Trajectory.Agent has it
	RCE    *Report

	Calls         int       // that were made
	ContextMean   float64   // tokens that a call saw, the prefix included
	ContextMax    int       //
	ContextByCall []float64 // the mean of the calls with that index
	Stats         align.Stats

	EM, F1 float64 // means of the trajectories' scores; NaN where they have none
	Ends   map[trace.End]int
}

// updateLayout is the layout that a context update is judged by, updateControl the
// one that ignores it.
const (
	updateLayout  = "aligned"
	updateControl = "persistent"
)

// Update measures the trajectories of one context update: RCE of the layout
// "aligned", and of "persistent" as the control, which equals the calls where the
// update keeps everything. o.Layouts is set here.
func Update(ctx context.Context, name string, o Options) (*UpdateReport, error) {
	o.Layouts = nil
	for _, layout := range []string{updateLayout, updateControl} {
		l, err := align.LayoutNamed(layout)
		if err != nil {
			return nil, err
		}
		o.Layouts = append(o.Layouts, l)
	}
	r := &UpdateReport{Update: name, Ends: map[trace.End]int{}}
	for _, t := range o.Trajectories {
		if t.Agent != name {
			return nil, fmt.Errorf("trajectory %q was made by the context update %q, not %q", t.ID, t.Agent, name)
		}
	}
	r.count(o.Trajectories)
	var err error
	if r.RCE, err = RCE(ctx, o); err != nil {
		return nil, fmt.Errorf("context update %s: %w", name, err)
	}
	return r, nil
}

// count takes down what needs no model.
func (r *UpdateReport) count(trajectories []*trace.Trajectory) {
	var made []int // calls by index
	for _, t := range trajectories {
		r.Ends[t.End]++
		r.EM += scored(t, "em") / float64(len(trajectories))
		r.F1 += scored(t, "f1") / float64(len(trajectories))
		for k, c := range t.Calls {
			if k == len(made) {
				made, r.ContextByCall = append(made, 0), append(r.ContextByCall, 0)
			}
			made[k]++
			r.ContextByCall[k] += float64(len(c.Context))
			r.ContextMax = max(r.ContextMax, len(c.Context))
			r.ContextMean += float64(len(c.Context))
			r.Calls++
		}
		if p, err := align.Compile(t, align.Options{}); err == nil { // RCE says what is rejected
			r.Stats = r.Stats.Add(p.Stats())
		}
	}
	r.ContextMean /= float64(r.Calls)
	for k := range made {
		r.ContextByCall[k] /= float64(made[k])
	}
}

// scored is a trajectory's score, NaN without one.
func scored(t *trace.Trajectory, name string) float64 {
	if v, ok := t.Scores[name]; ok {
		return v
	}
	return math.NaN()
}

// paperUpdates are the paper's names (T4) of the kinds of updates.
var paperUpdates = map[string]string{
	"mem1": "full response retention", "full-response": "full response retention", "suffix": "suffix retention",
	"summary": "summary replacement", "window": "sliding window", "refresh": "retrieval refresh",
}

// PaperName is the paper's name of an update, "" where it names none.
func (r *UpdateReport) PaperName() string {
	kind, _, _ := strings.Cut(r.Update, ":")
	return paperUpdates[kind]
}

// Verdict is nil when the layout passes, else an error that says why not.
func (r *UpdateReport) Verdict() error {
	if err := r.RCE.Verdict([]string{updateLayout}); err != nil {
		return fmt.Errorf("context update %s: %w", r.Update, err)
	}
	return nil
}

// UpdateRow is a line of bench audit updates --json. A figure that was not measured
// is null. Those that begin with persistent are the control's.
type UpdateRow struct {
	Update         string            `json:"update"`
	Paper          string            `json:"paper"`        // the paper's name, "" for none
	Trajectories   int               `json:"trajectories"` // compared; those that no layout takes are left out
	Calls          int               `json:"calls"`
	Tokens         int               `json:"tokens"` // sampled
	ContextMean    Number            `json:"context_mean"`
	ContextMax     int               `json:"context_max"`
	ContextByCall  []float64         `json:"context_by_call"`
	StoredTokens   int               `json:"stored_tokens"`   // packed
	SeparateTokens int               `json:"separate_tokens"` // one row a call
	P50            Number            `json:"p50"`
	P99            Number            `json:"p99"`
	Max            Number            `json:"max"`
	Flips          int               `json:"flips"`
	FalseClips     int               `json:"false_clips"`
	MaxDLogit      Number            `json:"max_dlogit"`
	GradError      Number            `json:"grad_error"`
	ControlP99     Number            `json:"persistent_p99"`
	ControlFlips   int               `json:"persistent_flips"`
	EM             Number            `json:"em"`
	F1             Number            `json:"f1"`
	Ends           map[trace.End]int `json:"ends"`
	Pass           bool              `json:"pass"`
	Reasons        []string          `json:"reasons,omitempty"` // why not
}

// Row is the update's line.
func (r *UpdateReport) Row() UpdateRow {
	l, control := r.RCE.Named(updateLayout), r.RCE.Named(updateControl)
	return UpdateRow{
		Update: r.Update, Paper: r.PaperName(), Trajectories: len(r.RCE.Trajectories), Calls: r.Calls, Tokens: l.Tokens,
		ContextMean: Number(r.ContextMean), ContextMax: r.ContextMax, ContextByCall: r.ContextByCall,
		StoredTokens: r.Stats.StoredTokens, SeparateTokens: r.Stats.SeparateTokens,
		P50: Number(l.P50), P99: Number(l.P99), Max: Number(l.Max), Flips: l.Flips, FalseClips: l.FalseClips,
		MaxDLogit: Number(l.MaxDLogit), GradError: Number(l.GradError),
		ControlP99: Number(control.P99), ControlFlips: control.Flips,
		EM: Number(r.EM), F1: Number(r.F1), Ends: r.Ends, Pass: l.Pass, Reasons: l.Reasons,
	}
}

// UpdatesTable shows a line an update.
func UpdatesTable(reports []*UpdateReport) *results.Table {
	t := &results.Table{
		Title: "RCE by context update: the compiled sequence against each call alone, in f32",
		Columns: []results.Column{
			column("update", false), column("in the paper", false), column("calls", true), column("tokens", true),
			column("context", true), column("longest", true), column("stored", true), column("separate", true),
			column("p50", true), column("p99", true), column("max", true), column("flips", true), column("max dlogit", true), column("grad error", true),
			column("persistent p99", true), column("flips there", true), column("EM", true), column("F1", true), column("pass", false),
		},
	}
	for _, r := range reports {
		t.Rows = append(t.Rows, r.line())
	}
	if len(reports) == 0 {
		return t
	}
	t.Notes = append(t.Notes,
		"pass: "+reports[0].RCE.Rule()+".",
		"context: mean tokens a call saw, the prefix included; stored: tokens of the compiled sequences; separate: of one row a call.",
		"persistent: the flattened history, the control; it is the calls themselves where everything is kept.",
		"published: all five updates of T4 pass at the floor ("+results.PublishedSource+"; what we take each for is our choice, see agent's Update).",
	)
	for _, r := range reports {
		note := r.Update + ": " + ends(r.Ends)
		if n := len(r.RCE.Rejected); n > 0 {
			note += fmt.Sprintf("; %d left out, the first: %s", n, r.RCE.Rejected[0].Reason)
		}
		t.Notes = append(t.Notes, note)
	}
	return t
}

// ends says how trajectories ended.
func ends(counts map[trace.End]int) string {
	var parts []string
	for _, end := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[end], end))
	}
	return strings.Join(parts, ", ")
}

func (r *UpdateReport) line() []results.Cell {
	row := r.Row()
	paper, pass := row.Paper, "no"
	if paper == "" {
		paper = "-"
	}
	if row.Pass {
		pass = "yes"
	}
	fixed := func(v float64, format string) results.Cell {
		if math.IsNaN(v) {
			return results.Cell{Text: "-"}
		}
		return results.Cell{Text: fmt.Sprintf(format, v), Values: []any{Number(v)}}
	}
	return []results.Cell{
		results.Text(row.Update), results.Text(paper), results.Text(row.Calls), results.Text(row.Tokens),
		fixed(r.ContextMean, "%.1f"), results.Text(row.ContextMax), results.Text(row.StoredTokens), results.Text(row.SeparateTokens),
		nats(float64(row.P50)), nats(float64(row.P99)), nats(float64(row.Max)), results.Text(row.Flips), nats(float64(row.MaxDLogit)), nats(float64(row.GradError)),
		nats(float64(row.ControlP99)), results.Text(row.ControlFlips), fixed(r.EM, "%.3f"), fixed(r.F1, "%.3f"), {Text: pass, Values: []any{row.Pass}},
	}
}
