package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memopd/memopd-bench/train"
)

// runState says how it stands with a run.
type runState string

const (
	stateRunning  runState = "running"  // a process holds its folder's lock
	stateFinished runState = "finished" // the model is there
	stateFailed   runState = "failed"   // it ended with an error
	stateStopped  runState = "stopped"  // interrupted or killed: --resume goes on
)

// runInfo is what a run's folder says.
type runInfo struct {
	Folder     string       `json:"folder"`
	Preset     string       `json:"preset"`
	Variant    string       `json:"variant"` // the folder's name: a variant, a --name, or pretrain
	Seed       int64        `json:"seed"`
	State      runState     `json:"state"`
	Failure    string       `json:"failure,omitempty"`
	Step       int          `json:"step"`       // of the last record
	Steps      int          `json:"steps"`      // that it is to have; 0: not known
	Checkpoint int          `json:"checkpoint"` // step that it can be resumed from; 0: none
	EvalStep   int          `json:"eval_step"`  // of the last dev evaluation; -1: none
	Eval       train.Record `json:"eval"`       // its F1 by horizon
	Commit     string       `json:"commit"`
	Dirty      bool         `json:"dirty"`
	Started    time.Time    `json:"started,omitzero"`
	Updated    time.Time    `json:"updated,omitzero"` // of the last record

	config any
}

// name is the run's place below the folder of runs.
func (r *runInfo) name() string { return fmt.Sprintf("%s/%s/seed-%d", r.Preset, r.Variant, r.Seed) }

// inspectRun reads a run's folder. Its metrics may be a file that is being written.
func inspectRun(dir string) (*runInfo, error) {
	tail := metricsTail{path: filepath.Join(dir, train.MetricsFile)}
	if _, err := tail.read(); err != nil {
		return nil, err
	}
	return inspectWith(dir, &tail)
}

// inspectWith is inspectRun where the metrics are known.
func inspectWith(dir string, tail *metricsTail) (*runInfo, error) {
	r := &runInfo{Folder: dir, EvalStep: -1, Eval: train.Record{}, Updated: tail.written}
	if err := r.place(dir); err != nil {
		return nil, err
	}
	run, err := readRun(dir)
	finished := false
	switch {
	case err == nil:
		finished, r.Failure = run.Finished, run.Failure
		m := run.Manifest
		r.Commit, r.Dirty, r.Started, r.config = m.Commit, m.Dirty, m.Started, m.Config
		r.Steps = plannedSteps(m.Config)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default: // pretraining of before there was a run.json for it
		_, err := os.Stat(filepath.Join(dir, pretrainFile))
		finished = err == nil
	}
	held, err := lockHeld(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case held:
		r.State = stateRunning
	case finished:
		r.State = stateFinished
	case r.Failure != "":
		r.State = stateFailed
	default:
		r.State = stateStopped
	}
	if _, r.Checkpoint, err = train.LatestCheckpoint(dir); err != nil && !errors.Is(err, train.ErrNoCheckpoint) {
		return nil, err
	}
	r.measured(tail.records)
	return r, nil
}

// place takes preset, variant and seed from the folder's path.
func (r *runInfo) place(dir string) error {
	full, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	r.Variant = filepath.Base(filepath.Dir(full))
	r.Preset = filepath.Base(filepath.Dir(filepath.Dir(full)))
	digits, ok := strings.CutPrefix(filepath.Base(full), "seed-")
	if r.Seed, err = strconv.ParseInt(digits, 10, 64); !ok || err != nil {
		return fmt.Errorf("%s is no run's folder: runs are kept as PRESET/VARIANT/seed-N", dir)
	}
	return nil
}

// measured takes steps and the last evaluation from the records.
func (r *runInfo) measured(records []train.Record) {
	for _, m := range records {
		step, _ := m.Get(train.StepMetric)
		r.Step = max(r.Step, int(step))
		if isEvaluation(m) {
			r.EvalStep, r.Eval = int(step), evaluationOf(m)
		}
	}
}

// plannedSteps is the setting steps of a configuration, 0 without one.
func plannedSteps(config any) int {
	all, err := settings(config)
	if err != nil {
		return 0
	}
	steps, err := strconv.Atoi(all["steps"])
	if err != nil {
		return 0
	}
	return steps
}

// evalPrefix begins the metrics of dev evaluations.
const evalPrefix = "eval/"

// isEvaluation tells the record of a dev evaluation from a training step's.
func isEvaluation(m train.Record) bool { return len(evaluationOf(m)) > 0 }

func evaluationOf(m train.Record) train.Record {
	return slices.DeleteFunc(slices.Clone(m), func(x train.Metric) bool { return !strings.HasPrefix(x.Name, evalPrefix) })
}

// findRuns lists the folders of runs below the folder of runs, in order of their names
// and seeds.
func findRuns(out string) ([]string, error) {
	return globRuns(filepath.Join(out, "*", "*", "seed-*"))
}

// globRuns lists the runs of a pattern of folders, by folder and seed.
func globRuns(pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("runs %q: %w", pattern, err)
	}
	found = slices.DeleteFunc(found, func(dir string) bool { return !isRun(dir) })
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(filepath.Dir(a), filepath.Dir(b)), cmp.Compare(seedOf(a), seedOf(b)))
	})
	return found, nil
}

func seedOf(dir string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "seed-"))
	if err != nil {
		return -1
	}
	return n
}

// isRun says whether a folder holds a run.
func isRun(dir string) bool {
	if seedOf(dir) < 0 {
		return false
	}
	for _, name := range []string{runFile, train.MetricsFile, pretrainFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

// locateRuns finds what an argument names, by its path or by the end of the path
// below the folder of runs: a run (memopd/seed-3), or all seeds of a variant.
func locateRuns(out, arg string) ([]string, error) {
	for _, place := range []string{arg, filepath.Join(out, arg)} {
		if runs, err := runsAt(place); err != nil || runs != nil {
			return runs, err
		}
	}
	places, err := filepath.Glob(filepath.Join(out, "*", arg))
	if err != nil {
		return nil, fmt.Errorf("run %q: %w", arg, err)
	}
	var matches [][]string
	for _, place := range places {
		runs, err := runsAt(place)
		if err != nil {
			return nil, err
		}
		if runs != nil {
			matches = append(matches, runs)
		}
	}
	switch len(matches) {
	case 0:
		return nil, unknownRun(out, arg)
	case 1:
		return matches[0], nil
	}
	return nil, fmt.Errorf("run %q is in several presets (%s, %s): put the preset before it", arg, filepath.Dir(matches[0][0]), filepath.Dir(matches[1][0]))
}

// runsAt is the run in a folder, or the runs of all seeds of the variant in it; nil
// where there is none.
func runsAt(place string) ([]string, error) {
	if isRun(place) {
		return []string{place}, nil
	}
	runs, err := globRuns(filepath.Join(place, "seed-*"))
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return runs, nil
}

// unknownRun is the error for a run that is not there.
func unknownRun(out, arg string) error {
	known, err := findRuns(out)
	if err != nil {
		return err
	}
	if len(known) == 0 {
		return fmt.Errorf("unknown run %q: there are no runs under %s (--out names another folder)", arg, out)
	}
	return unknownName("run", arg, known)
}
