package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// collect makes the outcome of the finished parts: records, curves, audits, a sample
// of trajectories, manifest and tables. It is an error when parts are not finished.
func (r *reproduction) collect(ctx context.Context, w io.Writer) error {
	lock, err := awaitLock(ctx, r.store.path("collect", "lock"), func() {})
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	defer lock.Close()
	if err := r.read(); err != nil {
		return err
	}
	c := &collection{r: r, dir: r.o.outcome()}
	if err := c.make(); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	fmt.Fprintf(w, "%s: %d task rows, %d lines of curves, tables in %s\n", c.dir, len(c.evidence.Rows), len(c.evidence.Curves),
		filepath.Join(c.dir, results.TablesFolder))
	var missing []string
	for _, p := range r.parts {
		if r.states[p.name].record == nil {
			missing = append(missing, p.name)
		}
	}
	if missing != nil {
		return fmt.Errorf("%d of %d parts are not in it, for they are not finished, the first of them %s", len(missing), len(r.parts), missing[0])
	}
	return nil
}

// collection is an outcome in the making.
type collection struct {
	r        *reproduction
	dir      string
	evidence results.Evidence
	checks   settingsCheck
}

func (c *collection) make() error {
	runs, err := c.r.o.runs()
	if err != nil {
		return err
	}
	order := map[string]int{}
	for i, run := range runs {
		if _, ok := order[run.name]; !ok {
			order[run.name] = i
		}
	}
	slices.SortStableFunc(runs, func(a, b reproducedRun) int {
		return cmp.Or(cmp.Compare(order[a.name], order[b.name]), cmp.Compare(a.seed, b.seed))
	})
	runs = slices.Compact(runs)
	for _, run := range runs {
		if err := c.addRun(run); err != nil {
			return fmt.Errorf("%s: %w", run.folder(), err)
		}
	}
	if len(c.evidence.Rows) == 0 {
		return errors.New("no evaluation is finished")
	}
	if err := c.addManifest(); err != nil {
		return err
	}
	if err := c.evidence.Write(c.dir); err != nil {
		return err
	}
	if err := c.copyAudits(); err != nil {
		return err
	}
	if err := c.writeTrajectories(runs); err != nil {
		return err
	}
	whole, err := results.LoadEvidence(c.dir)
	if err != nil {
		return err
	}
	tables, err := results.PaperTables(whole)
	if err != nil {
		return err
	}
	return results.WriteTables(filepath.Join(c.dir, results.TablesFolder), tables)
}

func (c *collection) finished(name string) bool {
	s := c.r.states[name]
	return s != nil && s.record != nil
}

// addRun adds a run's curves and task rows, as far as its parts are finished.
func (c *collection) addRun(run reproducedRun) error {
	if c.finished("train/" + run.folder()) {
		if err := c.addTraining(run); err != nil {
			return err
		}
	}
	if !c.finished("eval/" + run.folder()) {
		return nil
	}
	for _, horizon := range c.r.o.Horizon {
		if err := c.addEvaluation(run, horizon); err != nil {
			return fmt.Errorf("%s: %w", horizon, err)
		}
	}
	return nil
}

// addTraining adds a run's curves and holds its settings to those of the variant's
// other seeds.
func (c *collection) addTraining(run reproducedRun) error {
	dir := filepath.Join(c.r.o.Out, c.r.o.Preset, run.folder())
	made, err := readRun(dir)
	if err != nil {
		return err
	}
	if !made.Finished {
		return fmt.Errorf("%s is not finished, though its part is", dir)
	}
	if err := c.checks.add("train", run, made.Manifest); err != nil {
		return err
	}
	records, err := train.ReadRecords(filepath.Join(dir, train.MetricsFile))
	if err != nil {
		return err
	}
	for _, record := range records {
		var metrics map[string]*float64 // what was not finite is null
		data, err := json.Marshal(record)
		if err == nil {
			err = json.Unmarshal(data, &metrics)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, train.MetricsFile), err)
		}
		c.evidence.Curves = append(c.evidence.Curves, results.Curve{Variant: run.name, Seed: int64(run.seed), Metrics: metrics})
	}
	return nil
}

// evalFolder is where bench eval leaves a run's evaluation.
func evalFolder(out, preset, horizon string, run reproducedRun) string {
	return filepath.Join(out, preset, "eval", horizon, run.folder())
}

// addEvaluation adds a run's task rows at a horizon, with the inference time of the
// tasks that were timed.
func (c *collection) addEvaluation(run reproducedRun, horizon string) error {
	o := c.r.o
	records, err := c.taskRecords("eval", run, evalFolder(o.Out, o.Preset, horizon, run))
	if err != nil {
		return err
	}
	if c.finished("time/" + run.folder()) {
		dir := evalFolder(o.timeFolder(), o.Preset, horizon, run)
		timed, err := c.taskRecords("time", run, dir)
		if err != nil {
			return err
		}
		at := map[string]int{}
		for i, r := range records {
			at[r.TaskID] = i
		}
		for _, t := range timed {
			i, ok := at[t.TaskID]
			if !ok {
				return fmt.Errorf("%s: task %s was timed and not evaluated", dir, t.TaskID)
			}
			records[i].InferenceSeconds = t.InferenceSeconds
		}
	}
	c.evidence.Rows = append(c.evidence.Rows, taskRows(subject{variant: run.name, seed: int64(run.seed)}, horizon, records)...)
	return nil
}

// taskRecords reads an evaluation and holds its settings to those of the variant's
// other seeds.
func (c *collection) taskRecords(kind string, run reproducedRun, dir string) ([]eval.TaskRecord, error) {
	var m results.Manifest
	path := filepath.Join(dir, manifestFile)
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := c.checks.add(kind, run, &m); err != nil {
		return nil, err
	}
	return results.ReadJSONL[eval.TaskRecord](filepath.Join(dir, "tasks.jsonl"))
}
