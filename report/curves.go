package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

const stepKey = "training/global_step"

// pointsMost is how many points a line has; more steps are averaged.
const pointsMost = 50

// devFigure shows the F1 on dev tasks over the steps, a panel a horizon.
func devFigure(curves []results.Curve, reproduce string) Figure {
	f := Figure{Name: "dev-f1", Short: "Dev F1", Title: "F1 on the dev split during training",
		Caption: "Training sees q2 tasks alone; the longer horizons ask what carries over. " + seedsCaption(curves)}
	var keys []string
	for _, c := range curves {
		for key := range c.Metrics {
			if strings.HasPrefix(key, "eval/") && strings.HasSuffix(key, "_f1") && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	horizon := func(key string) string { return strings.TrimSuffix(strings.TrimPrefix(key, "eval/"), "_f1") }
	slices.SortFunc(keys, func(a, b string) int { return compareHorizons(horizon(a), horizon(b)) })
	for _, key := range keys {
		y := free("F1").bounded(0, 1)
		if p, ok := curvePanel(curves, key, horizonTitle(horizon(key)), y); ok {
			f.Panels = append(f.Panels, p)
		}
	}
	if len(f.Panels) == 0 {
		f.Missing = append(f.Missing, Missing{"dev evaluations of the training runs (curves.jsonl)", reproduce})
	}
	return f
}

// learningFigure shows what training itself measures over its steps.
func learningFigure(curves []results.Curve, reproduce string) Figure {
	f := Figure{Name: "learning", Short: "Learning", Title: "Reward and divergences during training", Caption: seedsCaption(curves)}
	log := free("nats a token, log scale")
	log.Log = true
	for _, m := range []struct {
		key, title string
		y          Axis
	}{
		{"score/reward", "Reward of the rollouts", free("mean of a step").bounded(math.NaN(), 1)},
		{"actor/teacher_kl", "KL from student to teacher", log},
		{"actor/reference_kl", "KL to the reference (SFT)", free("nats a token")},
	} {
		if p, ok := curvePanel(curves, m.key, m.title, m.y); ok {
			f.Panels = append(f.Panels, p)
		} else {
			f.Missing = append(f.Missing, Missing{m.title + " (" + m.key + ") in curves.jsonl", reproduce})
		}
	}
	return f
}

// seedsCaption says what lines and bands of curves are.
func seedsCaption(curves []results.Curve) string {
	seeds := map[string][]int64{}
	for _, c := range curves {
		if !slices.Contains(seeds[c.Variant], c.Seed) {
			seeds[c.Variant] = append(seeds[c.Variant], c.Seed)
		}
	}
	least, most := math.MaxInt, 0
	for _, s := range seeds {
		least, most = min(least, len(s)), max(most, len(s))
	}
	switch {
	case most == 0:
		return ""
	case most == 1:
		return "One seed; a line without a band says nothing of how much seeds differ."
	case least != most:
		return fmt.Sprintf("Lines: means over %d to %d seeds, by variant; bands: their 95 %% t intervals.", least, most)
	}
	return fmt.Sprintf("Lines: means over %d seeds; bands: their 95 %% t intervals.", most)
}

// curvePanel is one metric over the steps, a line a variant; false where no run has
// it.
func curvePanel(curves []results.Curve, key, title string, y Axis) (Panel, bool) {
	p := Panel{Title: title, X: free("step"), Y: y}
	p.X.Whole = true
	byVariant := map[string]map[int64]map[float64]float64{}
	steps := 0.
	for _, c := range curves {
		step, value := c.Metrics[stepKey], c.Metrics[key]
		if step == nil || value == nil || y.Log && *value <= 0 {
			continue
		}
		if byVariant[c.Variant] == nil {
			byVariant[c.Variant] = map[int64]map[float64]float64{}
		}
		if byVariant[c.Variant][c.Seed] == nil {
			byVariant[c.Variant][c.Seed] = map[float64]float64{}
		}
		byVariant[c.Variant][c.Seed][*step] = *value
		steps = max(steps, float64(len(byVariant[c.Variant][c.Seed])))
	}
	width := math.Ceil(steps / pointsMost)
	if width > 1 {
		p.X.Label = fmt.Sprintf("step (means of %g)", width)
	}
	var names []string
	for name := range byVariant {
		names = append(names, name)
	}
	for i, name := range sortVariants(names) {
		points := curvePoints(byVariant[name], width)
		p.Series = append(p.Series, Series{Name: name, Look: lookOf(name, i), Points: points})
	}
	return p, len(p.Series) > 0
}

// curvePoints averages a variant's runs: within each over width steps, then over the
// seeds that reach the step.
func curvePoints(runs map[int64]map[float64]float64, width float64) []Point {
	bins := map[float64][]float64{}
	for _, run := range runs {
		sums := map[float64][]float64{}
		for step, v := range run {
			bin := step
			if width > 1 {
				bin = (math.Floor((step-1)/width) + .5) * width
			}
			sums[bin] = append(sums[bin], v)
		}
		for bin, values := range sums {
			bins[bin] = append(bins[bin], results.Mean(values))
		}
	}
	var points []Point
	for x, values := range bins {
		points = append(points, overSeeds(x, values))
	}
	slices.SortFunc(points, func(a, b Point) int {
		if a.X < b.X {
			return -1
		}
		return 1
	})
	return points
}

// overSeeds is the mean of seeds' values with its t interval.
func overSeeds(x float64, values []float64) Point {
	slices.Sort(values) // a sum that does not hang on the order of a map
	p := at(x, results.Mean(values))
	p.N = len(values)
	if i, err := results.TInterval(values); err == nil {
		p.Low, p.High = i.Low, i.High
	}
	return p
}

// compareHorizons sorts q2 before q16, and named ones after them.
func compareHorizons(a, b string) int {
	number := func(h string) int {
		if n, err := strconv.Atoi(strings.TrimPrefix(h, "q")); err == nil {
			return n
		}
		return math.MaxInt
	}
	if x, y := number(a), number(b); x != y {
		if x < y {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

// horizonName is a horizon's short name for people.
func horizonName(h string) string {
	switch {
	case sameHorizon(h, "wikirag"):
		return "Wiki-RAG"
	case joined(h):
		return strings.ToUpper(h)
	}
	return h
}

// horizonTitle names a horizon for people.
func horizonTitle(h string) string {
	switch n, err := strconv.Atoi(strings.TrimPrefix(h, "q")); {
	case err == nil && n == 1:
		return "Q1: one question a task"
	case err == nil:
		return fmt.Sprintf("Q%d: %d questions a task", n, n)
	}
	return horizonName(h)
}
