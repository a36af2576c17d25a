package eval

import (
	"context"
	"fmt"
	"sync"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval/metrics"
	"github.com/memopd/memopd-bench/trace"
)

// Options says what is evaluated, and how.
type Options struct {
	Policy   agent.Policy
	Searcher agent.Searcher // safe for several goroutines
	Agent    agent.Options
	Tasks    []datasets.Task

	// TimedTasks is how many of the first tasks run once more, each alone, for
	// the inference time; 0 times none.
	TimedTasks int

	// Finished is told of each trajectory that ends, in that order and before the
	// next call, the timed ones' second runs not; nil: nobody.
	Finished func(*trace.Trajectory)

	// Progress is told the tasks done of all that run, the timed ones included;
	// nil: nobody.
	Progress func(done, total int)
}

// Result holds a record a task and what was recorded of it, in the order of the
// tasks.
type Result struct {
	Records      []TaskRecord
	Trajectories []*trace.Trajectory
}

// Run evaluates a policy: all tasks side by side for the scores, then the first
// TimedTasks one by one, since the time of a trajectory that shares the model with others is
// not its own. When ctx ends it returns the context's error.
func Run(ctx context.Context, o Options) (*Result, error) {
	if len(o.Tasks) == 0 {
		return nil, fmt.Errorf("evaluate: no tasks")
	}
	timed := min(o.TimedTasks, len(o.Tasks))
	total := len(o.Tasks) + timed
	report := func(done int) {
		if o.Progress != nil {
			o.Progress(done, total)
		}
	}
	shown := &shownDocuments{inner: o.Searcher, texts: map[string]string{}}
	run := o.Agent
	run.Progress = func(p agent.Progress) {
		report(p.Ended)
		if p.Finished != nil && o.Finished != nil {
			o.Finished(p.Finished)
		}
	}
	trajectories, err := agent.Rollout(ctx, o.Policy, shown, run, agentTasks(o.Tasks)...)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	result := &Result{Trajectories: trajectories}
	for i, t := range trajectories {
		result.Records = append(result.Records, NewTaskRecord(o.Tasks[i], t, shown.of(t)))
	}
	run.Progress = nil
	for i := range timed {
		alone, err := agent.Rollout(ctx, o.Policy, o.Searcher, run, agentTasks(o.Tasks[i:i+1])...)
		if err != nil {
			return nil, fmt.Errorf("evaluate: time task %s: %w", o.Tasks[i].ID, err)
		}
		seconds := metrics.InferenceSeconds(callLengths(alone[0]))
		result.Records[i].InferenceSeconds = &seconds
		report(len(o.Tasks) + i + 1)
	}
	return result, nil
}

// agentTasks is what the agent may know of tasks: no golds.
func agentTasks(tasks []datasets.Task) []agent.Task {
	out := make([]agent.Task, len(tasks))
	for i, t := range tasks {
		out[i] = AgentTask(t)
	}
	return out
}

// AgentTask is what an agent may know of a task: no golds.
func AgentTask(t datasets.Task) agent.Task {
	a := agent.Task{ID: t.ID, World: t.World}
	for _, q := range t.Questions {
		a.Questions = append(a.Questions, q.Question)
	}
	return a
}

// shownDocuments remembers the texts of the documents that searches gave.
type shownDocuments struct {
	inner agent.Searcher
	mu    sync.Mutex
	texts map[string]string // by document ID
}

// Search implements agent.Searcher.
func (s *shownDocuments) Search(ctx context.Context, world, query string, k int) ([]agent.Document, error) {
	docs, err := s.inner.Search(ctx, world, query, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range docs {
		s.texts[d.ID] = d.Title + "\n" + d.Text
	}
	return docs, err
}

// of lists the texts that a trajectory's observations were made from.
func (s *shownDocuments) of(t *trace.Trajectory) []string {
	var out []string
	for _, c := range t.Calls {
		for _, id := range c.Documents {
			out = append(out, s.texts[id])
		}
	}
	return out
}
