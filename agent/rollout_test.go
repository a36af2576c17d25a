package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/trace"
)

// batcher is a policy that keeps up to rows requests out, finishes them in an order
// of its own, several between two calls of Next, and notes the order of requests.
type batcher struct {
	rows  int
	order func(*rand.Rand, int) int
	text  func(*trace.Request) string
	tok   Tokenizer
	asked []string
}

func (b *batcher) Generate(_ context.Context, q trace.Queue) error {
	r := rand.New(rand.NewPCG(1, 1))
	var out []*trace.Request
	for {
		for len(out) < b.rows {
			req, ok := q.Next()
			if !ok {
				break
			}
			b.asked = append(b.asked, fmt.Sprintf("%s/%d", req.TaskID, req.Call))
			out = append(out, req)
		}
		if len(out) == 0 {
			return nil
		}
		for n := 1 + r.IntN(len(out)); n > 0; n-- {
			i := b.order(r, len(out))
			req := out[i]
			out = slices.Delete(out, i, i+1)
			ids := b.tok.Encode(b.text(req))
			q.Done(req, &trace.Response{Output: ids, LogProbs: make([]float32, len(ids)), Stop: trace.StopTag, Seconds: 1})
		}
	}
}

func anyOrder(r *rand.Rand, n int) int   { return r.IntN(n) }
func firstOrder(*rand.Rand, int) int     { return 0 }
func oracleText(r *trace.Request) string { return miniOracle[r.Call] }

// copies are n tasks with miniTask's questions.
func copies(n int) []Task {
	var tasks []Task
	for i := range n {
		tasks = append(tasks, Task{ID: fmt.Sprintf("t%d", i), World: "w17", Questions: miniTask.Questions})
	}
	return tasks
}

