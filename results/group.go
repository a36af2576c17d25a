package results

import (
	"cmp"
	"fmt"
	"slices"
)

// group is the task rows of a variant on a horizon.
type group struct {
	variant, horizon string
	tasks            []string // in order of first occurrence
	rows             map[string][]TaskRow
	records          []Record // a seed each, sorted
}

// groupRows brings each variant's rows on a horizon together: horizons and,
// within one, variants in order of first occurrence. A trajectory that occurs
// twice, or a seed without some of its group's tasks, is an error.
func groupRows(rows []TaskRow) ([]*group, error) {
	var groups []*group
	seen := map[TaskRow]bool{}
	for _, r := range rows {
		if err := r.Validate(); err != nil {
			return nil, err
		}
		id := r
		id.End, id.Calls, id.Values = "", 0, Values{}
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
	for _, g := range groups {
		if err := g.finish(); err != nil {
			return nil, fmt.Errorf("%s on %s: %w", g.variant, g.horizon, err)
		}
	}
	return byHorizon(groups), nil
}

// finish makes the seeds' records.
func (g *group) finish() error {
	var all []TaskRow
	for _, task := range g.tasks {
		all = append(all, g.rows[task]...)
	}
	var err error
	if g.records, err = Records(all); err != nil {
		return err
	}
	slices.SortFunc(g.records, func(a, b Record) int { return cmp.Compare(a.Seed, b.Seed) })
	for _, r := range g.records {
		if r.Tasks != len(g.tasks) {
			return fmt.Errorf("seed %d has %d of %d tasks", r.Seed, r.Tasks, len(g.tasks))
		}
	}
	return nil
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
// the first one's order, one list a group. A task's value is the mean of its
// trajectories, all seeds and runs.
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

// seedMeans lists a metric's mean for each of the seeds, one list a group;
// empty ones where a seed lacks it.
func seedMeans(m Metric, seeds []int64, groups ...*group) [][]float64 {
	lists := make([][]float64, len(groups))
	for i, g := range groups {
		for _, r := range g.records {
			if x, ok := m.Of(r.Values); ok && slices.Contains(seeds, r.Seed) {
				lists[i] = append(lists[i], x)
			}
		}
		if len(lists[i]) != len(seeds) {
			return make([][]float64, len(groups))
		}
	}
	return lists
}

// commonSeeds lists the seeds that both groups have, sorted.
func commonSeeds(a, b *group) []int64 {
	var seeds []int64
	for _, r := range a.records {
		if slices.ContainsFunc(b.records, func(o Record) bool { return o.Seed == r.Seed }) {
			seeds = append(seeds, r.Seed)
		}
	}
	return seeds
}

func sameTasks(a, b *group) bool {
	for _, task := range a.tasks {
		if b.rows[task] == nil {
			return false
		}
	}
	return len(a.tasks) == len(b.tasks)
}
