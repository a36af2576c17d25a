package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/trace"
)

// taskSet is a world of questions: the mini-wiki's or real ones.
type taskSet interface {
	// Task is training task i with n questions, the same whenever it is asked.
	Task(i uint64, n int) (datasets.Task, error)
	// Composed lists the first limit tasks (0: all) of a split with n questions each.
	Composed(split datasets.Split, n, limit int) ([]datasets.Task, error)
	// Example is a training task drawn by a number, with the responses of an oracle
	// that solves it.
	Example(ctx context.Context, draw uint64, n int) (datasets.Task, []string, error)
}

// environment is where agents work: tasks, the index that they are searched in,
// and how the model is spoken to.
type environment struct {
	taskSet
	*dialect
	index    passages
	dataFile string // whose hash stands for the data in manifests
	rows     int    // calls that are sampled at once
	dev      []devSet
}

// devSet is how many dev tasks of a horizon a model is scored on while it trains.
type devSet struct{ questions, tasks int }

// work says which environment is opened.
type work struct {
	preset   string
	data     string
	seed     uint64 // of the training tasks
	speaking speaking
	model    string // path of a model whose tokenizer and chat template are spoken; not for the mini-wiki
	dev      devSet // on real questions; no tasks: none
}

// openEnvironment opens the mini-wiki, which is made if need be, or real tasks.
func openEnvironment(ctx context.Context, w work) (*environment, error) {
	if onWiki(w.preset) {
		return openWiki(ctx, w.data, miniwiki.DefaultConfig(), w.seed, w.speaking)
	}
	d, err := modelDialect(w.speaking, w.model)
	if err != nil {
		return nil, err
	}
	e, err := openReal(ctx, w.data, w.speaking, w.seed, d.agent.Protocol)
	if err != nil {
		return nil, err
	}
	e.dialect, e.rows = d, w.speaking.Rows
	if w.dev.tasks > 0 {
		e.dev = []devSet{w.dev}
	}
	return e, nil
}

// openReal opens tasks that bench data build or compose has made, with the index
// beside them or the server in its place.
func openReal(ctx context.Context, dir string, s speaking, seed uint64, protocol agent.Protocol) (*environment, error) {
	tasks, err := readRealTasks(dir, seed)
	if err != nil {
		return nil, err
	}
	index, err := s.openPassages(ctx, filepath.Join(dir, indexFolder))
	if errors.Is(err, retriever.ErrNoIndex) {
		return nil, fmt.Errorf("%w: make it with bench data build or bench index --dir %s", err, filepath.Join(dir, indexFolder))
	}
	if err != nil {
		return nil, err
	}
	tasks.useOracle(searcher{index}, protocol)
	return &environment{taskSet: tasks, index: index, dataFile: filepath.Join(dir, datasets.ManifestName)}, nil
}

// Close releases the index.
func (e *environment) Close() error { return e.index.Close() }

// horizonShare is how often tasks with so many questions are drawn.
type horizonShare struct {
	Questions int
	Share     float64
}

// oracleSource makes SFT trajectories: the oracle's responses, run through the
// agent and the index as a model's would be, at a mix of horizons.
func (e *environment) oracleSource(ctx context.Context, mix []horizonShare) func(seed uint64) (*trace.Trajectory, error) {
	return func(seed uint64) (*trace.Trajectory, error) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := mix[len(mix)-1].Questions
		for x, i := rng.Float64(), 0; i < len(mix); i++ {
			if x -= mix[i].Share; x < 0 {
				n = mix[i].Questions
				break
			}
		}
		task, responses, err := e.Example(ctx, rng.Uint64(), n)
		if err != nil {
			return nil, err
		}
		return e.script(ctx, task, responses)
	}
}

// script runs an oracle's responses on one task. Responses that the protocol's
// limits cut are an error: what they teach would be wrong.
func (e *environment) script(ctx context.Context, task datasets.Task, responses []string) (*trace.Trajectory, error) {
	policy := agent.NewScript(e.tokenizer, map[string][]string{task.ID: responses})
	options := e.agent
	options.Searches, options.Model = 1, "oracle"
	out, err := agent.Rollout(ctx, policy, searcher{e.index}, options, eval.AgentTask(task))
	if err != nil {
		return nil, err
	}
	if t := out[0]; t.End != trace.EndAnswered {
		reason := t.Error
		if last := len(t.Calls) - 1; reason == "" && last >= 0 {
			reason = fmt.Sprintf("call %d: %s after %d tokens", last, t.Calls[last].Reason, len(t.Calls[last].Output))
		}
		return nil, fmt.Errorf("task %s: the oracle's responses end as %s, not answered (%s): are --response-tokens or --turns-per-question too few?", task.ID, t.End, reason)
	}
	return out[0], nil
}
