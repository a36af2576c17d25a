package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/memopd/memopd-bench/results"
)

// tasks compares the task records at each horizon that all runs were evaluated at.
func (c *comparison) tasks() error {
	horizons, err := horizonsOf(c.Pairs[0].A)
	if err != nil {
		return err
	}
	for _, h := range horizons {
		var pairs []taskPair
		for _, p := range c.Pairs {
			pair, err := c.pairTasks(p, h)
			if err != nil {
				return err
			}
			if len(pair.a) > 0 {
				pairs = append(pairs, pair)
			}
		}
		if len(pairs) == 0 {
			continue
		}
		for _, m := range results.Metrics {
			if err := c.horizon(h, m, pairs); err != nil {
				return fmt.Errorf("%s, %s: %w", h, m.Key, err)
			}
		}
	}
	return nil
}

// taskPair holds two runs' values of the same tasks.
type taskPair struct{ a, b []results.Values }

// pairTasks pairs two runs' tasks at a horizon by their ids.
func (c *comparison) pairTasks(p runPair, horizon string) (pair taskPair, err error) {
	a, err := tasksOf(p.A, horizon)
	if err != nil {
		return pair, err
	}
	b, err := tasksOf(p.B, horizon)
	if err != nil || len(a) == 0 || len(b) == 0 {
		return pair, err
	}
	for _, id := range slices.Sorted(maps.Keys(a)) {
		if v, ok := b[id]; ok {
			pair.a, pair.b = append(pair.a, a[id]), append(pair.b, v)
		}
	}
	if n := len(pair.a); n < max(len(a), len(b)) {
		c.note("%s: %s and %s have %d tasks in common, of %d and %d", horizon, p.A.name(), p.B.name(), n, len(a), len(b))
	}
	return pair, nil
}

// horizon compares one metric at a horizon: over the tasks of one pair of runs, else
// over the seeds' means.
func (c *comparison) horizon(h string, m results.Metric, pairs []taskPair) error {
	var base, other []float64
	for _, p := range pairs {
		x, y := bothHave(m, p)
		if len(x) == 0 {
			continue
		}
		if len(pairs) == 1 {
			return c.overTasks(h, m, x, y)
		}
		base, other = append(base, results.Mean(x)), append(other, results.Mean(y))
	}
	if len(base) == 0 {
		return nil // nowhere measured
	}
	return c.overSeeds(h, m.Key, base, other)
}

func (c *comparison) overTasks(h string, m results.Metric, x, y []float64) error {
	change, err := results.DefaultBootstrap.Change(x, y)
	if err != nil {
		return err
	}
	percent := change.Percent
	if percent != nil && !(finiteNumber(percent.Low) && finiteNumber(percent.High)) {
		percent = nil // JSON has no infinities
	}
	c.Metrics = append(c.Metrics, metricChange{
		Source: h, Metric: m.Key, A: results.Mean(x), B: results.Mean(y), Test: testBootstrap, N: len(x),
		Difference: change.Difference, Percent: percent,
	})
	return nil
}

// bothHave are the values of a metric on the tasks where both runs have one.
func bothHave(m results.Metric, p taskPair) (a, b []float64) {
	for i := range p.a {
		x, inA := m.Of(p.a[i])
		y, inB := m.Of(p.b[i])
		if inA && inB {
			a, b = append(a, x), append(b, y)
		}
	}
	return a, b
}

func printComparison(w io.Writer, c *comparison) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "SETTING\t%s\t%s\n", c.A, c.B)
	for _, d := range c.Config {
		fmt.Fprintf(t, "%s\t%s\t%s\n", d.Name, orDash(d.A), orDash(d.B))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintf(t, "ON\tMETRIC\t%s\t%s\tDIFFERENCE\t95 %% INTERVAL\tP\tTEST\n", c.A, c.B)
	for _, m := range c.Metrics {
		interval, p, test := "-", "-", "none: one pair"
		if m.Test != "" {
			interval = fmt.Sprintf("%s to %s", signed(m.Difference.Low), signed(m.Difference.High))
			unit := map[string]string{testT: "seeds", testBootstrap: "tasks"}[m.Test]
			test = fmt.Sprintf("%s, %d %s", m.Test, m.N, unit)
		}
		if m.P != nil {
			p = fmt.Sprintf("%.3g", *m.P)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			m.Source, m.Metric, number(m.A), number(m.B), signed(m.Difference.Mean), interval, p, test)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(c.Metrics) == 0 {
		fmt.Fprintln(w, "no evaluation that both have: bench train --eval-every makes dev evaluations, bench eval the tasks'")
	}
	if len(c.Notes) > 0 {
		fmt.Fprintln(w, "\n"+strings.Join(c.Notes, "\n"))
	}
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// signed is a difference in four significant digits with its sign.
func signed(v float64) string { return fmt.Sprintf("%+.4g", v) }
