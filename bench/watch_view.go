package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memopd/memopd-bench/train"
)

// watchedMetrics are shown unless others are named: of PPO and of SFT.
var watchedMetrics = []string{
	"score/f1", "score/reward", "actor/teacher_kl", "actor/reference_kl", "losses/policy_loss", "losses/value_loss",
	"losses/entropy", "rce/p99", "train/loss", "train/grad_norm", "train/lr", "perf/throughput",
}

// watched is a run that is looked at, as of the last look.
type watched struct {
	tail metricsTail
	info *runInfo
}

func newWatched(dir string) *watched {
	return &watched{tail: metricsTail{path: filepath.Join(dir, train.MetricsFile)}}
}

// look takes in what is new and says whether anything shown has changed.
func (w *watched) look() (bool, error) {
	changed, err := w.tail.read()
	if err != nil {
		return false, err
	}
	before := w.info
	if w.info, err = inspectWith(filepath.Dir(w.tail.path), &w.tail); err != nil {
		return false, err
	}
	return changed || before == nil || before.State != w.info.State, nil
}

// over says that nothing more will come of the run.
func (w *watched) over() bool { return w.info.State == stateFinished || w.info.State == stateFailed }

// stepSeconds is what a step of the last rateRecords records took, 0 where it is not
// known. Evaluations are not in it.
func (w *watched) stepSeconds() float64 {
	var steps []train.Record
	for _, r := range w.tail.records {
		if !isEvaluation(r) {
			steps = append(steps, r)
		}
	}
	if len(steps) == 0 {
		return 0
	}
	first := max(0, len(steps)-rateRecords)
	seconds, before := 0.0, 0.0
	if first > 0 {
		before, _ = steps[first-1].Get(train.StepMetric)
	}
	for _, r := range steps[first:] {
		for _, name := range []string{"timing_s/step", "timing_s/window"} {
			if v, ok := r.Get(name); ok && finiteNumber(v) {
				seconds += v
			}
		}
	}
	last, _ := steps[len(steps)-1].Get(train.StepMetric)
	if last <= before {
		return 0
	}
	return seconds / (last - before)
}

// rateRecords are the records that rate and time left go by.
const rateRecords = 20

// head is the run's state in one line.
func (w *watched) head() string {
	r := w.info
	parts := []string{r.name(), string(r.State), "step " + stepText(r)}
	if r.State == stateStopped {
		parts = append(parts, fmt.Sprintf("goes on from step %d with --resume", r.Checkpoint))
	}
	if perStep := w.stepSeconds(); perStep > 0 {
		parts = append(parts, number(perStep)+" s/step")
		if r.State == stateRunning && r.Steps > r.Step {
			left := time.Duration(perStep * float64(r.Steps-r.Step) * float64(time.Second))
			parts = append(parts, left.Round(time.Second).String()+" left")
		}
	}
	return strings.Join(parts, "  ")
}

// line is the run in one line without a terminal.
func (w *watched) line(metrics []string) string {
	parts := []string{w.head()}
	for _, name := range metrics {
		if values := w.series(name); len(values) > 0 {
			parts = append(parts, name+" "+number(values[len(values)-1]))
		}
	}
	if w.info.EvalStep >= 0 {
		parts = append(parts, fmt.Sprintf("eval at %d: %s", w.info.EvalStep, evalText(w.info)))
	}
	if w.info.Failure != "" {
		parts = append(parts, firstLine(w.info.Failure))
	}
	return strings.Join(parts, "  ")
}

func evalText(r *runInfo) string {
	var parts []string
	for _, m := range r.Eval {
		parts = append(parts, fmt.Sprintf("%s %.3f", strings.TrimPrefix(m.Name, evalPrefix), m.Value))
	}
	return strings.Join(parts, " ")
}

// series are the values of a metric over the records that have it.
func (w *watched) series(name string) []float64 {
	var values []float64
	for _, r := range w.tail.records {
		if v, ok := r.Get(name); ok {
			values = append(values, v)
		}
	}
	if !slices.ContainsFunc(values, finiteNumber) {
		return nil
	}
	return values
}

const (
	nameColumns  = 26 // of a metric's name
	valueColumns = 11
	rangeColumns = 24 // of its least and greatest value
	sparkMax     = 72
)

// block is the run in several lines of at most width columns.
func (w *watched) block(metrics []string, width int) []string {
	lines := []string{w.head()}
	if bar := min(sparkMax, width-2); w.info.Steps > 0 && bar > 10 {
		done := min(bar, bar*w.info.Step/w.info.Steps)
		lines = append(lines, "  "+strings.Repeat("█", done)+strings.Repeat("░", bar-done))
	}
	for _, name := range metrics {
		lines = append(lines, w.metricLine(name, width)...)
	}
	for _, m := range w.info.Eval {
		lines = append(lines, w.metricLine(m.Name, width)...)
	}
	if w.info.EvalStep >= 0 {
		lines = append(lines, fmt.Sprintf("  last evaluation: step %d", w.info.EvalStep))
	}
	if w.info.Failure != "" {
		lines = append(lines, "  "+firstLine(w.info.Failure))
	}
	if w.tail.bad != "" {
		lines = append(lines, "  left out: "+w.tail.bad)
	}
	for i, line := range lines {
		lines[i] = cutTo(line, width)
	}
	return lines
}

// metricLine shows a metric's last value, its course and its range; nothing where
// there are no values.
func (w *watched) metricLine(name string, width int) []string {
	values := w.series(name)
	if len(values) == 0 {
		return nil
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finiteNumber(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	room := min(sparkMax, width-2-nameColumns-valueColumns-rangeColumns)
	line := fmt.Sprintf("  %-*s%*s", nameColumns, name, valueColumns-2, number(values[len(values)-1]))
	if room > 0 {
		line += fmt.Sprintf("  %s  %s to %s", sparkline(values, room), number(low), number(high))
	}
	return []string{line}
}

// number is a value in four significant digits.
func number(v float64) string {
	if !finiteNumber(v) {
		return "-"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// cutTo shortens a line to so many columns. What is shown here takes one column a
// character.
func cutTo(line string, width int) string {
	if width < 1 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}
