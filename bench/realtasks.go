package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval/oracle"
)

// realTasks are tasks of real questions, as bench data build leaves them in a
// folder. Training tasks are drawn anew from the training questions.
type realTasks struct {
	dir       string
	seed      uint64
	questions []datasets.Question // of the training split

	oracle *oracle.Oracle
	solved []solved // what the oracle can answer; made when it is first asked
}

// solved is a question with the oracle's plan.
type solved struct {
	question datasets.Question
	plan     oracle.Plan
}

// readRealTasks opens a folder of composed tasks.
func readRealTasks(dir string, seed uint64) (*realTasks, error) {
	m, err := datasets.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no tasks of real questions: make them with bench data build --dir %s", dir, dir)
	}
	if err != nil {
		return nil, err
	}
	if m.Kind != "composed" {
		return nil, fmt.Errorf("%s holds the tasks of a %s, not of real questions (bench data build makes those)", dir, m.Kind)
	}
	r := &realTasks{dir: dir, seed: seed}
	seen := map[string]bool{}
	for _, out := range m.Outputs {
		if out.Split != datasets.Train || out.Horizon == 0 {
			continue
		}
		for t, err := range datasets.ReadTasks(filepath.Join(dir, out.Path), datasets.Options{}) {
			if err != nil {
				return nil, err
			}
			for _, q := range t.Questions {
				if key := datasets.Key(q); !seen[key] {
					seen[key] = true
					r.questions = append(r.questions, q)
				}
			}
		}
	}
	return r, nil
}

// Task implements taskSet: n training questions, drawn by the seed and i.
func (r *realTasks) Task(i uint64, n int) (datasets.Task, error) {
	picked, err := pick(r.questions, r.seed, i, n)
	if err != nil {
		return datasets.Task{}, fmt.Errorf("%s: training: %w", r.dir, err)
	}
	return datasets.Task{ID: fmt.Sprintf("train/draw%d/%s/%d", r.seed, datasets.HorizonName(n), i), World: picked[0].World, Questions: picked}, nil
}

// pick draws n items of a list, none twice.
func pick[T any](list []T, seed, i uint64, n int) ([]T, error) {
	if n > len(list) {
		return nil, fmt.Errorf("%d questions, too few for a task of %d", len(list), n)
	}
	rng := rand.New(rand.NewPCG(seed, i<<8|uint64(n&0xff)))
	taken := make(map[int]bool, n)
	out := make([]T, 0, n)
	for len(out) < n {
		if at := rng.IntN(len(list)); !taken[at] {
			taken[at] = true
			out = append(out, list[at])
		}
	}
	return out, nil
}

// Composed implements taskSet.
func (r *realTasks) Composed(split datasets.Split, n, limit int) ([]datasets.Task, error) {
	path := filepath.Join(r.dir, datasets.TasksName(split, n))
	tasks, err := readTasks(path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no tasks of %s for %s in %s: make them with bench data build --horizon %s", datasets.HorizonName(n), split, r.dir, datasets.HorizonName(n))
	}
	return tasks, err
}

// readTasks reads the first limit tasks of a file, 0 for all.
func readTasks(path string, limit int) ([]datasets.Task, error) {
	var tasks []datasets.Task
	for t, err := range datasets.ReadTasks(path, datasets.Options{}) {
		if err != nil {
			return nil, err
		}
		if tasks = append(tasks, t); len(tasks) == limit {
			break
		}
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("%s holds no tasks", path)
	}
	return tasks, nil
}

// useOracle makes examples possible.
func (r *realTasks) useOracle(s agent.Searcher, p agent.Protocol) { r.oracle = oracle.New(s, p) }

// Example implements taskSet: training questions that the oracle can answer.
func (r *realTasks) Example(ctx context.Context, draw uint64, n int) (datasets.Task, []string, error) {
	if err := r.solve(ctx); err != nil {
		return datasets.Task{}, nil, err
	}
	picked, err := pick(r.solved, r.seed, draw, n)
	if err != nil {
		return datasets.Task{}, nil, fmt.Errorf("%s: oracle: %w", r.dir, err)
	}
	task := datasets.Task{ID: fmt.Sprintf("train/oracle%d/%s/%x", r.seed, datasets.HorizonName(n), draw)}
	var plans []oracle.Plan
	for _, s := range picked {
		task.World = s.question.World
		task.Questions = append(task.Questions, s.question)
		plans = append(plans, s.plan)
	}
	return task, oracle.Responses(plans), nil
}

// solve plans every training question once and tells how many have to be left out.
func (r *realTasks) solve(ctx context.Context) error {
	if r.solved != nil {
		return nil
	}
	bar := newProgress("oracle (questions)", int64(len(r.questions)))
	counts := map[oracle.Reason]int{}
	for i, q := range r.questions {
		plan, why, err := r.oracle.Question(ctx, q)
		if err != nil {
			return err
		}
		if counts[why]++; why == "" {
			r.solved = append(r.solved, solved{q, plan})
		}
		bar.set(int64(i + 1))
	}
	bar.done()
	note("oracle: %d of %d training questions kept%s", len(r.solved), len(r.questions), leftOut(counts))
	if len(r.solved) == 0 {
		return fmt.Errorf("%s: the oracle can answer none of %d training questions: it needs files that name the passages of the evidence (HotpotQA, nq-open-oracle), or take a teacher's trajectories (--examples)", r.dir, len(r.questions))
	}
	return nil
}

// leftOut lists the counts of what was left out, in a fixed order.
func leftOut(counts map[oracle.Reason]int) string {
	var parts []string
	for _, why := range []oracle.Reason{oracle.NoEvidence, oracle.NotRetrieved, oracle.NotShown, oracle.HoldsTag} {
		if n := counts[why]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, why))
		}
	}
	if parts == nil {
		return ""
	}
	return "; left out: " + strings.Join(parts, ", ")
}
