package results

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// reference is what scripts/peers/seed_statistics.py had scipy and pandas say.
type reference struct {
	Vectors []struct {
		Base, New, Interval, Difference []float64
		T, P                            float64
	}
	Evidence []struct {
		Horizon, Variant, Metric string
		Interval, Difference     []float64
		T, P, Percent            float64
	}
	Tables map[string]struct{ Rows, Columns, Numbers int }
}

func readReference(t *testing.T) reference {
	data, err := os.ReadFile("testdata/statistics.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// close is near relative to the size of b.
func closeTo(a, b, relative float64) bool { return near(a, b, relative*max(1e-6, math.Abs(b))) }

func sameInterval(i Interval, want []float64, relative float64) bool {
	return len(want) == 3 && closeTo(i.Mean, want[0], relative) && closeTo(i.Low, want[1], relative) && closeTo(i.High, want[2], relative)
}

// The t interval and the paired t-test against scipy's.
func TestPairedTAgainstSciPy(t *testing.T) {
	vectors := readReference(t).Vectors
	if len(vectors) < 7 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for i, v := range vectors {
		interval, err := TInterval(v.Base)
		if err != nil || !sameInterval(interval, v.Interval, 1e-9) {
			t.Errorf("vector %d: interval %+v, scipy %v, %v", i, interval, v.Interval, err)
		}
		got, err := PairedT(v.Base, v.New)
		if err != nil || !sameInterval(got.Difference, v.Difference, 1e-9) || !closeTo(got.T, v.T, 1e-9) || math.Abs(got.P-v.P) > 1e-7*v.P {
			t.Errorf("vector %d: %+v, scipy %v, t %v, p %v, %v", i, got, v.Difference, v.T, v.P, err)
		}
	}
}

func TestPairedTEdges(t *testing.T) {
	same := []float64{0.1, 0.2, 0.3}
	if got, err := PairedT(same, same); err != nil || got.T != 0 || got.P != 1 || got.Difference != (Interval{}) {
		t.Errorf("nothing but zeros: %+v, %v", got, err)
	}
	if got, err := PairedT([]float64{1, 2, 3}, []float64{0, 1, 2}); err != nil || !math.IsInf(got.T, -1) || got.P != 0 || got.Difference != (Interval{-1, -1, -1}) {
		t.Errorf("the same difference in each: %+v, %v", got, err)
	}
	for _, c := range [][2][]float64{{{1}, {2}}, {{1, 2}, {1, 2, 3}}, {nil, nil}} {
		if got, err := PairedT(c[0], c[1]); err == nil {
			t.Errorf("%v: %+v", c, got)
		}
	}
}

// The percent of an interval over seeds is the difference's over the baseline's mean.
func TestSeedChange(t *testing.T) {
	c, err := SeedChange([]float64{0.25, 0.75}, []float64{0.5, 1.25})
	if err != nil || c.Base != 0.5 || c.New != 0.875 || c.Percent == nil || c.Percent.Mean != 75 {
		t.Fatalf("%+v, %v", c, err)
	}
	if half := 200 * c.Difference.Half(); !near(c.Percent.High-75, half, 1e-9) || !near(75-c.Percent.Low, half, 1e-9) {
		t.Errorf("percent %+v of difference %+v", c.Percent, c.Difference)
	}
	if c, err := SeedChange([]float64{0, 0}, []float64{0, 1}); err != nil || c.Percent != nil || c.Difference.Mean != 0.5 {
		t.Errorf("from 0: %+v, %v", c, err)
	}
	if c, err := SeedChange([]float64{0, 0}, []float64{0, 0}); err != nil || *c.Percent != (Interval{}) || c.Test.P != 1 {
		t.Errorf("from 0 to 0: %+v, %v", c, err)
	}
}

// Means, intervals, changes and tests over an outcome's seeds against pandas and scipy.
func TestSummaryAgainstSciPy(t *testing.T) {
	e, err := LoadEvidence(evidenceFolder)
	if err != nil {
		t.Fatal(err)
	}
	summaries, err := Summarize(e.Rows, SummaryOptions{Baseline: "ppo", Bootstrap: Bootstrap{Resamples: 1}})
	if err != nil {
		t.Fatal(err)
	}
	type key struct{ horizon, variant string }
	of := map[key]Summary{}
	for _, s := range summaries {
		of[key{s.Horizon, s.Variant}] = s
	}
	want := readReference(t).Evidence
	if len(want) < 7*17 {
		t.Fatalf("%d references", len(want))
	}
	for _, w := range want {
		s, found := of[key{w.Horizon, w.Variant}]
		if !found || s.Over != OverSeeds || !sameInterval(s.Means[w.Metric], w.Interval, 1e-8) {
			t.Errorf("%s on %s, %s: %+v, want %v", w.Variant, w.Horizon, w.Metric, s.Means[w.Metric], w.Interval)
		}
		if w.Variant == "ppo" {
			continue
		}
		c := s.Against.Changes[w.Metric]
		if c.Test == nil || c.Percent == nil || !sameInterval(c.Difference, w.Difference, 1e-6) || !closeTo(c.Test.P, w.P, 1e-6) ||
			!closeTo(c.Test.T, w.T, 1e-6) || !closeTo(c.Percent.Mean, w.Percent, 1e-6) {
			t.Errorf("%s on %s, %s: %+v, want %+v", w.Variant, w.Horizon, w.Metric, c, w)
		}
	}
}

// pandas read the CSV files with the rows, columns and columns of numbers that they have.
func TestCSVAgainstPandas(t *testing.T) {
	e, err := LoadEvidence(evidenceFolder)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := PaperTables(e)
	if err != nil {
		t.Fatal(err)
	}
	want, seen := readReference(t).Tables, 0
	for _, p := range tables {
		for i, table := range p.Tables {
			name := p.Name + ".csv"
			if i > 0 {
				name = p.Name + "." + table.Name + ".csv"
			}
			w := want[name]
			if w.Rows != len(table.Rows) || w.Columns != len(table.keys()) || w.Numbers != numberColumns(table) {
				t.Errorf("%s: %d rows, %d columns, %d of numbers; pandas read %+v", filepath.Base(name), len(table.Rows), len(table.keys()), numberColumns(table), w)
			}
			seen++
		}
	}
	if seen != len(want) {
		t.Errorf("%d tables, pandas read %d", seen, len(want))
	}
}

// numberColumns counts the keys under which no row has anything but numbers and null.
func numberColumns(t *Table) int {
	number := make([]bool, len(t.keys()))
	for i := range number {
		number[i] = true
	}
	for _, row := range t.Rows {
		for i, v := range t.values(row) {
			switch v.(type) {
			case nil, int, int64, float64:
			default:
				number[i] = false
			}
		}
	}
	n := 0
	for _, yes := range number {
		if yes {
			n++
		}
	}
	return n
}
