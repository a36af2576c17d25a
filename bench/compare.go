package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/results"
)

// compareOptions holds the settings of bench compare.
type compareOptions struct {
	Out  string `flag:"out" help:"folder of the runs"`
	JSON bool   `flag:"json" help:"print the comparison as JSON"`
}

func newCompare() *cobra.Command {
	o := compareOptions{}
	defaults := func() error {
		o = compareOptions{Out: defaultCommon(presetMini).Out}
		return nil
	}
	return quietCommand(&cobra.Command{
		Use:   "compare A B",
		Short: "Compare two runs, or two variants over their seeds",
		Long: `Shows how settings and results of B differ from A's: the last dev evaluation, and
the task-level records of bench eval where both have them. A and B are runs
(memopd/seed-0), which are compared over the tasks by a paired bootstrap, or variants
(memopd, mini/ppo), which are compared over the seeds that both have by Student's
paired t-test; with one seed in common, as runs. Intervals are of 95 %.`,
		Example: `  bench compare ppo memopd
  bench compare mini/ppo/seed-0 mini/memopd/seed-0 --json`,
		Args: cobra.ExactArgs(2),
	}, &o, defaults, func(cmd *cobra.Command, args []string) error {
		c, err := compareRuns(o.Out, args[0], args[1])
		if err != nil {
			return err
		}
		if o.JSON {
			return encodeJSON(cmd.OutOrStdout(), c)
		}
		return c.print(cmd.OutOrStdout())
	})
}

// comparison is what bench compare prints.
type comparison struct {
	A       string             `json:"a"`
	B       string             `json:"b"`
	Pairs   []runPair          `json:"pairs"`
	Config  []settingDiffering `json:"config"`  // of the first pair
	Metrics []metricChange     `json:"metrics"` // dev evaluations, then tasks by horizon
	Notes   []string           `json:"notes"`   // what limits the comparison
}

// runPair are two runs of one seed, or the two that were named.
type runPair struct {
	A *runInfo `json:"a"`
	B *runInfo `json:"b"`
}

// settingDiffering is a setting as JSON text; "" where a run has none of that name.
type settingDiffering struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// metricChange compares one metric.
type metricChange struct {
	Source     string            `json:"source"` // dev, or the horizon of the tasks
	Metric     string            `json:"metric"`
	A          float64           `json:"a"` // means
	B          float64           `json:"b"`
	Test       string            `json:"test"`       // "paired t", "paired bootstrap" or "" for one pair of numbers
	N          int               `json:"n"`          // pairs: seeds or tasks
	Difference results.Interval  `json:"difference"` // B - A; the mean alone without a test
	Percent    *results.Interval `json:"percent,omitempty"`
	P          *float64          `json:"p,omitempty"` // two-sided, of the t-test
}

const (
	testT         = "paired t"
	testBootstrap = "paired bootstrap"
)

// compareRuns compares what two arguments name.
func compareRuns(out, nameA, nameB string) (*comparison, error) {
	a, err := inspectAll(out, nameA)
	if err != nil {
		return nil, err
	}
	b, err := inspectAll(out, nameB)
	if err != nil {
		return nil, err
	}
	c := &comparison{A: nameA, B: nameB, Config: []settingDiffering{}, Metrics: []metricChange{}, Notes: []string{}}
	if c.Pairs, err = pairUp(a, b); err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", nameA, nameB, err)
	}
	if n := max(len(a), len(b)); n > len(c.Pairs) {
		c.note("%d of %d and %d runs have a partner of the same seed", len(c.Pairs), len(a), len(b))
	}
	if c.Config, err = differing(c.Pairs[0].A.config, c.Pairs[0].B.config); err != nil {
		return nil, err
	}
	for _, p := range c.Pairs {
		if p.A.EvalStep != p.B.EvalStep {
			c.note("seed %d: the last dev evaluations are of steps %d and %d", p.A.Seed, p.A.EvalStep, p.B.EvalStep)
		}
		for _, r := range []*runInfo{p.A, p.B} {
			if r.State != stateFinished {
				c.note("%s is %s at step %s", r.name(), r.State, stepText(r))
			}
		}
	}
	if err := c.dev(); err != nil {
		return nil, err
	}
	return c, c.tasks()
}

