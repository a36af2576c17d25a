package results

import "fmt"

// Over says what an interval is taken over.
type Over string

// Seeds are independent runs; with one run there are only its tasks.
const (
	OverSeeds Over = "seeds" // Student's t over the seeds' means
	OverTasks Over = "tasks" // bootstrap over the tasks
)

// Summary is one variant on one horizon over all its seeds.
type Summary struct {
	Variant string
	Horizon string
	Seeds   int
	Tasks   int
	Over    Over                // seeds where there are at least two
	Means   map[string]Interval // by metric key; a metric that was not measured is not in it

	Against *Comparison // with the baseline; nil for the baseline itself and without one
}

// Comparison is one variant against another on one horizon.
type Comparison struct {
	Variant  string
	Baseline string
	Horizon  string
	Over     Over // seeds where both have at least two of the same
	Pairs    int  // seeds or tasks
	// Changes holds the paired changes by metric key; nil where NoChange says why.
	Changes  map[string]Change
	NoChange string
}

// SummaryOptions choose the baseline and the resampling.
type SummaryOptions struct {
	Baseline  string // variant that others are compared with, "" for none
	Bootstrap Bootstrap
}

// Summarize condenses task rows: horizons and, within one, variants in order of
// first occurrence. A trajectory that occurs twice, or a seed without some of
// its group's tasks, is an error.
func Summarize(rows []TaskRow, o SummaryOptions) ([]Summary, error) {
	groups, err := groupRows(rows)
	if err != nil {
		return nil, err
	}
	var summaries []Summary
	for _, g := range groups {
		s, err := g.summary(o.Bootstrap)
		if err == nil && o.Baseline != "" && o.Baseline != g.variant {
			var c Comparison
			c, err = compareGroups(groups, g.variant, o.Baseline, g.horizon, o.Bootstrap)
			s.Against = &c
		}
		if err != nil {
			return nil, fmt.Errorf("summary of %s on %s: %w", g.variant, g.horizon, err)
		}
		summaries = append(summaries, s)
	}
	return summaries, nil
}

// Compare sets a variant against a baseline on a horizon, paired over the seeds
// that both have, or over tasks where these are fewer than two.
func Compare(rows []TaskRow, variant, baseline, horizon string, b Bootstrap) (Comparison, error) {
	groups, err := groupRows(rows)
	if err != nil {
		return Comparison{}, err
	}
	return compareGroups(groups, variant, baseline, horizon, b)
}

func (g *group) summary(b Bootstrap) (Summary, error) {
	s := Summary{Variant: g.variant, Horizon: g.horizon, Seeds: len(g.records), Tasks: len(g.tasks), Over: OverTasks, Means: map[string]Interval{}}
	if s.Seeds > 1 {
		s.Over = OverSeeds
	}
	for _, m := range Metrics {
		values, interval := taskMeans(m, g)[0], b.Mean
		if s.Over == OverSeeds {
			values, interval = seedMeans(m, commonSeeds(g, g), g)[0], TInterval
		}
		if len(values) == 0 {
			continue
		}
		var err error
		if s.Means[m.Key], err = interval(values); err != nil {
			return s, err
		}
	}
	return s, nil
}

func compareGroups(groups []*group, variant, baseline, horizon string, b Bootstrap) (Comparison, error) {
	c := Comparison{Variant: variant, Baseline: baseline, Horizon: horizon}
	g, base := find(groups, variant, horizon), find(groups, baseline, horizon)
	switch {
	case base == nil:
		c.NoChange = fmt.Sprintf("%s was not evaluated on %s", baseline, horizon)
		return c, nil
	case g == nil:
		c.NoChange = fmt.Sprintf("%s was not evaluated on %s", variant, horizon)
		return c, nil
	case !sameTasks(base, g):
		c.NoChange = fmt.Sprintf("%s and %s had different tasks on %s", variant, baseline, horizon)
		return c, nil
	}
	seeds := commonSeeds(base, g)
	c.Over, c.Pairs = OverTasks, len(g.tasks)
	if len(seeds) > 1 {
		c.Over, c.Pairs = OverSeeds, len(seeds)
	}
	err := c.measure(base, g, seeds, b)
	return c, err
}

// measure fills in the changes of all metrics that both have.
func (c *Comparison) measure(base, g *group, seeds []int64, b Bootstrap) error {
	c.Changes = map[string]Change{}
	for _, m := range Metrics {
		means, change := taskMeans(m, base, g), b.Change
		if c.Over == OverSeeds {
			means, change = seedMeans(m, seeds, base, g), SeedChange
		}
		if len(means[0]) == 0 {
			continue
		}
		var err error
		if c.Changes[m.Key], err = change(means[0], means[1]); err != nil {
			return err
		}
	}
	return nil
}
