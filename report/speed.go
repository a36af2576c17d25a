package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

var nan = math.NaN()

// speedFigure shows the packed update beside one row a call, over the prefix's share
// and the number of calls.
func speedFigure(audits []results.SpeedAudit, dir string) Figure {
	f := Figure{Name: "speed", Short: "Speed", Title: "Packed actor update beside one row a call",
		Caption: "How many times as fast the packed update is, by processor seconds (medians of rounds in turns). Hollow: what the FLOPs of the matrix products allow. A number behind the name is libtorch's version. The dotted line is published (" +
			results.PublishedSource + ", T8), never ours."}
	if len(audits) == 0 {
		f.Missing = append(f.Missing, Missing{"speeds of updates (" + dir + "/audit/speed.json)",
			"bench audit speed --prefix 100,400,1000 --calls 2,4,8 --out " + dir + "/audit/speed"})
		return f
	}
	var published []Rule
	for _, n := range results.PublishedNumbers() {
		if n.Metric == "actor_update_speedup" {
			published = append(published, Rule{n.Value, fmt.Sprintf("published: at best %gx", n.Value)})
		}
	}
	share := func(r results.SpeedRow) float64 {
		return math.Round(100 * float64(r.Prefix) / float64(r.Prefix+r.CallTokens))
	}
	calls := func(r results.SpeedRow) float64 { return float64(r.Calls) }
	byShare := Panel{Title: "By the prefix's share of a call", X: free("prefix tokens in % of prefix and call"), Y: free("times as fast").bounded(0, nan), Rules: published}
	byShare.Series = speedSeries(audits, share, func(r results.SpeedRow) string { return fmt.Sprintf("%d calls", r.Calls) })
	byCalls := Panel{Title: "By the number of calls", X: free("calls of a trajectory"), Y: free("times as fast").bounded(0, nan), Rules: published}
	byCalls.X.Whole = true
	byCalls.Series = speedSeries(audits, calls, func(r results.SpeedRow) string { return fmt.Sprintf("prefix %g %%", share(r)) })
	f.Panels = append(f.Panels, byShare)
	if places(byCalls.Series) > 1 {
		f.Panels = append(f.Panels, byCalls)
	} else {
		f.Missing = append(f.Missing, Missing{"speeds at several numbers of calls",
			"bench audit speed --prefix 100,400,1000 --calls 2,4,8 --out " + dir + "/audit/speed"})
	}
	return f
}

// places counts the different X of series.
func places(all []Series) int {
	seen := map[float64]bool{}
	for _, s := range all {
		for _, p := range s.Points {
			seen[p.X] = true
		}
	}
	return len(seen)
}

// speedSeries makes two series a group: measured, and ideal.
func speedSeries(audits []results.SpeedAudit, x func(results.SpeedRow) float64, group func(results.SpeedRow) string) []Series {
	var names []string
	versions := map[string]map[string]bool{} // of libtorch, by name without it
	named := func(a results.SpeedAudit, r results.SpeedRow) string {
		name := group(r)
		if a.Config.Shape != "memory" {
			name += ", " + a.Config.Shape
		}
		return name
	}
	for _, a := range audits {
		for _, r := range a.Rows {
			name := named(a, r)
			if versions[name] == nil {
				versions[name] = map[string]bool{}
			}
			versions[name][a.Libtorch] = true
		}
	}
	measured, ideal := map[string][]Point{}, map[string][]Point{}
	for _, a := range audits {
		for _, r := range a.Rows {
			name := named(a, r)
			if len(versions[name]) > 1 {
				libtorch, _, _ := strings.Cut(a.Libtorch, ",")
				name += ", " + libtorch
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			measured[name], ideal[name] = append(measured[name], at(x(r), r.Ratio)), append(ideal[name], at(x(r), r.Ideal))
		}
	}
	var list []Series
	for i, name := range names {
		look := lookOf("speed", i)
		byX := func(a, b Point) int { return int(math.Copysign(1, a.X-b.X)) }
		slices.SortStableFunc(measured[name], byX)
		slices.SortStableFunc(ideal[name], byX)
		look.Mark = Mark(i % 6)
		faint := look
		faint.Dash = []float64{1.5, 3}
		list = append(list, Series{Name: name, Look: look, Points: measured[name], Dots: true},
			Series{Name: name + " ideal", Look: faint, Points: ideal[name], Dots: true, Hollow: true, Quiet: true})
	}
	return list
}
