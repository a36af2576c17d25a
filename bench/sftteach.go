package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/remote"
	"github.com/memopd/memopd-bench/trace"
)

// teaching is a run of bench data sft.
type teaching struct {
	options  sftOptions
	dialect  *dialect
	agent    agent.Options
	chat     *remote.Chat
	order    []*taskState // tasks in the order of their files
	states   map[string]*taskState
	seen     map[[32]byte]bool // trajectories that are kept, by what they hold
	kept     *trace.Appender
	rejected *trace.Appender
	report   sftReport
}

// taskState is how far a task is.
type taskState struct {
	task  datasets.Task
	kept  int
	spent int // attempts that count
	next  int // number of its next attempt: each has a seed and an id of its own
}

func (t *teaching) done(s *taskState) bool {
	return s.kept >= t.options.Keep || s.spent >= t.options.Attempts
}

// taskOf is the state of a trajectory's task; one that is not among this run's
// tasks gets a state that nothing asks for.
func (t *teaching) taskOf(tr *trace.Trajectory) *taskState {
	s := t.states[tr.TaskID]
	if s == nil {
		s = &taskState{}
		t.states[tr.TaskID] = s
	}
	return s
}

// takeKept counts a trajectory of the ledger.
func (t *teaching) takeKept(tr *trace.Trajectory) {
	s := t.taskOf(tr)
	s.kept, s.spent, s.next = s.kept+1, s.spent+1, s.next+1
	t.seen[contents(tr)] = true
	t.report.addKept(tr)
}

// takeRejected counts a rejected trajectory of an earlier run. One that failed is
// asked for again.
func (t *teaching) takeRejected(tr *trace.Trajectory) {
	s := t.taskOf(tr)
	v := t.judge(s.task, tr)
	if s.next++; v != verdictFailed {
		s.spent++
	}
	t.report.addRejected(tr, v)
}

// close closes the ledgers.
func (t *teaching) close() error {
	var errs []error
	for _, a := range []*trace.Appender{t.kept, t.rejected} {
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	return errors.Join(errs...)
}

// round picks tasks for the next rollout: not done, and with the same number of
// attempts behind them, the lowest there is. They are few enough that
// trajectories in memory stay few, and enough that all requests are used.
func (t *teaching) round() []*taskState {
	number := -1
	var picked []*taskState
	for _, s := range t.order {
		if t.done(s) {
			continue
		}
		if number < 0 || s.next < number {
			number, picked = s.next, nil
		}
		if s.next == number {
			picked = append(picked, s)
		}
	}
	return picked[:min(len(picked), max(64, 8*t.options.Requests))]
}

// run asks until every task is done or enough is kept.
func (t *teaching) run(ctx context.Context, search agent.Searcher) error {
	server, err := t.chat.Connect(ctx)
	if err != nil {
		return err
	}
	t.report.Teacher = server.Model
	t.agent.Model = "teacher " + server.Model
	bar := newProgress("teacher (tasks done)", int64(len(t.order)))
	defer bar.done()
	bar.set(t.tasksDone())
	for {
		tasks := t.round()
		if len(tasks) == 0 || t.options.Examples > 0 && t.report.Examples >= t.options.Examples {
			t.report.Requests = t.chat.Stats()
			return nil
		}
		err := t.rollout(ctx, search, tasks, func(line string) {
			bar.set(t.tasksDone())
			if line != "" {
				bar.say(line)
			}
		})
		t.report.Requests = t.chat.Stats()
		if err != nil {
			return err
		}
		if err := t.writeReport(); err != nil {
			return err
		}
	}
}

func (t *teaching) tasksDone() int64 {
	n := int64(0)
	for _, s := range t.order {
		if t.done(s) {
			n++
		}
	}
	return n
}

// rollout makes one attempt at each of the tasks and writes the trajectories as
// they end.
func (t *teaching) rollout(ctx context.Context, search agent.Searcher, tasks []*taskState, tell func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	number := tasks[0].next
	shown := make([]agent.Task, len(tasks))
	for i, s := range tasks {
		shown[i] = eval.AgentTask(s.task)
	}
	o := t.agent
	o.IDPrefix = fmt.Sprintf("sft/seed%d/attempt%d/", t.options.Seed, number)
	// Each attempt draws with a seed of its own, whatever was asked before it.
	o.Sampler = trace.Sampler{Greedy: t.options.Temperature == 0, Temperature: t.options.Temperature, TopP: t.options.TopP, Seed: t.options.Seed + uint64(number)<<32}
	var failed []*trace.Trajectory
	var writing error
	o.Progress = func(p agent.Progress) {
		tr := p.Finished
		switch {
		case tr == nil || writing != nil || tr.End == trace.EndCancelled:
			return
		case tr.End == trace.EndModelError:
			failed = append(failed, tr) // or it was broken off with the run, which is known at its end
			return
		}
		if writing = t.take(tr); writing != nil {
			cancel()
			return
		}
		tell(t.report.milestone())
	}
	_, err := agent.Rollout(ctx, t.chat, search, o, shown...)
	if writing != nil {
		return writing
	}
	if err != nil {
		return err
	}
	for _, tr := range failed {
		if err := t.take(tr); err != nil {
			return err
		}
	}
	tell("")
	return nil
}

// take judges a trajectory and writes it to the ledger that it belongs to.
func (t *teaching) take(tr *trace.Trajectory) error {
	s := t.taskOf(tr)
	if err := reward("f1", []datasets.Task{s.task}, []*trace.Trajectory{tr}); err != nil {
		return err
	}
	v := t.judge(s.task, tr)
	ledger := t.rejected
	if v == verdictKept {
		ledger = t.kept
	}
	if err := ledger.Write(tr); err != nil {
		return err
	}
	s.next, s.spent = s.next+1, s.spent+1
	if v == verdictKept {
		s.kept++
		t.seen[contents(tr)] = true
		t.report.addKept(tr)
		return nil
	}
	t.report.addRejected(tr, v)
	return nil
}

// judge finds the first filter that drops a trajectory.
func (t *teaching) judge(task datasets.Task, tr *trace.Trajectory) verdict {
	o := t.options
	switch {
	case slices.Contains([]trace.End{trace.EndModelError, trace.EndRetrieval, trace.EndContext, trace.EndUpdate}, tr.End):
		return verdictFailed
	case tr.End == trace.EndUnusable && tr.Calls[len(tr.Calls)-1].Stop == trace.StopLength:
		return verdictTruncated
	case tr.End == trace.EndUnusable:
		return verdictUnusable
	case tr.End != trace.EndAnswered:
		return verdictUnanswered
	case o.Strict && slices.ContainsFunc(tr.Calls, func(c trace.Call) bool { return !wellFormed(t.dialect.tokenizer.Decode(c.Output)) }):
		return verdictFormat
	case len(task.Questions) > 0 && len(tr.Answers) != len(task.Questions):
		return verdictAnswerCount
	case tr.Scores["f1"] < o.MinF1 || tr.Scores["em"] < o.MinEM:
		return verdictWrong
	case o.CallTokens > 0 && longestCall(tr) > o.CallTokens:
		return verdictTooLong
	case t.seen[contents(tr)]:
		return verdictDuplicate
	}
	return verdictKept
}
