package results

import (
	"fmt"
	"slices"
)

// Summary is one variant on one horizon over all its seeds.
type Summary struct {
	Variant string
	Horizon string
	Seeds   int
	Tasks   int

	// OverTasks holds, by metric key, the mean with the bootstrap interval over
	// tasks. A task's value is the mean of its trajectories, all seeds and runs.
	// A metric that was not measured is in none of these maps.
	OverTasks map[string]Interval
	// OverSeeds holds the mean of the seeds' means with the t interval; nil with one seed.
	OverSeeds map[string]Interval
	// Changes holds the paired change against the baseline on the same tasks;
	// nil for the baseline itself, or where NoChange says why.
	Changes  map[string]Change
	NoChange string
}

// SummaryOptions choose the baseline and the resampling.
type SummaryOptions struct {
	Baseline  string // variant that others are compared with, "" for none
	Bootstrap Bootstrap
}

// group is the task rows of a variant on a horizon.
type group struct {
	variant, horizon string
	tasks            []string // in order of first occurrence
	rows             map[string][]TaskRow
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
		s, err := g.summary(o)
		if err == nil {
			err = compare(&s, groups, g, o)
		}
		if err != nil {
			return nil, fmt.Errorf("summary of %s on %s: %w", g.variant, g.horizon, err)
		}
		summaries = append(summaries, s)
	}
	return summaries, nil
}

func groupRows(rows []TaskRow) ([]*group, error) {
	var groups []*group
	seen := map[TaskRow]bool{}
	for _, r := range rows {
		if err := r.Validate(); err != nil {
			return nil, err
		}
		id := r
		id.Values = Values{}
		if seen[id] {
			return nil, fmt.Errorf("task %q of %s on %s, seed %d, run %d occurs twice", r.TaskID, r.Variant, r.Horizon, r.Seed, r.Run)
		}
		seen[id] = true
		g := find(groups, r.Variant, r.Horizon)
		if g == nil {
			g = &group{variant: r.Variant, horizon: r.Horizon, rows: map[string][]TaskRow{}}
			groups = append(groups, g)
		}
		if g.rows[r.TaskID] == nil {
			g.tasks = append(g.tasks, r.TaskID)
		}
		g.rows[r.TaskID] = append(g.rows[r.TaskID], r)
	}
	return byHorizon(groups), nil
}

func find(groups []*group, variant, horizon string) *group {
	i := slices.IndexFunc(groups, func(g *group) bool { return g.variant == variant && g.horizon == horizon })
	if i < 0 {
		return nil
	}
	return groups[i]
}

// byHorizon brings a horizon's variants together.
func byHorizon(groups []*group) []*group {
	var horizons []string
	for _, g := range groups {
		if !slices.Contains(horizons, g.horizon) {
			horizons = append(horizons, g.horizon)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return slices.Index(horizons, a.horizon) - slices.Index(horizons, b.horizon)
	})
	return groups
}

// taskMeans lists a metric's mean for each task that has it in all groups, in
// the first one's order, one list a group.
func taskMeans(m Metric, groups ...*group) [][]float64 {
	lists := make([][]float64, len(groups))
	for _, task := range groups[0].tasks {
		var means []float64
		for _, g := range groups {
			if mean, ok := meanOfRows(m, g.rows[task]); ok {
				means = append(means, mean)
			}
		}
		for i := range means {
			if len(means) == len(groups) {
				lists[i] = append(lists[i], means[i])
			}
		}
	}
	return lists
}

func (g *group) summary(o SummaryOptions) (Summary, error) {
	s := Summary{Variant: g.variant, Horizon: g.horizon, Tasks: len(g.tasks), OverTasks: map[string]Interval{}}
	var all []TaskRow
	for _, task := range g.tasks {
		all = append(all, g.rows[task]...)
	}
	records, err := Records(all)
	if err != nil {
		return s, err
	}
	s.Seeds = len(records)
	for _, r := range records {
		if r.Tasks != s.Tasks {
			return s, fmt.Errorf("seed %d has %d of %d tasks", r.Seed, r.Tasks, s.Tasks)
		}
	}
	for _, m := range Metrics {
		means := taskMeans(m, g)[0]
		if len(means) == 0 {
			continue
		}
		if s.OverTasks[m.Key], err = o.Bootstrap.Mean(means); err != nil {
			return s, err
		}
	}
	s.OverSeeds, err = overSeeds(records)
	return s, err
}

// overSeeds is nil with fewer than two records.
func overSeeds(records []Record) (map[string]Interval, error) {
	if len(records) < 2 {
		return nil, nil
	}
	over := map[string]Interval{}
	for _, m := range Metrics {
		var means []float64
		for _, r := range records {
			if x, ok := m.Of(r.Values); ok {
				means = append(means, x)
			}
		}
		if len(means) != len(records) {
			continue
		}
		var err error
		if over[m.Key], err = TInterval(means); err != nil {
			return nil, err
		}
	}
	return over, nil
}

// compare fills in the changes against the baseline.
func compare(s *Summary, groups []*group, g *group, o SummaryOptions) error {
	if o.Baseline == "" || o.Baseline == g.variant {
		return nil
	}
	base := find(groups, o.Baseline, g.horizon)
	if base == nil {
		s.NoChange = fmt.Sprintf("%s was not evaluated on %s", o.Baseline, g.horizon)
		return nil
	}
	if !sameTasks(base, g) {
		s.NoChange = fmt.Sprintf("%s and %s had different tasks on %s", g.variant, o.Baseline, g.horizon)
		return nil
	}
	s.Changes = map[string]Change{}
	for _, m := range Metrics {
		means := taskMeans(m, base, g)
		if len(means[0]) == 0 {
			continue
		}
		c, err := o.Bootstrap.Change(means[0], means[1])
		if err != nil {
			return err
		}
		s.Changes[m.Key] = c
	}
	return nil
}

func sameTasks(a, b *group) bool {
	for _, task := range a.tasks {
		if b.rows[task] == nil {
			return false
		}
	}
	return len(a.tasks) == len(b.tasks)
}
