package report

import (
	"cmp"
	"slices"

	"github.com/memopd/memopd-bench/results"
)

// browserMost is how much text the browser of trajectories holds, in bytes; what
// is beyond it is left out, from the longest horizon.
const browserMost = 3 << 20

// browserData is what the script reads. Texts stand once: a part of a context that
// is a whole response or observation names its call alone.
type browserData struct {
	Variants     []string      `json:"variants"`
	Horizons     []string      `json:"horizons"`
	Outcomes     []string      `json:"outcomes"`
	Trajectories []browserItem `json:"trajectories"`
	LeftOut      int           `json:"-"` // trajectories
}

type browserItem struct {
	*results.TrajectoryView
	Outcome string        `json:"outcome"`
	Calls   []browserCall `json:"calls"`
}

type browserCall struct {
	*results.CallView
	Context []browserPart `json:"context"`
	Dropped []browserPart `json:"dropped,omitempty"`
}

// browserPart is a context part; Text is null where it is the whole of what FromCall
// wrote or was answered.
type browserPart struct {
	Origin   string  `json:"origin"`
	FromCall int     `json:"from_call"`
	Offset   int     `json:"offset,omitempty"`
	Tokens   int     `json:"tokens"`
	Text     *string `json:"text,omitempty"`
}

// The outcomes of a trajectory, as the browser filters them.
var outcomes = []string{"all right", "in part", "wrong", "no answer"}

// outcomeOf sorts a trajectory into outcomes.
func outcomeOf(t *results.TrajectoryView) string {
	switch {
	case t.End != "answered":
		return outcomes[3]
	case t.EM == 1:
		return outcomes[0]
	case t.F1 > 0:
		return outcomes[1]
	}
	return outcomes[2]
}

// newBrowserData puts a task's trajectories side by side. It is nil without any.
func newBrowserData(all []results.TrajectoryView) *browserData {
	if len(all) == 0 {
		return nil
	}
	d := &browserData{}
	size := 0
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b results.TrajectoryView) int {
		return cmp.Or(compareHorizons(a.Horizon, b.Horizon), cmp.Compare(a.TaskID, b.TaskID), compareVariants(a.Variant, b.Variant), cmp.Compare(a.Seed, b.Seed))
	})
	for i := range sorted {
		t := &sorted[i]
		item := browserItem{TrajectoryView: t, Outcome: outcomeOf(t)}
		n := len(t.Prefix.Text)
		for k := range t.Calls {
			c := &t.Calls[k]
			item.Calls = append(item.Calls, browserCall{c, partsOf(t, c.Context), partsOf(t, c.Dropped)})
			n += len(c.Response.Text) + len(c.Observation.Text) + 400
		}
		if size+n > browserMost {
			d.LeftOut = len(all) - i
			break
		}
		size += n
		d.Trajectories = append(d.Trajectories, item)
		add := func(list *[]string, s string) {
			if !slices.Contains(*list, s) {
				*list = append(*list, s)
			}
		}
		add(&d.Variants, t.Variant)
		add(&d.Horizons, t.Horizon)
		add(&d.Outcomes, item.Outcome)
	}
	sortVariants(d.Variants)
	slices.SortFunc(d.Horizons, compareHorizons)
	slices.SortFunc(d.Outcomes, func(a, b string) int { return slices.Index(outcomes, a) - slices.Index(outcomes, b) })
	return d
}

// partsOf takes out the texts that stand elsewhere in the trajectory.
func partsOf(t *results.TrajectoryView, parts []results.ContextPart) []browserPart {
	list := make([]browserPart, 0, len(parts))
	for i := range parts {
		p := &parts[i]
		b := browserPart{p.Origin, p.FromCall, p.Offset, p.Tokens, &p.Text}
		if p.FromCall >= 0 && p.FromCall < len(t.Calls) {
			source := t.Calls[p.FromCall].Response
			if p.Origin == "observation" {
				source = t.Calls[p.FromCall].Observation
			}
			if source == p.ViewText {
				b.Text = nil
			}
		}
		list = append(list, b)
	}
	return list
}
