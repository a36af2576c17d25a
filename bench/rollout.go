package main

import (
	"context"
	"fmt"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/eval/metrics"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// rollout samples a step's trajectories with the policy: training tasks, alike for
// all variants of a seed.
func (e *environment) rollout(o trainOptions, questions int) train.Rollout {
	return func(ctx context.Context, step int, policy *model.Decoder, seed uint64) ([]*trace.Trajectory, error) {
		tasks := make([]datasets.Task, o.PromptsPerStep)
		shown := make([]agent.Task, len(tasks))
		for i := range tasks {
			var err error
			if tasks[i], err = e.Task(uint64(step*o.PromptsPerStep+i), questions); err != nil {
				return nil, err
			}
			shown[i] = eval.AgentTask(tasks[i])
		}
		settings := trace.Sampler{Temperature: o.Temperature, TopP: 1, Seed: seed}
		sampler, err := model.NewSampler(policy, settings, e.rows)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%s/seed%d/step%d", o.Variant, o.Seed, step)
		options := e.agent
		options.Sampler, options.ContextTokens = settings, policy.Config.MaxPositionEmbeddings
		options.IDPrefix, options.Model = name+"/", name
		trajectories, err := agent.Rollout(ctx, sampler, searcher{e.index}, options, shown...)
		if err != nil {
			return nil, err
		}
		return trajectories, reward(o.Reward, tasks, trajectories)
	}
}

// golds are a task's right answers, a list a question.
func golds(t datasets.Task) [][]string {
	out := make([][]string, len(t.Questions))
	for i, q := range t.Questions {
		out[i] = q.Golds
	}
	return out
}

// rewards are the names that reward knows.
var rewards = []string{"em", "f1"}

// reward writes the scores of trajectories, and as reward the one named: the
// same function as the metric that evaluation reports.
func reward(name string, tasks []datasets.Task, trajectories []*trace.Trajectory) error {
	for i, t := range trajectories {
		s := metrics.SQuAD(t.Answers, golds(tasks[i]))
		t.Scores = map[string]float64{"em": s.EM, "f1": s.F1}
		value, ok := t.Scores[name]
		if !ok {
			return unknownName("reward", name, rewards)
		}
		t.Reward = value
	}
	return nil
}
