package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/results"
)

// Each variant sets what it stands for and leaves the rest to the flags; what
// contradicts it is refused.
func TestVariantsSetWhatTheyStandFor(t *testing.T) {
	for _, c := range []struct {
		variant                    string
		change                     func(*trainOptions)
		teacher, estimator, layout string // or an error's text in the first
	}{
		{"ppo", nil, "none", "full", "aligned"},
		{"persistent", nil, "persistent", "full", "aligned"},
		{"memopd", nil, "aligned", "full", "aligned"},
		{"memopd-sampled", nil, "aligned", "sampled", "aligned"},
		{"memopd-topk", nil, "aligned", "top-k", "aligned"},
		{"ppo-mem1", nil, "none", "full", "mem1"},
		{"memopd", func(o *trainOptions) { o.TeacherEstimator, o.Layout = "sampled", "both" }, "aligned", "sampled", "both"},
		{"ppo-mem1", func(o *trainOptions) { o.Layout = "mem1" }, "none", "full", "mem1"},
		{"memopd-topk", func(o *trainOptions) { o.TeacherEstimator = "sampled" }, "stands for --teacher-estimator top-k, not sampled", "", ""},
		{"ppo-mem1", func(o *trainOptions) { o.Layout = "both" }, "stands for --layout mem1, not both", "", ""},
		{"grpo", nil, "known: ppo, persistent, memopd, memopd-sampled, memopd-topk, ppo-mem1", "", ""},
	} {
		o, err := trainDefaults(presetMini)
		if err != nil {
			t.Fatal(err)
		}
		o.Variant = c.variant
		if c.change != nil {
			c.change(&o)
		}
		err = o.applyVariant()
		if c.estimator == "" {
			if err == nil || !strings.Contains(err.Error(), c.teacher) {
				t.Errorf("%s: %v, want %q", c.variant, err, c.teacher)
			}
			continue
		}
		if err != nil || o.Teacher != c.teacher || o.TeacherEstimator != c.estimator || o.Layout != c.layout {
			t.Errorf("%s: %v, teacher %s, estimator %s, layout %s", c.variant, err, o.Teacher, o.TeacherEstimator, o.Layout)
		}
		if err := o.check(); err != nil {
			t.Errorf("%s: %v", c.variant, err)
		}
	}
}

func TestNamesOfRuns(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "persistent-flattened-0.4": "", "memopd": "is taken", "sft": "is taken", "pretrain": "is taken",
		"../x": "small letters", "a/b": "small letters", "-x": "small letters", "Memopd": "small letters",
	} {
		err := trainOptions{Name: name}.checkName()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("name %q: %v, want %q", name, err, want)
		}
	}
}

// Other estimators and layouts train, are replayed, and stand in the default table with
// runs under names of their own; a wrong layout says that RCE stops nothing.
func TestTrainingBeyondThePaper(t *testing.T) {
	w := newWorkplace(t)
	const smoke = "train --preset smoke --steps 1 --prompts-per-step 4 --variant "
	w.mustBench(smoke + "memopd-topk")
	w.mustBench(smoke + "memopd-sampled")
	w.mustBench(smoke + "memopd --layout visibility --name memopd-visibility")
	_, log, status := w.bench(smoke + "ppo-mem1")
	if status != 0 || !strings.Contains(log, "layout mem1") || !strings.Contains(log, "stops nothing") {
		t.Fatalf("exit %d\n%s", status, log)
	}
	r := w.records("runs/smoke/ppo-mem1/seed-0")[0]
	p99, _ := r.Get("rce/p99")
	if enforced, ok := r.Get("rce/enforced"); !ok || enforced != 0 || !(p99 > 0.1) {
		t.Errorf("rce/enforced %g, rce/p99 %g", enforced, p99)
	}
	for _, run := range []string{"ppo-mem1", "memopd-sampled", "memopd-visibility"} {
		w.mustBench("replay 1 --run runs/smoke/" + run + "/seed-0")
	}
	_, log, status = w.bench(smoke + "memopd --name memopd-visibility")
	if status == 0 || !strings.Contains(log, "layout was \"visibility\", is \"aligned\"") {
		t.Errorf("a run was taken up in another layout: exit %d\n%s", status, log)
	}

	var rows []results.Record
	out := w.mustBench("eval --preset smoke --tasks 2 --timed-tasks 0 --json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Variant)
	}
	if want := "sft memopd-sampled memopd-topk ppo-mem1 memopd-visibility"; strings.Join(got, " ") != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	var run trainRun
	w.readJSON("runs/smoke/memopd-visibility/seed-0/run.json", &run)
	if run.Variant != "memopd" || run.Name != "memopd-visibility" {
		t.Errorf("run %+v", run)
	}
	if _, log, status := w.bench("eval --preset smoke --variants nosuch"); status == 0 || !strings.Contains(log, "ppo-mem1, memopd-visibility") {
		t.Errorf("exit %d\n%s", status, log)
	}
}
