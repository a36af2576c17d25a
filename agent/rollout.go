package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/memopd/memopd-bench/trace"
)

// Rollout runs one episode a task, all of them at once through the policy, and
// returns their trajectories in the order of the tasks. A task may stand several
// times; the samples draw different seeds.
//
// What happens within an episode is recorded in its trajectory (see trace.End)
// and leaves the others alone, a failed search included, and a request that the
// policy answered with an error of its own (trace.Response.Err). A cancelled ctx or a
// failed policy ends the rollout: the trajectories come back, the unfinished ones
// with their calls so far and the end cancelled or model_error, together with the
// error. Tasks or options that cannot be run give an error and no trajectories.
//
// With a policy that is a function of its requests the result does not depend on
// timing, but for the seconds recorded.
func Rollout(ctx context.Context, policy Policy, searcher Searcher, opts Options, tasks ...Task) ([]*trace.Trajectory, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	stopper := NewStopper(opts.Tokenizer, opts.Protocol.StopTags())
	episodes := make([]*Episode, len(tasks))
	samples := map[string]int{}
	for i, task := range tasks {
		if episodes[i], err = newEpisode(&opts, stopper, task, samples[task.ID]); err != nil {
			return nil, err
		}
		samples[task.ID]++
	}
	q := newQueue(ctx, &opts, searcher, episodes)
	err = generate(ctx, policy, q)
	trajectories := make([]*trace.Trajectory, len(episodes))
	for i, e := range episodes {
		trajectories[i] = e.Trajectory()
	}
	return trajectories, err
}

// generate lets the policy drain the queue and ends what it left.
func generate(ctx context.Context, policy Policy, q *queue) error {
	err := policy.Generate(ctx, q)
	if cancelled := ctx.Err(); cancelled != nil {
		q.abort(trace.EndCancelled, cancelled)
		return fmt.Errorf("rollout stopped: %w", cancelled)
	}
	if err = errors.Join(err, q.err); err == nil && q.progress.Ended < len(q.episodes) {
		q.collect()
		if left := len(q.episodes) - q.progress.Ended; left > 0 {
			err = fmt.Errorf("the policy returned with %d of %d episodes unfinished", left, len(q.episodes))
		}
	}
	if err != nil {
		q.abort(trace.EndModelError, err)
		return fmt.Errorf("rollout: %w", err)
	}
	return nil
}
