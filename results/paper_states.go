package results

import "slices"

// The names of the paper's numbers in columns' heads.
var stateMetrics = map[string]string{
	"p99_logprob_error": "p99", "top1_flips": "flips", "false_ppo_clips": "false clips",
	"trajectories": "trajectories", "calls": "calls", "sampled_action_tokens": "tokens",
}

const stateNote = "p50, p99, max: |Δ log-prob| of the sampled token in nats, against each call alone; flips: another most probable id; " +
	"false clips: ratios that PPO would clip though no weight has changed; grad error: relative error of the PPO loss's gradient; other states: tokens whose state differs."

// stateTable shows some layouts of every certificate.
func (p paper) stateTable(title string, keep func(LayoutAudit) bool) *Table {
	t := &Table{Title: title, Columns: slices.Concat(words("set", "dtype", "layout", "role", "source"), figures("trajectories", "calls", "tokens", "p50", "p99", "max"),
		counted("flips", "false clips"), figures("grad error"), counted("other states"), words("pass"))}
	for _, r := range p.Audits.RCE {
		for _, l := range r.Layouts {
			if !keep(l) {
				continue
			}
			states := share(&l.States, l.Tokens)
			if l.Role == "recorded" {
				states = dash
			}
			t.Rows = append(t.Rows, []Cell{Text(r.Set), Text(r.DType), Text(l.Name), Text(l.Role), Text("measured"), Text(r.Trajectories), Text(r.Calls), Text(l.Tokens),
				digits(l.P50), digits(l.P99), digits(l.Max), share(l.Flips, l.Tokens), share(&l.FalseClips, l.Tokens), digits(l.GradError), states, verdict(l.Pass)})
		}
		if rule := "pass: " + r.Rule + "."; !slices.Contains(t.Notes, rule) {
			t.Notes = append(t.Notes, rule)
		}
	}
	t.Notes = append(t.Notes, stateNote)
	return t
}

// t3 audits the packed sequence and the flattened history; the layouts of T6 and
// T7 are left to those.
func (p paper) t3() (PaperTable, error) {
	const title = "T3: audit of states"
	t := p.stateTable(title, func(l LayoutAudit) bool { return l.Role != "control" || l.Name == "persistent" })
	if len(t.Rows) == 0 {
		return without("t3", title, "audit/ holds no rce.*.json"), nil
	}
	for _, l := range [][2]string{{"aligned", "packed"}, {"persistent", "persistent"}} {
		row := publishedRow(t.Columns, []Cell{Text("paper"), dash, Text(l[0]), dash, Text("published T3")}, "T3", l[1], stateMetrics)
		all := publishedRow(t.Columns, nil, "T3", "", stateMetrics) // of both
		copy(row[5:8], all[5:8])
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, publishedNote("T3"))
	return PaperTable{"t3", []*Table{t}}, nil
}

// t6 breaks one part of the state at a time.
func (p paper) t6() (PaperTable, error) {
	const title = "T6: corruptions of the state"
	t := p.stateTable(title, func(l LayoutAudit) bool { return l.Role == "control" && l.Name != "persistent" && l.Spurious == 0 })
	if len(t.Rows) == 0 {
		return without("t6", title, "no rce.*.json in audit/ has the controls visibility, positions, both"), nil
	}
	t.Rows = append(t.Rows, publishedRow(t.Columns, []Cell{Text("paper"), dash, Text("positions"), dash, Text("published T6")}, "T6", "positions_only", stateMetrics))
	t.Notes = append(t.Notes, "visibility, positions: that part alone is the flat transcript's; mem1: mask and positions of MEM1's public training code.", publishedNote("T6"))
	return PaperTable{"t6", []*Table{t}}, nil
}

// t3b audits the teacher in the flattened history.
func (p paper) t3b() (PaperTable, error) {
	const title = "T3b: the teacher in the flattened history against the aligned state"
	t := &Table{Title: title, Columns: slices.Concat(words("set", "calls", "source"), figures("tokens"),
		[]Column{{"top-1 agreement", true, []string{"top1_agreement_percent"}}}, figures("p50", "p99", "max", "mean KL", "flips"))}
	for _, a := range p.Audits.Teacher {
		for _, r := range a.Parts {
			agreement := dash
			if r.Agreement != nil {
				percent := 100 * *r.Agreement
				agreement = Cell{decimal(percent, 2) + "%", stats(percent)}
			}
			t.Rows = append(t.Rows, []Cell{Text(a.Set), Text(r.Calls), Text("measured"), Text(r.Tokens), agreement,
				digits(r.P50), digits(r.P99), digits(r.Max), digits(r.MeanKL), Text(r.Flips)})
		}
	}
	if len(t.Rows) == 0 {
		return without("t3b", title, "audit/ holds no teacher.*.json"), nil
	}
	t.Rows = append(t.Rows, publishedRow(t.Columns, []Cell{Text("paper"), Text("after"), Text("published T3b")}, "T3b", "persistent", map[string]string{
		"top1_agreement_later_calls": "top-1 agreement", "p99_logprob_difference": "p99", "mean_kl": "mean KL", "top1_flips": "flips",
	}))
	t.Notes = []string{"before, after: the first memory update (call 0, later calls). p50, p99, max: |Δ log-prob| of the sampled token; mean KL: KL(aligned || persistent) over the vocabulary; all in nats.",
		"The paper reports exact agreement before the first update.", publishedNote("T3b")}
	return PaperTable{"t3b", []*Table{t}}, nil
}