func TestRequestsGoBreadthFirst(t *testing.T) {
	o := miniOptions()
	b := &batcher{rows: 1, order: firstOrder, text: oracleText, tok: o.Tokenizer}
	run(t, b, miniWorld, o, copies(3)...)
	want := "t0/0 t1/0 t2/0 t0/1 t1/1 t2/1 t0/2 t1/2 t2/2 t0/3 t1/3 t2/3"
	if got := strings.Join(b.asked, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Searches that take any time must not change anything: neither the order of the
// requests nor the records.
func TestSearchTimeChangesNothing(t *testing.T) {
	var want []*trace.Trajectory
	var asked []string
	for round := range 4 {
		o := miniOptions()
		o.Searches = 1 + round
		slow := searcherFunc(func(ctx context.Context, world, query string, k int) ([]Document, error) {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			return miniWorld.Search(ctx, world, query, k)
		})
		b := &batcher{rows: 5, order: anyOrder, text: oracleText, tok: o.Tokenizer}
		got := run(t, b, slow, o, copies(12)...)
		for _, tr := range got {
			for i := range tr.Calls {
				tr.Calls[i].RetrievalSeconds = 0
			}
		}
		if round == 0 {
			want, asked = got, b.asked
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Error("other records")
		}
		if !slices.Equal(b.asked, asked) {
			t.Errorf("other order: %v", b.asked)
		}
	}
}

func TestSearchesAtATime(t *testing.T) {
	var now, most atomic.Int32
	searcher := searcherFunc(func(context.Context, string, string, int) ([]Document, error) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		now.Add(-1)
		return nil, nil
	})
	o := miniOptions()
	o.Searches = 2
	b := &batcher{rows: 16, order: firstOrder, text: oracleText, tok: o.Tokenizer}
	run(t, b, searcher, o, copies(16)...)
	if most.Load() != 2 {
		t.Errorf("%d searches at a time, want 2", most.Load())
	}
}

// An episode's requests depend on its task and sample alone, not on what runs
// beside it.
func TestSamplesAndCompany(t *testing.T) {
	o := miniOptions()
	policy := NewScript(o.Tokenizer, map[string][]string{"t0": miniOracle, "t1": miniOracle})
	tasks := copies(2)
	out := run(t, policy, miniWorld, o, tasks[0], tasks[1], tasks[0])
	alone := run(t, policy, miniWorld, o, tasks[1])
	var ids []string
	for _, tr := range out {
		ids = append(ids, tr.ID)
	}
	if want := []string{"t0#0", "t1#0", "t0#1"}; !slices.Equal(ids, want) {
		t.Errorf("ids %q, want %q", ids, want)
	}
	if out[0].Calls[0].Seed == out[2].Calls[0].Seed {
		t.Error("two samples of a task draw alike")
	}
	for i := range alone[0].Calls {
		if got, want := alone[0].Calls[i].Seed, out[1].Calls[i].Seed; got != want {
			t.Errorf("call %d: seed %d alone, %d in company", i, got, want)
		}
	}
	o.IDPrefix = "step3/"
	if got := run(t, policy, miniWorld, o, tasks[0])[0].ID; got != "step3/t0#0" {
		t.Errorf("id %s", got)
	}
}

func TestProgress(t *testing.T) {
	o := miniOptions()
	var all []Progress
	o.Progress = func(p Progress) { all = append(all, p) }
	out := run(t, &batcher{rows: 2, order: anyOrder, text: oracleText, tok: o.Tokenizer}, miniWorld, o, copies(3)...)
	last := all[len(all)-1]
	tokens := 0
	for _, tr := range out {
		tokens += tr.SampledTokens()
	}
	if len(all) != 12 || last.Episodes != 3 || last.Ended != 3 || last.Calls != 12 || last.OutputTokens != tokens {
		t.Errorf("%d reports, the last %+v", len(all), last)
	}
	finished := map[*trace.Trajectory]int{}
	for _, p := range all {
		if p.Finished != nil {
			finished[p.Finished]++
		}
	}
	for _, tr := range out {
		if finished[tr] != 1 {
			t.Errorf("%s reported as finished %d times", tr.ID, finished[tr])
		}
	}
}

// Ends that come out of searches are reported in the order of the episodes.
func TestProgressOrder(t *testing.T) {
	o := miniOptions()
	var got, want []string
	o.Progress = func(p Progress) {
		if p.Finished != nil {
			got = append(got, p.Finished.TaskID)
		}
	}
	failing := searcherFunc(func(context.Context, string, string, int) ([]Document, error) {
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
		return nil, errors.New("no index")
	})
	o.Searches = 8
	tasks := copies(8)
	for _, task := range tasks {
		want = append(want, task.ID)
	}
	run(t, &atOnce{tok: o.Tokenizer}, failing, o, tasks...)
	if !slices.Equal(got, want) {
		t.Errorf("order %v", got)
	}
}

// atOnce takes every ready request before it answers any.
type atOnce struct{ tok Tokenizer }

func (p *atOnce) Generate(_ context.Context, q trace.Queue) error {
	for {
		var all []*trace.Request
		for r, ok := q.Next(); ok; r, ok = q.Next() {
			all = append(all, r)
		}
		if len(all) == 0 {
			return nil
		}
		for _, r := range all {
			q.Done(r, &trace.Response{Output: p.tok.Encode(oracleText(r)), Stop: trace.StopTag})
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := miniOptions()
	calls := 0
	policy := policyFunc(func(r *trace.Request) (*trace.Response, error) {
		if calls++; calls == 6 { // t0 and t1 have had two calls, t2 and t3 one
			cancel()
		}
		return &trace.Response{Output: o.Tokenizer.Encode(oracleText(r)), Stop: trace.StopTag}, nil
	})
	out, err := Rollout(ctx, policy, miniWorld, o, copies(4)...)
	if !errors.Is(err, context.Canceled) || len(out) != 4 {
		t.Fatalf("%d trajectories, %v", len(out), err)
	}
	for i, tr := range out {
		if want := 2 - i/2; tr.End != trace.EndCancelled || len(tr.Calls) != want {
			t.Errorf("%s: end %q after %d calls, want %d", tr.ID, tr.End, len(tr.Calls), want)
		}
	}
	validate(t, out)
}

func TestCancelledWithinASearch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := miniOptions()
	searcher := searcherFunc(func(ctx context.Context, _, _ string, _ int) ([]Document, error) {
		cancel()
		<-ctx.Done()
		return nil, fmt.Errorf("index: %w", ctx.Err())
	})
	out, err := Rollout(ctx, oracle(o.Tokenizer), searcher, o, miniTask)
	if !errors.Is(err, context.Canceled) || out[0].End != trace.EndCancelled || len(out[0].Calls) != 1 {
		t.Errorf("%v, %+v", err, out)
	}
	validate(t, out)
}

func TestModelError(t *testing.T) {
	broken := errors.New("mat1 and mat2 shapes cannot be multiplied")
	o := miniOptions()
	policy := policyFunc(func(r *trace.Request) (*trace.Response, error) {
		if r.Call == 1 && r.TaskID == "t1" {
			return nil, broken
		}
		return &trace.Response{Output: o.Tokenizer.Encode(oracleText(r)), Stop: trace.StopTag}, nil
	})
	out, err := Rollout(t.Context(), policy, miniWorld, o, copies(2)...)
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	for i, calls := range []int{2, 1} {
		if tr := out[i]; tr.End != trace.EndModelError || tr.Error != broken.Error() || len(tr.Calls) != calls {
			t.Errorf("%s: end %q (%s) after %d calls", tr.ID, tr.End, tr.Error, len(tr.Calls))
		}
	}
	validate(t, out)
}

// lazy returns at once; twice answers a request twice.
type lazy struct{}

func (lazy) Generate(context.Context, trace.Queue) error { return nil }

type twice struct{ tok Tokenizer }

func (p twice) Generate(_ context.Context, q trace.Queue) error {
	r, _ := q.Next()
	resp := &trace.Response{Output: p.tok.Encode(miniOracle[0]), Stop: trace.StopTag}
	q.Done(r, resp)
	q.Done(r, resp)
	return nil
}

// failing answers one task's call with an error of that request alone.
type failing struct {
	inner Policy
	task  string
	call  int
}

func (f failing) Generate(ctx context.Context, q trace.Queue) error {
	return f.inner.Generate(ctx, failingQueue{q, f})
}

type failingQueue struct {
	trace.Queue
	failing
}

func (q failingQueue) Done(r *trace.Request, resp *trace.Response) {
	if r.TaskID == q.task && r.Call == q.call {
		resp = &trace.Response{Err: errors.New("the server is on fire")}
	}
	q.Queue.Done(r, resp)
}

// A request that fails ends its own trajectory, with the calls before it, and no
// other.
func TestOneRequestFails(t *testing.T) {
	o := miniOptions()
	policy := failing{&batcher{rows: 2, order: anyOrder, text: oracleText, tok: o.Tokenizer}, "t1", 2}
	for i, got := range run(t, policy, miniWorld, o, copies(3)...) {
		end, calls, message := trace.EndAnswered, 4, ""
		if i == 1 {
			end, calls, message = trace.EndModelError, 2, "the server is on fire"
		}
		if got.End != end || len(got.Calls) != calls || got.Error != message {
			t.Errorf("%s: end %s after %d calls, %q", got.ID, got.End, len(got.Calls), got.Error)
		}
	}
}

func TestPoliciesThatBreakTheContract(t *testing.T) {
	o := miniOptions()
	for says, policy := range map[string]Policy{
		"2 of 2 episodes unfinished": lazy{},
		"that was not out":           twice{o.Tokenizer},
	} {
		out, err := Rollout(t.Context(), policy, miniWorld, o, copies(2)...)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v", err)
		}
		for _, tr := range out {
			if tr.End != trace.EndModelError {
				t.Errorf("%s: end %q", tr.ID, tr.End)
			}
		}
		validate(t, out)
	}
}

func TestRolloutRefuses(t *testing.T) {
	o := miniOptions()
	noTokenizer, negative := o, o
	noTokenizer.Tokenizer = nil
	negative.ContextTokens = -1
	for name, tc := range map[string]struct {
		o    Options
		task Task
	}{
		"no tokenizer":   {noTokenizer, miniTask},
		"negative limit": {negative, miniTask},
		"no questions":   {o, Task{ID: "x"}},
		"no protocol":    {Options{Tokenizer: o.Tokenizer}, miniTask},
		"no task id":     {o, Task{Questions: miniTask.Questions}},
	} {
		if out, err := Rollout(t.Context(), oracle(o.Tokenizer), miniWorld, tc.o, tc.task); err == nil || out != nil {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
	if out := run(t, oracle(o.Tokenizer), miniWorld, o); len(out) != 0 {
		t.Errorf("no tasks gave %d trajectories", len(out))
	}
}
