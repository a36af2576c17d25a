package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

func TestSparkline(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values []float64
		width  int
		want   string
	}{
		{nil, 5, ""},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, "▁▂▃▄▅▆▇█"},
		{[]float64{0, 0, 7, 7}, 2, "▁█"},
		{[]float64{3, nan, math.Inf(1), 4}, 9, "▁  █"},
		{[]float64{2, 2}, 9, "▄▄"},
		{[]float64{-math.MaxFloat64, math.MaxFloat64}, 9, "▁█"},
		{[]float64{nan, nan, 1, 2}, 2, " ▄"},
		{[]float64{1, 2}, 0, ""},
	} {
		if got := sparkline(c.values, c.width); got != c.want {
			t.Errorf("%v in %d: %q, want %q", c.values, c.width, got, c.want)
		}
	}
}

func watchOnce(t *testing.T, o watchOptions, args ...string) (string, error) {
	t.Helper()
	o.Every, o.Once = time.Second, true
	var b bytes.Buffer
	err := runWatch(context.Background(), o, args, &b)
	return b.String(), err
}

func TestWatchOnce(t *testing.T) {
	out := madeUpRuns(t)
	got, err := watchOnce(t, watchOptions{Out: out}, "memopd")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"mini/memopd/seed-0  finished  step 10/10  3 s/step\n",
		"mini/memopd/seed-2  stopped  step 5/10  goes on from step 4 with --resume  3 s/step\n",
		"  score/f1                          1  ▁▂▃▃▄▅▆▆▇█  0.1 to 1\n",
		"  eval/q2_f1                      0.3  ▄▄  0.3 to 0.3\n",
		"  last evaluation: step 4\n",
		"mini/memopd/seed-10  failed  step 3/10", "\n  ppo: step 4: NaN\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "policy_loss") {
		t.Errorf("a metric without a number is shown:\n%s", got)
	}
}

func TestWatchWithoutNamesShowsWhatIsRunning(t *testing.T) {
	out := madeUpRuns(t)
	got, err := watchOnce(t, watchOptions{Out: out})
	if err != nil || !strings.HasPrefix(got, "smoke/pretrain/seed-0  running  step 1  3 s/step\n") || strings.Contains(got, "memopd") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestWatchRefuses(t *testing.T) {
	out := madeUpRuns(t)
	for want, try := range map[string]func() (string, error){
		"unknown run \"nemo\" (known: ": func() (string, error) { return watchOnce(t, watchOptions{Out: out}, "nemo") },
		"unknown metric \"f1\" (known: eval/q16_f1, eval/q2_f1, losses/policy_loss, score/f1": func() (string, error) {
			return watchOnce(t, watchOptions{Out: out, Metrics: []string{"f1"}}, "memopd")
		},
		"no runs under": func() (string, error) { return watchOnce(t, watchOptions{Out: t.TempDir()}) },
	} {
		if got, err := try(); err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%v, want %q; printed %q", err, want, got)
		}
	}
}

// The rate is that of the last steps, and SFT's records cover several.
func TestStepSeconds(t *testing.T) {
	record := func(step, seconds float64, name string) train.Record {
		return train.Record{{Name: train.StepMetric, Value: step}, {Name: name, Value: seconds}}
	}
	w := &watched{}
	if got := w.stepSeconds(); got != 0 {
		t.Errorf("of nothing: %g", got)
	}
	for i := range 30 {
		seconds := 100.0
		if i >= 10 {
			seconds = 2
		}
		w.tail.records = append(w.tail.records, record(float64(i+1), seconds, "timing_s/step"))
	}
	if got := w.stepSeconds(); got != 2 {
		t.Errorf("of the last 20 steps: %g, want 2", got)
	}
	w.tail.records = []train.Record{record(50, 25, "timing_s/window"), record(100, 75, "timing_s/window")}
	if got := w.stepSeconds(); got != 1 {
		t.Errorf("of SFT: %g, want 1", got)
	}
}

func TestFrameFitsTheTerminal(t *testing.T) {
	out := madeUpRuns(t)
	o := watchOptions{Out: out}
	runs, err := o.runs([]string{"memopd"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range runs {
		if _, err := w.look(); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range [][2]int{{200, 60}, {80, 24}, {80, 7}, {30, 3}, {10, 2}, {1, 1}} {
		lines := frame(runs, watchedMetrics, size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > size[0] {
				t.Errorf("%v: %d columns: %q", size, n, line)
			}
		}
	}
	if lines := frame(runs, watchedMetrics, 80, 3); !strings.Contains(strings.Join(lines, "\n"), "seed-10") {
		t.Errorf("a run is not seen: %q", lines)
	}
}

// Without a terminal a line is printed as a run goes on, and the end of the last run
// ends it.
func TestWatchPlainGoesToTheEnd(t *testing.T) {
	out := t.TempDir()
	run := &trainRun{Variant: "ppo"}
	dir := madeUpRun(t, out, "mini/ppo/seed-0", 1, 0, run)
	unlock, err := lockFolder(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(lineWriter, 20)
	done := make(chan error, 1)
	go func() {
		done <- runWatch(context.Background(), watchOptions{Out: out, Every: 100 * time.Millisecond}, []string{"ppo"}, lines)
	}()
	expect := func(want string) {
		t.Helper()
		if got := <-lines; got != want+"\n" {
			t.Errorf("line %q, want %q", got, want)
		}
	}
	expect("mini/ppo/seed-0  running  step 1/10  3 s/step  27s left  score/f1 0.1")
	appendText(t, filepath.Join(dir, train.MetricsFile), trainLine(2, 0.2))
	expect("mini/ppo/seed-0  running  step 2/10  3 s/step  24s left  score/f1 0.2")
	run.Finished = true
	if err := results.WriteJSON(filepath.Join(dir, runFile), run); err != nil {
		t.Fatal(err)
	}
	unlock()
	expect("mini/ppo/seed-0  finished  step 2/10  3 s/step  score/f1 0.2")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// lineWriter hands on what is written.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := madeUpRuns(t)
	if err := runWatch(ctx, watchOptions{Out: out, Every: time.Hour}, nil, io.Discard); err != nil {
		t.Error(err)
	}
}
