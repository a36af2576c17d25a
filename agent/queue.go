package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/memopd/memopd-bench/trace"
)

// queue hands the requests of many episodes to a policy. Ready requests go out by
// call, then by episode, and Next waits for all searches begun before it, so the
// order depends on the order of the policy's calls alone, not on how long a search
// takes.
type queue struct {
	ctx      context.Context
	opts     *Options
	searcher Searcher
	episodes []*Episode
	ready    []int // episodes with a request due, sorted
	out      map[*trace.Request]int
	err      error // of a policy that breaks the contract

	searches sync.WaitGroup
	slots    chan struct{} // one a running search
	mu       sync.Mutex
	found    []found

	progress Progress
}

// found is a finished search.
type found struct {
	episode int
	docs    []Document
	err     error
	seconds float64
}

func newQueue(ctx context.Context, opts *Options, s Searcher, episodes []*Episode) *queue {
	q := &queue{
		ctx: ctx, opts: opts, searcher: s, episodes: episodes,
		out:      map[*trace.Request]int{},
		slots:    make(chan struct{}, opts.Searches),
		progress: Progress{Episodes: len(episodes)},
	}
	for i := range episodes {
		q.settle(i)
	}
	return q
}

// Next implements trace.Queue. It gives nothing more once the run is cancelled.
func (q *queue) Next() (*trace.Request, bool) {
	q.collect()
	if len(q.ready) == 0 || q.err != nil || q.ctx.Err() != nil {
		return nil, false
	}
	i := q.ready[0]
	q.ready = q.ready[1:]
	r, _ := q.episodes[i].Request()
	q.out[r] = i
	return r, true
}

// Done implements trace.Queue.
func (q *queue) Done(r *trace.Request, resp *trace.Response) {
	i, ok := q.out[r]
	if !ok {
		q.err = errors.Join(q.err, errors.New("the policy answered a request that was not out"))
		return
	}
	delete(q.out, r)
	e := q.episodes[i]
	before := len(e.traj.Calls)
	query, search := e.Respond(resp)
	if len(e.traj.Calls) > before {
		q.progress.Calls++
		q.progress.OutputTokens += len(resp.Output)
	}
	if search {
		q.search(i, query)
		q.report(nil)
		return
	}
	if e.traj.End == trace.EndModelError && (resp == nil || resp.Err == nil) {
		q.err = errors.Join(q.err, fmt.Errorf("trajectory %s: %s", e.traj.ID, e.traj.Error))
	}
	q.settle(i)
}

// search runs one search aside; collect takes its result.
func (q *queue) search(i int, query string) {
	task := q.episodes[i].task
	k := q.opts.Protocol.TopK
	q.searches.Go(func() {
		q.slots <- struct{}{}
		defer func() { <-q.slots }()
		begin := time.Now()
		docs, err := q.searcher.Search(q.ctx, task.World, query, k)
		if err == nil && len(docs) > k {
			err = fmt.Errorf("the searcher gave %d documents, %d were asked", len(docs), k)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.found = append(q.found, found{i, docs, err, time.Since(begin).Seconds()})
	})
}

// collect waits for the searches under way and gives their results to the
// episodes, in the order of the episodes.
func (q *queue) collect() {
	q.searches.Wait()
	slices.SortFunc(q.found, func(a, b found) int { return cmp.Compare(a.episode, b.episode) })
	for _, f := range q.found {
		e := q.episodes[f.episode]
		if stopped := q.ctx.Err(); stopped != nil && f.err != nil {
			e.Abort(trace.EndCancelled, stopped)
		} else {
			e.Observe(f.docs, f.err, f.seconds)
		}
		q.settle(f.episode)
	}
	q.found = nil
}

// settle puts an episode into line, or reports its end.
func (q *queue) settle(i int) {
	e := q.episodes[i]
	if e.Ended() {
		q.progress.Ended++
		q.report(&e.traj)
		return
	}
	at, _ := slices.BinarySearchFunc(q.ready, i, func(a, b int) int {
		byCall := cmp.Compare(len(q.episodes[a].traj.Calls), len(q.episodes[b].traj.Calls))
		return cmp.Or(byCall, cmp.Compare(a, b))
	})
	q.ready = slices.Insert(q.ready, at, i)
}

func (q *queue) report(finished *trace.Trajectory) {
	if q.opts.Progress == nil {
		return
	}
	p := q.progress
	p.Finished = finished
	q.opts.Progress(p)
}

// abort ends whatever has not ended.
func (q *queue) abort(why trace.End, err error) {
	q.collect()
	for i, e := range q.episodes {
		if !e.Ended() {
			e.Abort(why, err)
			q.settle(i)
		}
	}
}
