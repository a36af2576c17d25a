package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// Episode is one run of an agent on one task, as a state machine without input
// or output of its own:
//
//	Request  the next call, to be answered with
//	Respond  the model's response; if it searches, answered with
//	Observe  what was found; then Request again, until Ended
//
// Each method but Trajectory, Ended and Abort is for its own state alone.
type Episode struct {
	opts    *Options
	stopper *Stopper
	task    Task
	sample  int
	state   state
	turns   int
	limit   int // response limit in tokens
	traj    trace.Trajectory
	context []int32 // of the call in hand
	spans   []trace.Span
	request *trace.Request
}

type state uint8

const (
	stateReady     state = iota // Request
	stateAsked                  // Respond
	stateSearching              // Observe
	stateEnded
)

// newEpisode begins an episode; sample counts earlier ones of the same task. It
// has ended already when the prefix alone does not fit.
func newEpisode(opts *Options, stopper *Stopper, task Task, sample int) (*Episode, error) {
	if task.ID == "" {
		return nil, errors.New("a task has no id")
	}
	if err := opts.Protocol.Check(task.Questions); err != nil {
		return nil, fmt.Errorf("task %q: %w", task.ID, err)
	}
	n := len(task.Questions)
	e := &Episode{
		opts: opts, stopper: stopper, task: task, sample: sample,
		turns: opts.Protocol.Turns(n), limit: opts.Protocol.MaxNewTokens(n),
		traj: trace.Trajectory{
			Schema:  trace.SchemaVersion,
			ID:      fmt.Sprintf("%s%s#%d", opts.IDPrefix, task.ID, sample),
			TaskID:  task.ID,
			Agent:   opts.Update.Name(),
			Model:   opts.Model,
			Prefix:  opts.EncodePrefix(opts.Protocol.Prefix(task.Questions)),
			Sampler: opts.Sampler,
		},
	}
	if len(e.traj.Prefix) == 0 {
		return nil, fmt.Errorf("task %q: the tokenizer made no ids of the prefix", task.ID)
	}
	e.prepare()
	return e, nil
}

// NewEpisode begins an episode of a task on its own; see [Rollout] for many.
func NewEpisode(opts Options, task Task) (*Episode, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return newEpisode(&opts, NewStopper(opts.Tokenizer, opts.Protocol.StopTags()), task, 0)
}

// Trajectory returns the record, whole once the episode has Ended.
func (e *Episode) Trajectory() *trace.Trajectory { return &e.traj }

// Ended says whether the episode is over.
func (e *Episode) Ended() bool { return e.state == stateEnded }

// Request returns the next call's request, or false when none is due.
func (e *Episode) Request() (*trace.Request, bool) {
	if e.state != stateReady {
		return nil, false
	}
	k := len(e.traj.Calls)
	e.request = &trace.Request{
		Context:      slices.Clone(e.context), // the record is out of the policy's reach
		Spans:        slices.Clone(e.spans),
		PrefixLength: len(e.traj.Prefix),
		MaxNewTokens: e.limit,
		Seed:         CallSeed(e.opts.Sampler.Seed, e.task.ID, e.sample, k),
		TaskID:       e.task.ID,
		Call:         k,
		Stopped:      e.stopper.Condition(),
	}
	e.state = stateAsked
	return e.request, true
}

// Respond takes the response to the request. It returns the query when a search
// is due, which Observe answers.
func (e *Episode) Respond(r *trace.Response) (query string, search bool) {
	if e.state != stateAsked {
		return "", false
	}
	if r == nil {
		e.end(trace.EndModelError, errors.New("no response"))
		return "", false
	}
	if r.Err != nil {
		e.end(trace.EndModelError, r.Err)
		return "", false
	}
	if r.Stop == trace.StopContext && len(r.Output) == 0 {
		e.end(trace.EndContext, errors.New("the policy has no room for the context"))
		return "", false
	}
	if err := e.checkResponse(r); err != nil {
		e.end(trace.EndModelError, err)
		return "", false
	}
	act := Parse(e.opts.Tokenizer.Decode(r.Output))
	e.record(r, act)
	switch {
	case act.Outcome == trace.OutcomeAnswer:
		e.traj.Answers = act.Answers
		e.end(trace.EndAnswered, nil)
	case act.Outcome == trace.OutcomeUnusable && r.Stop == trace.StopContext:
		e.end(trace.EndContext, errors.New("the model's context was full within a response"))
	case act.Outcome == trace.OutcomeUnusable:
		e.end(trace.EndUnusable, nil)
	case len(e.traj.Calls) == e.turns:
		// Nobody would read the documents.
		e.end(trace.EndTurnLimit, nil)
	default:
		e.state = stateSearching
		return act.Query, true
	}
	return "", false
}

// record appends the call as it was run.
func (e *Episode) record(r *trace.Response, act Action) {
	e.traj.Calls = append(e.traj.Calls, trace.Call{
		Index:        len(e.traj.Calls),
		Context:      e.context,
		Spans:        e.spans,
		Output:       slices.Clone(r.Output),
		LogProbs:     slices.Clone(r.LogProbs),
		Stop:         r.Stop,
		Outcome:      act.Outcome,
		Reason:       act.Reason,
		Query:        act.Query,
		Seed:         e.request.Seed,
		MaxNewTokens: e.limit,
		Seconds:      r.Seconds,
	})
}

// Observe takes what the search found, or its error, and the seconds it took. The
// model is told of a search that is unavailable; another error ends the episode.
func (e *Episode) Observe(docs []Document, err error, seconds float64) {
	if e.state != stateSearching {
		return
	}
	call := &e.traj.Calls[len(e.traj.Calls)-1]
	call.RetrievalSeconds = seconds
	left := e.turns - len(e.traj.Calls)
	text := ""
	switch {
	case err == nil:
		text = e.opts.Protocol.Observation(docs, left)
	case errors.Is(err, ErrSearchUnavailable):
		call.RetrievalError = err.Error()
		docs, text = nil, e.opts.Protocol.Unavailable(left)
	default:
		e.end(trace.EndRetrieval, fmt.Errorf("search for %q: %w", call.Query, err))
		return
	}
	call.Observation = e.opts.Tokenizer.Encode(text)
	if len(call.Observation) == 0 {
		e.end(trace.EndRetrieval, errors.New("the tokenizer made no ids of the observation"))
		return
	}
	for _, d := range docs {
		call.Documents = append(call.Documents, d.ID)
	}
	e.prepare()
}

// Abort ends the episode where it stands, if it has not ended.
func (e *Episode) Abort(why trace.End, err error) {
	if e.state != stateEnded {
		e.end(why, err)
	}
}

// prepare makes the next call's context, or ends the episode if it does not fit.
func (e *Episode) prepare() {
	var err error
	segments := e.opts.Update.Retain(e.traj.Calls, e.opts.Tokenizer)
	e.context, e.spans, err = Assemble(e.traj.Prefix, e.traj.Calls, segments)
	if err != nil {
		e.end(trace.EndUpdate, fmt.Errorf("context update %s, call %d: %w", e.traj.Agent, len(e.traj.Calls), err))
		return
	}
	room := e.opts.ContextTokens
	if need := len(e.context) + e.limit; room > 0 && need > room {
		e.end(trace.EndContext, fmt.Errorf("call %d needs %d + %d tokens, the model takes %d",
			len(e.traj.Calls), len(e.context), e.limit, room))
		return
	}
	e.state = stateReady
}

func (e *Episode) end(why trace.End, err error) {
	e.traj.End = why
	if err != nil {
		e.traj.Error = err.Error()
	}
	e.state = stateEnded
}
