package results

import (
	"fmt"
	"slices"
)

// t4 holds every context update to the calls.
func (p paper) t4() (PaperTable, error) {
	const title = "T4: context updates"
	t := &Table{Title: title, Columns: slices.Concat(words("set", "update", "in the paper"),
		figures("trajectories", "calls", "tokens", "context", "longest", "p99", "max"), counted("flips", "false clips"),
		figures("persistent p99"), counted("persistent flips"), figures("F1"), words("pass"))}
	for _, a := range p.Audits.Updates {
		for _, u := range a.Updates {
			paper := dash
			if u.Paper != "" {
				paper = Text(u.Paper)
			}
			t.Rows = append(t.Rows, []Cell{Text(a.Set), Text(u.Update), paper, Text(u.Trajectories), Text(u.Calls), Text(u.Tokens),
				digits(u.ContextMean), Text(u.ContextMax), digits(u.P99), digits(u.Max), share(&u.Flips, u.Tokens), share(&u.FalseClips, u.Tokens),
				digits(u.PersistentP99), share(&u.PersistentFlips, u.Tokens), digits(u.F1), verdict(u.Pass)})
		}
		if rule := "pass: " + a.Rule + "."; !slices.Contains(t.Notes, rule) {
			t.Notes = append(t.Notes, rule)
		}
	}
	if len(t.Rows) == 0 {
		return without("t4", title, "audit/ holds no updates.*.json"), nil
	}
	t.Notes = append(t.Notes, "p99, max: |Δ log-prob| in nats of the compiled sequence against each call alone; persistent: the same of the flattened history; context: mean tokens a call saw.",
		"published: all five updates of the paper pass at the floor ("+PublishedSource+", table T4, without numbers); what each is taken for is this project's choice.")
	return PaperTable{"t4", []*Table{t}}, nil
}

// t7 counts the positions that wrong action masks add.
func (p paper) t7() (PaperTable, error) {
	const title = "T7: action masks"
	var losses []string
	for _, a := range p.Audits.Masks {
		for _, m := range a.Masks {
			for _, g := range m.Gradients {
				if !slices.Contains(losses, g.Loss) {
					losses = append(losses, g.Loss)
				}
			}
		}
	}
	t := &Table{Title: title, Columns: slices.Concat(words("set", "mask", "source"), figures("positions", "spurious", "copies", "spurious per sampled"))}
	for _, loss := range losses {
		t.Columns = append(t.Columns, figures(loss+" norm", loss+" cosine")...)
	}
	for _, a := range p.Audits.Masks {
		for _, m := range a.Masks {
			t.Rows = append(t.Rows, maskRow(a.Set, m, losses))
		}
	}
	if len(t.Rows) == 0 {
		return without("t7", title, "audit/ holds no masks.*.json"), nil
	}
	exact := 0.0
	for _, m := range [][2]string{{"aligned", "action_mask"}, {"trajectory-mask", "trajectory_mask"}, {"response-mask", "response_mask"}} {
		row := publishedRow(t.Columns, []Cell{Text("paper"), Text(m[0]), Text("published T7")}, "T7", m[1],
			map[string]string{"positions": "positions", "spurious_positions": "spurious"})
		if positions, ok := first(row[3]); ok {
			exact = positions
		}
		if spurious, ok := first(row[4]); ok && exact > 0 {
			per := spurious / exact
			row[6] = digits(&per)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{"spurious: positions that were not sampled; copies: those of them that are context copies of sampled tokens.",
		"norm, cosine: of a loss's gradient over the mask's positions, against that over the sampled tokens alone.",
		"spurious per sampled, published: of the paper's counts.", publishedNote("T7")}
	return PaperTable{"t7", []*Table{t}}, nil
}

func maskRow(set string, m MaskAudit, losses []string) []Cell {
	per := float64(m.Spurious) / float64(max(1, m.Positions-m.Spurious))
	row := []Cell{Text(set), Text(m.Name), Text("measured"), Text(m.Positions), Text(m.Spurious), Text(m.Copies), digits(&per)}
	for _, loss := range losses {
		at := slices.IndexFunc(m.Gradients, func(g MaskGradient) bool { return g.Loss == loss })
		if at < 0 {
			row = append(row, dash, dash)
			continue
		}
		row = append(row, digits(m.Gradients[at].Relative), digits(m.Gradients[at].Cosine))
	}
	return row
}

// t8 times an actor update.
func (p paper) t8() (PaperTable, error) {
	const title = "T8: actor update, packed against one row a call"
	seconds := func(way string) Column { return Column{way + " s", true, []string{way + "_s"}} }
	t := &Table{Title: title, Columns: slices.Concat(words("set", "model", "libtorch", "source"), figures("threads"), words("shape"), figures("prefix", "calls", "call tokens"),
		[]Column{seconds("rows"), seconds("concat"), seconds("dense"), seconds("packed")}, figures("ratio", "ideal"))}
	for _, a := range p.Audits.Speed {
		set := dash
		if a.Set != "" {
			set = Text(a.Set)
		}
		for _, r := range a.Rows {
			row := []Cell{set, Text(a.Model), Text(a.Libtorch), Text("measured"), Text(a.Threads), Text(a.Config.Shape), Text(r.Prefix), Text(r.Calls), Text(r.CallTokens),
				digits(&r.Rows), digits(&r.Concat), digits(&r.Dense), digits(&r.Packed)}
			for _, x := range []float64{r.Ratio, r.Ideal} {
				row = append(row, Cell{fmt.Sprintf("%.2fx", x), stats(x)})
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 0 {
		return without("t8", title, "audit/ holds no speed.json"), nil
	}
	row := publishedRow(t.Columns, []Cell{Text("paper"), dash, dash, Text("published T8")}, "T8", "packed", map[string]string{"actor_update_speedup": "ratio"})
	row[len(row)-2].Text = "at best " + row[len(row)-2].Text + "x"
	t.Rows = append(t.Rows, row)
	t.Notes = []string{"s: processor seconds of forward, loss on the sampled tokens and backward, medians of rounds; rows: one row a call, padded; concat: those end to end; dense: packed under a mask of the whole square; packed: packed, attention in blocks.",
		"ratio: rows over packed; ideal: by the FLOPs of the matrix products.", publishedNote("T8")}
	return PaperTable{"t8", []*Table{t}}, nil
}
