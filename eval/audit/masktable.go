package audit

import (
	"fmt"

	"github.com/memopd/memopd-bench/results"
)

// MaskRow is a line of bench audit masks --json.
type MaskRow struct {
	Name      string            `json:"name"`
	Positions int               `json:"positions"`
	Spurious  int               `json:"spurious"`
	Copies    int               `json:"copies"`
	Gradients []MaskRowGradient `json:"gradients"`
}

// MaskRowGradient is a MaskGradient; what is not finite is null.
type MaskRowGradient struct {
	Loss     string `json:"loss"`
	Norm     Number `json:"norm"`
	Relative Number `json:"relative"`
	Cosine   Number `json:"cosine"`
}

// Rows lists the report's lines.
func (r *MaskReport) Rows() []MaskRow {
	var rows []MaskRow
	for _, d := range r.Domains {
		row := MaskRow{Name: d.Name, Positions: d.Positions, Spurious: d.Spurious, Copies: d.Copies, Gradients: []MaskRowGradient{}}
		for _, g := range d.Gradients {
			row.Gradients = append(row.Gradients, MaskRowGradient{g.Loss, Number(g.Norm), Number(g.Relative), Number(g.Cosine)})
		}
		rows = append(rows, row)
	}
	return rows
}

// Table shows the domains, and the paper's sizes below them.
func (r *MaskReport) Table() *results.Table {
	t := &results.Table{
		Title: fmt.Sprintf("Action domains: %d trajectories; gradients over %d", r.Trajectories, r.GradientTrajectories),
		Columns: []results.Column{column("domain", false), column("positions", true), column("spurious", true),
			column("of them copies", true), column("per sampled token", true)},
		Notes: []string{
			"spurious: positions that were not sampled; copies: those of them that are context copies of sampled tokens.",
			"|g|: norm of the gradient of a loss, a mean over the domain's positions, over that of the exact domain; cos: cosine with the exact domain's gradient.",
			"A spurious position has the model's own log-prob as the old one, and its call's advantage (one a call, drawn), as where a trainer broadcasts it.",
			"published: " + results.PublishedSource + ", table T7.",
		},
	}
	for _, loss := range r.Losses {
		t.Columns = append(t.Columns, column(loss+" |g|", true), column(loss+" cos", true))
	}
	for _, d := range r.Domains {
		per := float64(d.Spurious) / float64(max(1, d.Positions-d.Spurious))
		row := []results.Cell{results.Text(d.Name), results.Text(d.Positions), results.Text(d.Spurious), results.Text(d.Copies), nats(per)}
		for i := range r.Losses {
			if i >= len(d.Gradients) {
				row = append(row, results.Cell{Text: "-"}, results.Cell{Text: "-"})
				continue
			}
			g := d.Gradients[i]
			row = append(row, results.Cell{Text: fmt.Sprintf("%.3f", g.Relative), Values: []any{Number(g.Relative)}},
				results.Cell{Text: fmt.Sprintf("%.3f", g.Cosine), Values: []any{Number(g.Cosine)}})
		}
		t.Rows = append(t.Rows, row)
	}
	t.Rows = append(t.Rows, publishedMasks(len(t.Columns))...)
	if n := len(r.Rejected); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d trajectories were left out, the first: %s", n, r.Rejected[0].Reason))
	}
	return t
}

// publishedMasks are the paper's rows of table T7.
func publishedMasks(columns int) [][]results.Cell {
	exact := 0.0
	for _, n := range results.PublishedNumbers() {
		if n.Table == "T7" && n.Variant == "action_mask" {
			exact = n.Value
		}
	}
	var rows [][]results.Cell
	for _, n := range results.PublishedNumbers() {
		if n.Table != "T7" {
			continue
		}
		row := make([]results.Cell, columns)
		for i := range row {
			row[i].Text = "-"
		}
		spurious := 0.0
		if n.Metric == "spurious_positions" {
			spurious = n.Value
		}
		row[0], row[1], row[2] = results.Text(n.Variant+", published"), results.Text(exact+spurious), results.Text(spurious)
		row[4] = nats(spurious / exact)
		rows = append(rows, row)
	}
	return rows
}