func (c *comparison) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

func inspectAll(out, name string) ([]*runInfo, error) {
	folders, err := locateRuns(out, name)
	if err != nil {
		return nil, err
	}
	var runs []*runInfo
	for _, dir := range folders {
		r, err := inspectRun(dir)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// pairUp pairs single runs whatever their seeds, and several by seed.
func pairUp(a, b []*runInfo) ([]runPair, error) {
	if len(a) == 1 && len(b) == 1 {
		return []runPair{{a[0], b[0]}}, nil
	}
	var pairs []runPair
	for _, x := range a {
		for _, y := range b {
			if x.Seed == y.Seed {
				pairs = append(pairs, runPair{x, y})
			}
		}
	}
	if len(pairs) == 0 {
		return nil, errors.New("they have no seed in common")
	}
	return pairs, nil
}

// differing lists the settings that two configurations have not alike.
func differing(a, b any) ([]settingDiffering, error) {
	before, err := settings(a)
	if err != nil {
		return nil, err
	}
	after, err := settings(b)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range []map[string]string{before, after} {
		for name := range m {
			if before[name] != after[name] && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	list := []settingDiffering{}
	for _, name := range names {
		list = append(list, settingDiffering{name, before[name], after[name]})
	}
	return list, nil
}

// dev compares the last dev evaluations, by the metrics that all runs have.
func (c *comparison) dev() error {
	for _, m := range c.Pairs[0].A.Eval {
		var base, other []float64
		for _, p := range c.Pairs {
			x, inA := p.A.Eval.Get(m.Name)
			y, inB := p.B.Eval.Get(m.Name)
			if inA && inB && finiteNumber(x) && finiteNumber(y) {
				base, other = append(base, x), append(other, y)
			}
		}
		if len(base) == 0 {
			continue
		}
		if err := c.overSeeds("dev", strings.TrimPrefix(m.Name, evalPrefix), base, other); err != nil {
			return err
		}
	}
	return nil
}

// overSeeds adds a metric's change over seeds: tested where there are two or more.
func (c *comparison) overSeeds(source, metric string, base, other []float64) error {
	a, b := results.Mean(base), results.Mean(other)
	change := metricChange{Source: source, Metric: metric, A: a, B: b, N: len(base)}
	change.Difference = results.Interval{Mean: b - a, Low: b - a, High: b - a}
	if len(base) > 1 {
		t, err := results.PairedT(base, other)
		if err != nil {
			return fmt.Errorf("%s: %w", metric, err)
		}
		change.Test, change.Difference, change.P = testT, t.Difference, &t.P
	}
	c.Metrics = append(c.Metrics, change)
	return nil
}

// taskValues are a run's values of tasks at a horizon, by task.
type taskValues map[string]results.Values

// tasksOf reads the task records of a run's evaluation at a horizon; nil without.
func tasksOf(r *runInfo, horizon string) (taskValues, error) {
	preset := filepath.Dir(filepath.Dir(r.Folder))
	path := filepath.Join(preset, "eval", horizon, r.Variant, fmt.Sprintf("seed-%d", r.Seed), "tasks.jsonl")
	records, err := results.ReadJSONL[eval.TaskRecord](path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values := taskValues{}
	for _, row := range taskRows(subject{variant: r.Variant, seed: r.Seed}, horizon, records) {
		values[row.TaskID] = row.Values
	}
	return values, nil
}

// horizonsOf lists the horizons that a run's preset was evaluated at, by number.
func horizonsOf(r *runInfo) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(filepath.Dir(r.Folder)), "eval"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) { // q2 before q16
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

// print writes the comparison as tables.
func (c *comparison) print(w io.Writer) error { return printComparison(w, c) }
