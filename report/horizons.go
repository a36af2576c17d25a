package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

// baseline is the variant that others are compared with.
const baseline = "ppo"

// horizonFigure shows the tests' outcome by horizon and variant.
func horizonFigure(summaries []results.Summary, evaluate string) Figure {
	f := Figure{Name: "horizons", Short: "Horizons", Title: "Test outcome by horizon"}
	if len(summaries) == 0 {
		f.Missing = append(f.Missing, Missing{"evaluations of the trained models (records.jsonl, tasks.jsonl.gz)", evaluate})
		return f
	}
	f.Caption = horizonCaption(summaries)
	horizons, variants := horizonsOf(summaries)
	for _, m := range []struct {
		key, title string
		y          Axis
	}{
		{"f1", "F1", free("mean over a task's questions").bounded(0, 1)},
		{"", "Change of F1 against " + baseline, free("%")},
		{"peak_context", "Peak context", free("tokens").bounded(0, math.NaN())},
		{"inference_seconds", "Inference time", free("seconds a task").bounded(0, math.NaN())},
	} {
		p := Panel{Title: m.title, X: free("horizon"), Y: m.y}
		for _, h := range horizons {
			p.X.Names = append(p.X.Names, horizonName(h))
		}
		if m.key == "" {
			p.Rules = append(p.Rules, Rule{0, ""})
			p.changes(summaries, horizons, variants)
		} else {
			p.levels(m.key, summaries, horizons, variants)
		}
		if len(p.Series) > 0 {
			f.Panels = append(f.Panels, p)
		}
	}
	if len(f.Panels) < 4 {
		f.Missing = append(f.Missing, Missing{"inference times, or a baseline to compare with", evaluate})
	}
	return f
}

func horizonCaption(summaries []results.Summary) string {
	var tasks []string
	done := map[string]bool{}
	for _, s := range summaries {
		if !done[s.Horizon] {
			done[s.Horizon] = true
			tasks = append(tasks, fmt.Sprintf("%d on %s", s.Tasks, horizonName(s.Horizon)))
		}
	}
	return "Whiskers: " + overOf(summaries) + " Tasks: " + strings.Join(tasks, ", ") +
		". Hollow marks are published numbers (" + results.PublishedSource + "; Qwen2.5-3B on real questions), never ours."
}

// horizonsOf lists horizons, short ones first, and variants in their order.
func horizonsOf(summaries []results.Summary) (horizons, variants []string) {
	for _, s := range summaries {
		if !slices.Contains(horizons, s.Horizon) {
			horizons = append(horizons, s.Horizon)
		}
		if !slices.Contains(variants, s.Variant) {
			variants = append(variants, s.Variant)
		}
	}
	slices.SortFunc(horizons, compareHorizons)
	return horizons, sortVariants(variants)
}

// beside is the shift of the i-th of n marks around a place, so that whiskers stand
// side by side.
func beside(i, n int) float64 { return (float64(i) - float64(n-1)/2) * .09 }

// joined tells whether a horizon is one of the questions' numbers.
func joined(h string) bool { return strings.HasPrefix(h, "q") }

// levels adds a metric's means, a series a variant.
func (p *Panel) levels(key string, summaries []results.Summary, horizons, variants []string) {
	for i, v := range variants {
		s := Series{Name: v, Look: lookOf(v, i), Dots: true}
		for x, h := range horizons {
			sum := summaryOf(summaries, v, h)
			if sum == nil {
				continue
			}
			if interval, ok := sum.Means[key]; ok {
				s.Points = append(s.Points, Point{X: float64(x) + beside(i, len(variants)), Y: interval.Mean, Low: interval.Low, High: interval.High, N: sum.Seeds, Gap: !joined(h)})
			}
		}
		if len(s.Points) > 0 {
			p.Series = append(p.Series, s)
		}
	}
}

// changes adds each variant's change against the baseline, and the published ones.
func (p *Panel) changes(summaries []results.Summary, horizons, variants []string) {
	for i, v := range variants {
		s := Series{Name: v, Look: lookOf(v, i), Dots: true}
		for x, h := range horizons {
			sum := summaryOf(summaries, v, h)
			if sum == nil {
				continue
			}
			if c := changeOf(sum, "f1"); c != nil {
				pt := at(float64(x)+beside(i, len(variants)), c.Mean)
				if !math.IsInf(c.High, 0) && !math.IsInf(c.Low, 0) {
					pt.Low, pt.High = c.Low, c.High
				}
				pt.N, pt.Gap = sum.Seeds, !joined(h)
				s.Points = append(s.Points, pt)
			}
		}
		if len(s.Points) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	if len(p.Series) == 0 {
		return
	}
	published := Series{Name: "memopd, published", Look: looks["published"], Dots: true, Hollow: true}
	published.Look.Dash = []float64{2, 3}
	for x, h := range horizons {
		for _, n := range results.PublishedNumbers() {
			if (n.Table == "T1" || n.Table == "T2") && n.Unit == results.UnitChange && n.Metric == "f1" && n.Variant == "memopd" && sameHorizon(n.Horizon, h) {
				pt := at(float64(x)+beside(len(variants), len(variants)), n.Value)
				pt.Gap = !joined(h)
				published.Points = append(published.Points, pt)
			}
		}
	}
	if len(published.Points) > 0 {
		p.Series = append(p.Series, published)
	}
}

// changeOf is a summary's change of a metric against the baseline in percent, nil
// where there is none.
func changeOf(s *results.Summary, key string) *results.Interval {
	if s.Against == nil {
		return nil
	}
	return s.Against.Changes[key].Percent
}

// overOf says in words what intervals are taken over.
func overOf(summaries []results.Summary) string {
	seeds, tasks := false, false
	for _, s := range summaries {
		seeds, tasks = seeds || s.Over == results.OverSeeds, tasks || s.Over == results.OverTasks
	}
	switch {
	case seeds && tasks:
		return "95 % intervals by Student's t over seeds (changes: paired by seed), where there is one seed bootstrap over tasks."
	case seeds:
		return "95 % intervals by Student's t over seeds (changes: paired by seed)."
	}
	return "95 % intervals by bootstrap over the tasks of one seed (changes: paired by task)."
}

func sameHorizon(a, b string) bool {
	return strings.ReplaceAll(a, "-", "") == strings.ReplaceAll(b, "-", "")
}

func summaryOf(summaries []results.Summary, variant, horizon string) *results.Summary {
	for i := range summaries {
		if summaries[i].Variant == variant && summaries[i].Horizon == horizon {
			return &summaries[i]
		}
	}
	return nil
}
