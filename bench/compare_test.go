package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/results"
)

// madeUpEval writes task records of a run: F1 by task.
func madeUpEval(t *testing.T, out, horizon, run string, f1 map[string]float64) {
	t.Helper()
	dir := filepath.Join(out, "mini", "eval", horizon, run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for id, v := range f1 {
		fmt.Fprintf(&lines, `{"task_id":%q,"questions":["q"],"golds":[["g"]],"answers":[],"end":"answered","calls":1,"em":0,"f1":%g,"em_mem1":0,"f1_mem1":0,"retrieval_recall":1,"retrieval_failures":0,"peak_context":10,"dependency":3,"inference_seconds":null}`+"\n", id, v)
	}
	writeText(t, filepath.Join(dir, "tasks.jsonl"), lines.String())
}

// comparable are ppo and memopd with three seeds, memopd with one more.
func comparable(t *testing.T) (out string) {
	out = t.TempDir()
	for seed, f1 := range [][2]float64{{.4, .5}, {.3, .5}, {.5, .8}} {
		madeUpRun(t, out, fmt.Sprintf("mini/ppo/seed-%d", seed), 10, f1[0], &trainRun{Variant: "ppo", Finished: true})
		madeUpRun(t, out, fmt.Sprintf("mini/memopd/seed-%d", seed), 10, f1[1], &trainRun{Variant: "memopd", Finished: true})
		madeUpEval(t, out, "q2", fmt.Sprintf("ppo/seed-%d", seed), map[string]float64{"a": f1[0], "b": 0})
		madeUpEval(t, out, "q2", fmt.Sprintf("memopd/seed-%d", seed), map[string]float64{"a": f1[1], "b": .25})
	}
	madeUpRun(t, out, "mini/memopd/seed-7", 4, 1, &trainRun{Variant: "memopd"})
	return out
}

func metricOf(t *testing.T, c *comparison, source, metric string) metricChange {
	t.Helper()
	for _, m := range c.Metrics {
		if m.Source == source && m.Metric == metric {
			return m
		}
	}
	t.Fatalf("no %s of %s in %+v", metric, source, c.Metrics)
	return metricChange{}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-4 }

// Differences 0.1, 0.2, 0.3: mean 0.2, standard error 0.1/sqrt(3), t 2 sqrt(3) with two
// degrees of freedom; its p and the quantile 4.30265 are of tables.
func TestCompareVariants(t *testing.T) {
	c, err := compareRuns(comparable(t), "ppo", "memopd")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Pairs) != 3 || !strings.Contains(strings.Join(c.Notes, "\n"), "3 of 3 and 4 runs have a partner of the same seed") {
		t.Errorf("%d pairs, notes %q", len(c.Pairs), c.Notes)
	}
	m := metricOf(t, c, "dev", "q2_f1")
	if m.Test != testT || m.N != 3 || !near(m.A, .4) || !near(m.B, .6) || !near(m.Difference.Mean, .2) || !near(m.Difference.High, .2+4.30265*.1/math.Sqrt(3)) {
		t.Errorf("dev: %+v", m)
	}
	if m.P == nil || !near(*m.P, .07418) {
		t.Errorf("p is %v, want .07418", m.P)
	}
	// The means of two tasks: differences (.35, .45, .55)/2.
	if m := metricOf(t, c, "q2", "f1"); m.Test != testT || m.N != 3 || !near(m.Difference.Mean, .225) || !near(m.Difference.Low, .225-4.30265*.05/math.Sqrt(3)) {
		t.Errorf("tasks: %+v", m)
	}
	for _, m := range c.Metrics {
		if m.Metric == "inference_seconds" {
			t.Errorf("what was not measured is compared: %+v", m)
		}
	}
}

func TestCompareRuns(t *testing.T) {
	out := comparable(t)
	madeUpEval(t, out, "q16", "ppo/seed-0", map[string]float64{"a": 0, "b": 0, "c": 1})
	madeUpEval(t, out, "q16", "memopd/seed-1", map[string]float64{"a": 1, "b": 1, "d": 0})
	c, err := compareRuns(out, "ppo/seed-0", "memopd/seed-1")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Config) != 1 || c.Config[0] != (settingDiffering{"variant", `"ppo"`, `"memopd"`}) {
		t.Errorf("settings %+v", c.Config)
	}
	if m := metricOf(t, c, "dev", "q2_f1"); m.Test != "" || m.P != nil || m.N != 1 || !near(m.Difference.Mean, .1) {
		t.Errorf("dev: %+v", m)
	}
	want, err := results.DefaultBootstrap.Change([]float64{.4, 0}, []float64{.5, .25})
	if err != nil {
		t.Fatal(err)
	}
	if m := metricOf(t, c, "q2", "f1"); m.Test != testBootstrap || m.N != 2 || m.Difference != want.Difference || !near(m.Difference.Mean, .175) {
		t.Errorf("q2: %+v, want %+v", m, want)
	}
	if m := metricOf(t, c, "q16", "f1"); m.N != 2 || m.A != 0 || m.B != 1 || m.Percent != nil {
		t.Errorf("q16: %+v", m)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "q16: mini/ppo/seed-0 and mini/memopd/seed-1 have 2 tasks in common, of 3 and 3") {
		t.Errorf("notes %q", notes)
	}
	var b bytes.Buffer
	if err := encodeJSON(&b, c); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("as JSON: %v", err)
	}
	b.Reset()
	if err := c.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SETTING  ppo/seed-0  memopd/seed-1\nvariant  \"ppo\"       \"memopd\"\n", "none: one pair", "paired bootstrap, 2 tasks", "+0.175"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	out := comparable(t)
	if _, err := compareRuns(out, "ppo", "memopd/seed-7"); err == nil || !strings.Contains(err.Error(), "no seed in common") {
		t.Errorf("no common seed: %v", err)
	}
	if _, err := compareRuns(out, "ppo", "sft"); err == nil || !strings.Contains(err.Error(), "unknown run \"sft\" (known: ") {
		t.Errorf("unknown: %v", err)
	}
}

// What is not finished, or evaluated at another step, is said.
func TestCompareNotesUnfinishedRuns(t *testing.T) {
	c, err := compareRuns(comparable(t), "ppo/seed-0", "memopd/seed-7")
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(c.Notes, "\n")
	for _, want := range []string{"the last dev evaluations are of steps 10 and 4", "mini/memopd/seed-7 is stopped at step 4/10"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q: %s", want, notes)
		}
	}
}
