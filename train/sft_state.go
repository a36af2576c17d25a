package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/memopd/memopd-bench/model"
)

// sftLine are the metrics of SFT's line on the terminal.
var sftLine = []string{StepMetric, "train/loss", "train/copy_loss", "train/grad_norm", "train/lr", "perf/throughput"}

// SFTLine renders a record of SFT for the terminal.
func SFTLine(r Record) string {
	if _, ok := r.Get("train/loss"); ok {
		return r.Line(sftLine...)
	}
	return evalLine(r)
}

// evalLine renders a record of an evaluation, all of it.
func evalLine(r Record) string { return "eval " + r.Line() }

// record reports the window and opens the next.
func (r *sftRun) record() error {
	w := r.state.Window
	mean := func(sum float64, n int) float64 {
		if n == 0 {
			return math.NaN()
		}
		return sum / float64(n)
	}
	var m Record
	m.Set(StepMetric, float64(r.state.Step))
	m.Set("train/loss", mean(w.Loss, w.LossTokens))
	if w.DrillTokens > 0 {
		m.Set("train/copy_loss", mean(w.Drill, w.DrillTokens))
	}
	m.Set("train/grad_norm", mean(w.Norm, w.Steps))
	m.Set("train/lr", r.c.LearningRate*CosineSchedule(r.state.Step-1, r.c.Steps, r.c.WarmupSteps, r.c.LearningRateFloor))
	m.Set("train/tokens", float64(r.state.Tokens))
	m.Set("align/rejected", float64(r.state.Rejected+r.pool.rejected))
	m.Set("perf/throughput", float64(w.Tokens)/w.Seconds)
	m.Set("timing_s/data", w.DataSeconds)
	m.Set("timing_s/window", w.Seconds)
	r.state.Window = sftWindow{}
	return r.emit(m)
}

func (r *sftRun) emit(m Record) error {
	if r.p.Log != nil {
		r.p.Log(m)
	}
	if err := appendRecord(filepath.Join(r.p.Dir, MetricsFile), m); err != nil {
		return err
	}
	return appendEvents(r.events, m)
}

// evaluate runs the evaluation that is due after the steps so far, once.
func (r *sftRun) evaluate(ctx context.Context) error {
	step := r.state.Step
	due := r.c.EvalEvery > 0 && step > 0 && (step%r.c.EvalEvery == 0 || step == r.c.Steps)
	if r.p.Eval == nil || !due || r.evaluated == step {
		return nil
	}
	scores, err := r.p.Eval(ctx, step, r.model)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), r.save(true))
	}
	if err != nil {
		return err
	}
	r.evaluated = step
	m := Record{{StepMetric, float64(step)}}
	return r.emit(append(m, scores...))
}

// save writes the snapshot and the checkpoint that are due. force writes a
// checkpoint in any case.
func (r *sftRun) save(force bool) error {
	step := r.state.Step
	if slices.Contains(r.c.SnapshotSteps, step) || step == r.c.Steps {
		if err := writeFolder(SnapshotPath(r.p.Dir, step), func(dir string) error { return r.p.Save(dir, r.model) }); err != nil {
			return err
		}
	}
	if !force && step%r.c.CheckpointEvery != 0 && step != r.c.Steps {
		return nil
	}
	err := writeFolder(CheckpointPath(r.p.Dir, step), func(dir string) error {
		if err := r.p.Save(filepath.Join(dir, "actor"), r.model); err != nil {
			return err
		}
		if err := r.optimizer.save(filepath.Join(dir, "optimizer.safetensors")); err != nil {
			return err
		}
		return writeJSON(filepath.Join(dir, "state.json"), r.state)
	})
	if err != nil {
		return err
	}
	return pruneCheckpoints(r.p.Dir, 0)
}

// SnapshotPath is the folder of a model that SFT keeps for good.
func SnapshotPath(run string, step int) string {
	return filepath.Join(run, "snapshots", fmt.Sprintf("%s%06d", checkpointPrefix, step))
}

// load takes up the run from a checkpoint's folder.
func (r *sftRun) load(from string) error {
	var saved sftState
	if err := readJSON(filepath.Join(from, "state.json"), &saved); err != nil {
		return err
	}
	if saved.Schema != checkpointSchema {
		return fmt.Errorf("schema version %d, want %d", saved.Schema, checkpointSchema)
	}
	if err := sameConfig(saved.Config, r.c, "log_every", "eval_every", "checkpoint_every", "snapshot_steps"); err != nil {
		return err
	}
	r.state = saved
	r.state.Config = r.c
	d, err := model.Load(filepath.Join(from, "actor"), r.c.Trained())
	if err != nil {
		return err
	}
	if err := d.LimitVocab(r.p.Model.Vocab()); err != nil {
		return err
	}
	r.model = d
	r.optimizer = newOptimizer(r.model.Parameters(), r.adam())
	if err := r.optimizer.load(filepath.Join(from, "optimizer.safetensors")); err != nil {
		return err
	}
	records, err := rewindRecords(filepath.Join(r.p.Dir, MetricsFile), saved.Step)
	if err != nil {
		return err
	}
	r.evaluated = lastEvaluation(records, "train/loss")
	return nil
}

// lastEvaluation is the step of the last record that is no training record,
// which the metric named tells; -1 when there is none.
func lastEvaluation(records []Record, trainingMetric string) int {
	last := -1
	for _, m := range records {
		if _, ok := m.Get(trainingMetric); !ok {
			step, _ := m.Get(StepMetric)
			last = int(step)
		}
	}
	return last
}
