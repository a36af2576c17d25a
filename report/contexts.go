package report

import (
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/results"
)

// contextFigure shows how long the context of each call is: by variant on the
// longest horizon of the sampled trajectories, and by context update from the audit.
func contextFigure(all []results.TrajectoryView, updates []results.UpdatesAudit, dir, reproduce string) Figure {
	f := Figure{Name: "context", Short: "Context", Title: "Context length by call",
		Caption: "Means over the trajectories that reach the call, task prefix included. Full history would grow with every call; a compact memory stays short."}
	if horizon := longest(all); horizon != "" {
		f.Panels = append(f.Panels, variantContexts(all, horizon))
	} else {
		f.Missing = append(f.Missing, Missing{"sampled trajectories (" + results.TrajectoriesFile + ")", reproduce})
	}
	for _, u := range updates {
		if p, ok := updateContexts(u); ok {
			f.Panels = append(f.Panels, p)
		}
	}
	if len(updates) == 0 {
		f.Missing = append(f.Missing, Missing{"context lengths by update (" + dir + "/audit/updates.q2.json)",
			"bench audit updates --certificate " + dir + "/audit/updates.q2.json"})
	}
	return f
}

// longest is the longest horizon of trajectories.
func longest(all []results.TrajectoryView) string {
	horizon := ""
	for _, t := range all {
		if joined(t.Horizon) && (horizon == "" || compareHorizons(t.Horizon, horizon) > 0) {
			horizon = t.Horizon
		}
	}
	return horizon
}

func variantContexts(all []results.TrajectoryView, horizon string) Panel {
	lengths, tasks := map[string][][]float64{}, map[string]bool{}
	for _, t := range all {
		if t.Horizon != horizon {
			continue
		}
		tasks[t.TaskID] = true
		for len(lengths[t.Variant]) < len(t.Calls) {
			lengths[t.Variant] = append(lengths[t.Variant], nil)
		}
		for k, c := range t.Calls {
			lengths[t.Variant][k] = append(lengths[t.Variant][k], float64(c.ContextTokens))
		}
	}
	p := Panel{Title: fmt.Sprintf("By variant, %s (tasks sampled: %d)", horizonName(horizon), len(tasks)), X: free("call"), Y: free("tokens").bounded(0, nan)}
	p.X.Whole = true
	var names []string
	for name := range lengths {
		names = append(names, name)
	}
	for i, name := range sortVariants(names) {
		s := Series{Name: name, Look: lookOf(name, i)}
		for k, list := range lengths[name] {
			pt := at(float64(k), results.Mean(list))
			pt.N = len(list)
			s.Points = append(s.Points, pt)
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func updateContexts(u results.UpdatesAudit) (Panel, bool) {
	p := Panel{Title: "By context update" + ofSet(u.Set), X: free("call"), Y: free("tokens").bounded(0, nan)}
	p.X.Whole = true
	for i, row := range u.Updates {
		s := Series{Name: row.Update, Look: lookOf("update "+row.Update, i)}
		for k, tokens := range row.ContextByCall {
			s.Points = append(s.Points, at(float64(k), tokens))
		}
		if len(s.Points) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	return p, len(p.Series) > 0
}

// ofSet names a set of trajectories in a title.
func ofSet(set string) string {
	if set == "" {
		return ""
	}
	return ", " + set
}

// positionFigure shows the error of each layout by call, a panel a certificate.
func positionFigure(audits []results.RCEAudit, dir string) Figure {
	f := Figure{Name: "position", Short: "States", Title: "Error of the training states by call",
		Caption: "99th percentile of the absolute difference in log-prob between a layout's row and an independent forward pass of the call, over the sampled tokens of all trajectories. " +
			"Aligned rows stay at the floor of float32; wrong states part from the rollout's as soon as something is dropped or marches on. Errors of 0 are drawn at the foot."}
	for _, a := range audits {
		p := Panel{Title: positionTitle(a), X: free("call"), Y: free("nats, log scale"), Rules: []Rule{{a.Tolerance, "tolerance of the certificate"}}}
		p.X.Whole, p.Y.Log = true, true
		for i, l := range a.Layouts {
			if l.Role == "truth" || l.Role == "recorded" || !slices.Contains(shownLayouts, l.Name) {
				continue
			}
			s := Series{Name: l.Name, Look: lookOf(l.Name, i)}
			for _, c := range l.ByCall {
				if c.P99 != nil {
					pt := at(float64(c.Call), max(*c.P99, floor))
					pt.N = c.Tokens
					s.Points = append(s.Points, pt)
				}
			}
			if len(s.Points) > 0 {
				p.Series = append(p.Series, s)
			}
		}
		if len(p.Series) > 0 {
			f.Panels = append(f.Panels, p)
		}
	}
	if len(f.Panels) == 0 {
		f.Missing = append(f.Missing, Missing{"certificates with controls (" + dir + "/audit/rce.q2.json)",
			"bench audit rce --horizon q2 --controls --certificate " + dir + "/audit/rce.q2.json"})
	}
	return f
}

// floor is where errors of 0 are drawn.
const floor = 1e-8

// shownLayouts are those that the picture of errors by call shows: the audited one and the
// controls that the paper names.
var shownLayouts = []string{"aligned", "persistent", "visibility", "positions", "both", "mem1"}

func positionTitle(a results.RCEAudit) string {
	verdict := "certified"
	if !a.Pass {
		verdict = "not certified"
	}
	return fmt.Sprintf("%s: %s tokens, %s", a.Set, thousands(fmt.Sprint(a.Tokens)), verdict)
}
