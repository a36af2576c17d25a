package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// subject is what is evaluated: a model, a script, a server.
type subject struct {
	variant string
	seed    int64
	from    string // what was loaded, for the records
	update  string // the context update that it was trained with, "": not known
	open    func(tasks []datasets.Task, sampling trace.Sampler) (*opened, error)
}

// opened is a subject ready for work.
type opened struct {
	policy  agent.Policy
	agent   agent.Options // Protocol, Tokenizer, EncodePrefix, ContextTokens, Model
	untimed bool          // its time says nothing
	close   func()
}

// loader loads models with the way they are spoken to.
type loader interface {
	at(path string) loadFunc
	builtin(role string) loadFunc
}

type loadFunc func() (*model.Decoder, *dialect, error)

// sampled opens a subject that is a model of ours behind a sampler.
func (o evalOptions) sampled(from string, load loadFunc) func([]datasets.Task, trace.Sampler) (*opened, error) {
	return func(_ []datasets.Task, sampling trace.Sampler) (*opened, error) {
		m, d, err := load()
		if err != nil {
			return nil, err
		}
		policy, err := model.NewSampler(m, sampling, o.Rows)
		if err != nil {
			m.Free()
			return nil, err
		}
		options := d.agent
		options.ContextTokens, options.Model = m.Config.MaxPositionEmbeddings, from
		return &opened{policy: policy, agent: options, close: m.Free}, nil
	}
}

// evalRun evaluates subjects on the tasks of one horizon.
type evalRun struct {
	options  evalOptions
	horizon  string
	tasks    []datasets.Task
	searcher agent.Searcher
	dataHash string // file whose hash stands for the data
	sampling trace.Sampler
	dir      string
}

// all evaluates the subjects one after another.
func (r evalRun) all(ctx context.Context, subjects []subject) ([]results.TaskRow, error) {
	var rows []results.TaskRow
	for _, s := range subjects {
		got, err := r.evaluate(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s, seed %d, %s: %w", s.variant, s.seed, r.horizon, err)
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

// evaluate runs one subject and writes DIR/VARIANT/seed-N/: tasks.jsonl,
// manifest.json and, if asked for, the ledger. What had ended when it was broken off is kept too.
func (r evalRun) evaluate(ctx context.Context, s subject) ([]results.TaskRow, error) {
	if r.options.Update = cmp.Or(r.options.Update, s.update, defaultUpdate); r.options.Update != defaultUpdate {
		note("%s seed %d %s: context update %s", s.variant, s.seed, r.horizon, r.options.Update)
	}
	update, err := r.options.update()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.from, err)
	}
	opened, err := s.open(r.tasks, r.sampling)
	if err != nil {
		return nil, err
	}
	defer opened.close()
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&r.options)), libtorch())
	if err := manifest.AddFile("data", r.dataHash); err != nil {
		return nil, err
	}
	timed := min(r.options.TimedTasks, len(r.tasks))
	if opened.untimed {
		timed = 0
	}
	options := opened.agent
	options.Update, options.Sampler = update, r.sampling
	bar := newProgress(fmt.Sprintf("%s seed %d %s (tasks, %d of them once more for the time)", s.variant, s.seed, r.horizon, timed), int64(len(r.tasks)+timed))
	dir := filepath.Join(r.dir, s.variant, fmt.Sprintf("seed-%d", s.seed))
	var ended []*trace.Trajectory
	result, err := eval.Run(ctx, eval.Options{
		Policy: opened.policy, Searcher: r.searcher, Agent: options, Tasks: r.tasks, TimedTasks: timed,
		Progress: func(done, total int) { bar.set(int64(done)) },
		Finished: func(t *trace.Trajectory) { ended = append(ended, t) },
	})
	bar.done()
	if err != nil {
		return nil, errors.Join(err, keepEnded(dir, ended))
	}
	if err := r.write(dir, result); err != nil {
		return nil, err
	}
	if err := manifest.Write(filepath.Join(dir, manifestFile)); err != nil {
		return nil, err
	}
	r.noteRecall(s, result.Records)
	return taskRows(s, r.horizon, result.Records), r.checkFailures(s, result.Trajectories)
}

