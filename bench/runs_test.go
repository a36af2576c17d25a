package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// madeUpRun writes a run's folder: records of its steps, evaluations after every
// second, and run.json unless run is nil.
func madeUpRun(t *testing.T, out, name string, steps int, f1 float64, run *trainRun) string {
	t.Helper()
	dir := filepath.Join(out, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for step := 1; step <= steps; step++ {
		lines.WriteString(trainLine(step, float64(step)/10))
		if step%2 == 0 {
			lines.WriteString(evalLineOf(step, f1))
		}
	}
	writeText(t, filepath.Join(dir, train.MetricsFile), lines.String())
	if run != nil {
		run.Manifest = &results.Manifest{
			Commit: "0123456789abcdef", Config: json.RawMessage(fmt.Sprintf(`{"steps": 10, "variant": %q, "learning-rate": 0.001}`, run.Variant)),
			Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		}
		if err := results.WriteJSON(filepath.Join(dir, runFile), run); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func trainLine(step int, f1 float64) string {
	return fmt.Sprintf(`{"training/global_step":%d,"score/f1":%g,"losses/policy_loss":null,"timing_s/step":3}`+"\n", step, f1)
}

func evalLineOf(step int, f1 float64) string {
	return fmt.Sprintf(`{"training/global_step":%d,"eval/q2_f1":%g,"eval/q16_f1":%g}`+"\n", step, f1, f1/2)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func appendText(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// madeUpRuns are a run of each state.
func madeUpRuns(t *testing.T) (out string) {
	out = t.TempDir()
	madeUpRun(t, out, "mini/memopd/seed-0", 10, 0.5, &trainRun{Variant: "memopd", Finished: true})
	madeUpRun(t, out, "mini/memopd/seed-10", 3, 0.4, &trainRun{Variant: "memopd", Failure: "ppo: step 4: NaN\nmore"})
	stopped := madeUpRun(t, out, "mini/memopd/seed-2", 5, 0.3, &trainRun{Variant: "memopd"})
	if err := os.MkdirAll(train.CheckpointPath(stopped, 4), 0o755); err != nil {
		t.Fatal(err)
	}
	running := madeUpRun(t, out, "smoke/pretrain/seed-0", 1, 0, nil)
	unlock, err := lockFolder(context.Background(), running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
	if err := os.MkdirAll(filepath.Join(out, "mini/eval/q2/memopd/seed-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRunsAreListedWithTheirStates(t *testing.T) {
	out := madeUpRuns(t)
	var b bytes.Buffer
	if err := listRuns(&b, runsOptions{Out: out, JSON: true}); err != nil {
		t.Fatal(err)
	}
	var list []runInfo
	if err := json.Unmarshal(b.Bytes(), &list); err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	var got []string
	for _, r := range list {
		f1, _ := r.Eval.Get("eval/q2_f1")
		got = append(got, fmt.Sprintf("%s/%s/%d %s %d/%d from %d, %.1f at %d", r.Preset, r.Variant, r.Seed, r.State, r.Step, r.Steps, r.Checkpoint, f1, r.EvalStep))
	}
	want := []string{
		"mini/memopd/0 finished 10/10 from 0, 0.5 at 10",
		"mini/memopd/2 stopped 5/10 from 4, 0.3 at 4",
		"mini/memopd/10 failed 3/10 from 0, 0.4 at 2",
		"smoke/pretrain/0 running 1/0 from 0, NaN at -1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("runs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if list[0].Commit != "0123456789abcdef" || list[2].Failure != "ppo: step 4: NaN\nmore" {
		t.Errorf("commit %q, failure %q", list[0].Commit, list[2].Failure)
	}
}

func TestRunsTable(t *testing.T) {
	var b bytes.Buffer
	if err := listRuns(&b, runsOptions{Out: madeUpRuns(t)}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if f := strings.Fields(lines[2]); strings.Join(f[:9], " ") != "mini memopd 2 stopped 5/10 q2 0.300 q16 0.150" {
		t.Errorf("row %q", lines[2])
	}
	if want := "mini/memopd/seed-10: ppo: step 4: NaN"; lines[5] != want {
		t.Errorf("last line %q, want %q", lines[5], want)
	}
}

func TestLocateRuns(t *testing.T) {
	out := madeUpRuns(t)
	madeUpRun(t, out, "mini/ppo/seed-1", 1, 0, nil)
	madeUpRun(t, out, "smoke/ppo/seed-1", 1, 0, nil)
	for arg, want := range map[string]string{
		"memopd":                               "mini/memopd/seed-0 mini/memopd/seed-2 mini/memopd/seed-10",
		"memopd/seed-2":                        "mini/memopd/seed-2",
		"mini/ppo":                             "mini/ppo/seed-1",
		filepath.Join(out, "smoke/ppo/seed-1"): "smoke/ppo/seed-1",
		filepath.Join(out, "smoke/ppo/seed-1") + "/": "smoke/ppo/seed-1",
	} {
		found, err := locateRuns(out, arg)
		if err != nil {
			t.Errorf("%s: %v", arg, err)
		}
		for i, dir := range found {
			if found[i], err = filepath.Rel(out, filepath.Clean(dir)); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s is %s, want %s", arg, got, want)
		}
	}
	for arg, want := range map[string]string{
		"ppo":           "in several presets",
		"memopd/seed-3": "unknown run \"memopd/seed-3\" (known: " + filepath.Join(out, "mini/memopd/seed-0"),
		"mini/eval":     "unknown run",
	} {
		if _, err := locateRuns(out, arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
	if _, err := locateRuns(t.TempDir(), "x"); err == nil || !strings.Contains(err.Error(), "there are no runs") {
		t.Errorf("nothing there: %v", err)
	}
}

// steps are those of the records that a tail holds, evaluations with an e.
func stepsOf(tail *metricsTail) string {
	var parts []string
	for _, r := range tail.records {
		step, _ := r.Get(train.StepMetric)
		mark := ""
		if isEvaluation(r) {
			mark = "e"
		}
		parts = append(parts, fmt.Sprintf("%g%s", step, mark))
	}
	return strings.Join(parts, " ")
}

// A file that grows, ends within a line, is put in another's place by a resumed run,
// steps back without that, holds a line that is none, and goes away.
func TestMetricsTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), train.MetricsFile)
	tail := metricsTail{path: path}
	check := func(what, want string, wantChanged bool) {
		t.Helper()
		changed, err := tail.read()
		if got := stepsOf(&tail); err != nil || got != want || changed != wantChanged {
			t.Errorf("%s: records %s, changed %v, %v; want %s", what, got, changed, err, want)
		}
	}
	check("no file", "", false)
	whole := trainLine(3, .3)
	writeText(t, path, trainLine(1, .1)+trainLine(2, .2)+evalLineOf(2, .5)+whole[:10])
	check("an unfinished line", "1 2 2e", true)
	check("nothing new", "1 2 2e", false)
	appendText(t, path, whole[10:])
	check("its end", "1 2 2e 3", true)
	other := path + ".new"
	writeText(t, other, trainLine(1, .1)+trainLine(2, .9)+evalLineOf(2, .5)+trainLine(3, .3)+trainLine(4, .4)) // longer than the one before
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	check("another file", "1 2 2e 3 4", true)
	if f1, _ := tail.records[1].Get("score/f1"); f1 != .9 {
		t.Errorf("step 2 of the file before is shown: %g", f1)
	}
	appendText(t, path, trainLine(2, .7))
	check("a step again", "1 2", true)
	appendText(t, path, "{not a record\n"+trainLine(3, .3))
	check("a bad line", "1 2 3", true)
	if want := path + ":7: "; !strings.HasPrefix(tail.bad, want) {
		t.Errorf("the bad line is reported as %q, want %q", tail.bad, want)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("removed", "", true)
}
