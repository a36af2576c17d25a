package audit

import (
	"fmt"
	"math"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

// nats shows an error.
func nats(v float64) results.Cell {
	if math.IsNaN(v) {
		return results.Cell{Text: "-"}
	}
	return results.Cell{Text: fmt.Sprintf("%.3g", v), Values: []any{Number(v)}}
}

// share shows a count with its share of all.
func share(n, of int) results.Cell {
	return results.Cell{Text: fmt.Sprintf("%d (%.2f%%)", n, 100*float64(n)/float64(max(1, of))), Values: []any{n}}
}

// column heads a column of numbers, or of words.
func column(head string, right bool) results.Column {
	return results.Column{Head: head, Right: right, Keys: []string{strings.ReplaceAll(head, " ", "_")}}
}

// Table shows every layout's figures, and below them the paper's where it has any.
func (r *Report) Table(audited []string) *results.Table {
	t := &results.Table{
		Title: fmt.Sprintf("RCE: %d trajectories, %d calls, %d sampled tokens; layouts in %s on %s, the truth (calls alone) in f32", len(r.Trajectories), r.Calls, r.Tokens, r.DType, r.Device),
		Columns: []results.Column{column("layout", false), column("role", false), column("tokens", true), column("p50", true), column("p99", true),
			column("max", true), column("flips", true), column("false clips", true), column("max dlogit", true), column("grad error", true),
			column("other states", true), column("pass", false)},
	}
	for _, l := range r.All() {
		t.Rows = append(t.Rows, r.line(l, audited))
	}
	t.Rows = append(t.Rows, publishedAudit()...)
	t.Notes = append(t.Notes, "pass: "+r.Rule()+".",
		fmt.Sprintf("p50, p99, max: |Δ log-prob| in nats; grad error: |g - true g| / |true g| of the PPO loss over %d trajectories; other states: tokens whose state differs structurally.", r.GradientTrajectories),
		"published: "+results.PublishedSource+", Qwen2.5-3B; its tokens and settings are not ours.")
	if r.Floor != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("floor: calls alone in %s against calls alone in f32. f32 certifies; %s shows what it does beside its floor.", r.DType, r.DType))
	}
	for _, l := range r.All() {
		if l.Pass && l.Role(audited) == roleControl {
			t.Notes = append(t.Notes, fmt.Sprintf("the control %s passes: these trajectories do not tell it from the truth.", l.Name))
		}
	}
	if n := len(r.Incomparable); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("recorded: the log-probs of %d trajectories are not compared; the first: %s, %s", n, r.Incomparable[0].ID, r.Incomparable[0].Reason))
	}
	if r.UnknownTemperature > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d trajectories do not say their temperature: 1 is taken.", r.UnknownTemperature))
	}
	if n := len(r.Rejected); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d trajectories were left out, the first: %s", n, r.Rejected[0].Reason))
	}
	return t
}

func (r *Report) line(l *LayoutReport, audited []string) []results.Cell {
	role := l.Role(audited)
	if l == r.Floor {
		role = "floor"
	}
	flips, states := share(l.Flips, l.Tokens), share(l.States, l.Tokens)
	if l == r.Recorded {
		flips, states = results.Cell{Text: "-"}, results.Cell{Text: "-"}
	}
	pass := "no"
	if l.Pass {
		pass = "yes"
	}
	domain := results.Text(l.Tokens)
	if l.Spurious > 0 || l.Missing > 0 {
		domain.Text = fmt.Sprintf("%d +%d -%d", l.Tokens, l.Spurious, l.Missing)
	}
	return []results.Cell{results.Text(l.Name), results.Text(role), domain, nats(l.P50), nats(l.P99), nats(l.Max),
		flips, share(l.FalseClips, l.Tokens), nats(l.MaxDLogit), nats(l.GradError), states, {Text: pass, Values: []any{l.Pass}}}
}

// publishedAudit are the paper's rows of tables T3 and T6.
func publishedAudit() [][]results.Cell {
	var rows [][]results.Cell
	for _, p := range []struct{ table, variant, layout string }{
		{"T3", "packed", "aligned"}, {"T3", "persistent", "persistent"}, {"T6", "positions_only", "positions"},
	} {
		row := make([]results.Cell, 12)
		for i := range row {
			row[i].Text = "-"
		}
		row[0], row[1] = results.Text(p.layout), results.Text("published "+p.table)
		for _, n := range results.PublishedNumbers() {
			at, known := map[string]int{"p99_logprob_error": 4, "top1_flips": 6, "false_ppo_clips": 7}[n.Metric]
			if n.Table == p.table && n.Variant == p.variant && known {
				row[at] = results.Cell{Text: fmt.Sprintf("%.4g", n.Value), Values: []any{n.Value}}
				if n.Unit == results.UnitPercent {
					row[at].Text += "%"
				}
			}
		}
		for _, n := range results.PublishedNumbers() {
			if n.Table == "T3" && n.Metric == "sampled_action_tokens" {
				row[2] = results.Text(n.Value)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// PartsTable shows the figures by call and before and after the first update.
func (r *Report) PartsTable() *results.Table {
	t := &results.Table{
		Title: "By call, and before and after the first memory update",
		Columns: []results.Column{column("layout", false), column("calls", false), column("tokens", true), column("p50", true), column("p99", true),
			column("max", true), column("flips", true), column("false clips", true), column("max dlogit", true), column("grad error", true)},
	}
	for _, l := range r.All() {
		line := func(name string, p Part) {
			if p.Tokens == 0 {
				return
			}
			t.Rows = append(t.Rows, []results.Cell{results.Text(l.Name), results.Text(name), results.Text(p.Tokens), nats(p.P50), nats(p.P99), nats(p.Max),
				share(p.Flips, p.Tokens), share(p.FalseClips, p.Tokens), nats(p.MaxDLogit), nats(p.GradError)})
		}
		line("before", l.Before)
		line("after", l.After)
		for _, p := range l.ByCall {
			line(fmt.Sprint(p.Call), p)
		}
	}
	return t
}