const (
	manifestFile = "manifest.json"
	partialFile  = "ledger.partial.jsonl" // of an evaluation that was broken off
)

// write replaces what an earlier evaluation left in dir, but for the manifest, which is written
// last and without which nothing is there.
func (r evalRun) write(dir string, result *eval.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "ledger.*"))
	if err != nil {
		return err
	}
	for _, path := range append(old, filepath.Join(dir, manifestFile)) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := writeRecords(filepath.Join(dir, "tasks.jsonl"), result.Records); err != nil {
		return err
	}
	if r.options.Ledger == "" {
		return nil
	}
	return trace.WriteAll(filepath.Join(dir, "ledger."+r.options.Ledger), result.Trajectories)
}

// keepEnded writes what ended before an evaluation was broken off; failures are left out, since
// most of them are the breaking off itself.
func keepEnded(dir string, ended []*trace.Trajectory) error {
	ended = slices.DeleteFunc(ended, func(t *trace.Trajectory) bool { return t.End == trace.EndCancelled || t.End == trace.EndModelError })
	if len(ended) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, partialFile)
	if err := trace.WriteAll(path, ended); err != nil {
		return err
	}
	note("the %d trajectories that had ended are in %s", len(ended), path)
	return nil
}

// checkFailures says how many tasks the model or its server failed; it is an error if there is no other.
func (r evalRun) checkFailures(s subject, trajectories []*trace.Trajectory) error {
	failed, first := 0, ""
	for _, t := range trajectories {
		if t.End == trace.EndModelError {
			failed++
			first = cmp.Or(first, t.Error)
		}
	}
	if failed == len(trajectories) {
		return fmt.Errorf("all %d tasks failed, the first: %s", failed, first)
	}
	if failed > 0 {
		note("%s seed %d %s: %d of %d tasks failed and count as wrong and of no length, the first: %s", s.variant, s.seed, r.horizon, failed, len(trajectories), first)
	}
	return nil
}

// noteRecall says how much of what was asked retrieval brought up, and how the
// tasks ended.
func (r evalRun) noteRecall(s subject, records []eval.TaskRecord) {
	sum, answered, failures := 0.0, 0, 0
	for _, rec := range records {
		sum += rec.Recall
		failures += rec.RetrievalFailures
		if rec.End == trace.EndAnswered {
			answered++
		}
	}
	note("%s seed %d %s: retrieval recall %.3f (questions with a gold in a document shown), %d of %d tasks answered",
		s.variant, s.seed, r.horizon, sum/float64(len(records)), answered, len(records))
	if failures > 0 {
		note("%s seed %d %s: %d searches failed and were told to the agent", s.variant, s.seed, r.horizon, failures)
	}
}

// writeRecords replaces a file of records.
func writeRecords(path string, records []eval.TaskRecord) error {
	var b strings.Builder
	for _, rec := range records {
		line, err := json.Marshal(rec)
		if err != nil {
			return fmt.Errorf("record of task %s: %w", rec.TaskID, err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return results.WriteFile(path, []byte(b.String()))
}

func taskRows(s subject, horizon string, records []eval.TaskRecord) []results.TaskRow {
	rows := make([]results.TaskRow, len(records))
	for i, r := range records {
		rows[i] = results.TaskRow{
			Variant: s.variant, Seed: s.seed, Horizon: horizon, TaskID: r.TaskID, End: string(r.End), Calls: r.Calls,
			Values: results.Values{
				EM: r.EM, F1: r.F1, EMMEM1: r.EMMem1, F1MEM1: r.F1Mem1,
				PeakContext: float64(r.PeakContext), Dependency: r.Dependency, InferenceSeconds: r.InferenceSeconds,
			},
		}
	}
	return rows
}
