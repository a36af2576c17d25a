package trace

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// FieldError is one broken invariant of a trajectory.
type FieldError struct {
	Trajectory string
	Call       int    // -1: not of a call
	Field      string // its JSON name
	Problem    string
}

// Error implements error.
func (e *FieldError) Error() string {
	if e.Call < 0 {
		return fmt.Sprintf("trajectory %q: %s: %s", e.Trajectory, e.Field, e.Problem)
	}
	return fmt.Sprintf("trajectory %q: call %d: %s: %s", e.Trajectory, e.Call, e.Field, e.Problem)
}

// maxLogProb leaves room for rounding above log 1.
const maxLogProb = 1e-4

var (
	ends = []End{
		EndAnswered, EndTurnLimit, EndUnusable, EndContext, EndUpdate, EndRetrieval, EndCancelled, EndModelError,
		EndUnknown,
	}
	stopReasons = []StopReason{StopEOS, StopTag, StopLength, StopContext, StopScript, StopUnknown}
	meanings    = []Meaning{MeaningProcessed, MeaningRaw, MeaningUnknown}
)

// Validate checks the invariants that docs/LEDGER.md lists: that spans partition
// each context, that the prefix is alike in all calls, that copies equal what they
// are copies of, that outcomes, stops and ends fit each other. It returns every
// violation, each a *[FieldError], joined; nil when there is none.
func (t *Trajectory) Validate() error {
	v := &validation{t: t, call: -1}
	v.trajectory()
	for i := range t.Calls {
		v.call = i
		v.checkCall(&t.Calls[i])
	}
	return errors.Join(v.errs...)
}

// validation collects the violations of one trajectory.
type validation struct {
	t    *Trajectory
	call int // where it is, -1 outside calls
	errs []error
}

// need notes a violation of the field unless ok.
func (v *validation) need(ok bool, field, problem string, args ...any) {
	if !ok {
		v.errs = append(v.errs, &FieldError{v.t.ID, v.call, field, fmt.Sprintf(problem, args...)})
	}
}

func (v *validation) trajectory() {
	t := v.t
	v.need(t.Schema == SchemaVersion, "schema", "version %d, this is %d", t.Schema, SchemaVersion)
	v.need(t.ID != "", "id", "empty")
	v.need(t.TaskID != "", "task_id", "empty")
	v.need(t.Agent != "", "agent", "empty")
	v.ids("prefix", t.Prefix)
	v.need(finite(t.Reward), "reward", "is %v", t.Reward)
	for name, score := range t.Scores {
		v.need(finite(score), "scores", "%s is %v", name, score)
		v.text("scores", name)
	}
	v.text("id", t.ID)
	v.text("task_id", t.TaskID)
	v.text("agent", t.Agent)
	v.text("model", t.Model)
	v.text("error", t.Error)
	v.text("answers", t.Answers...)
	v.text("lacks", t.Lacks...)
	v.need(!slices.Contains(t.Lacks, ""), "lacks", "an empty name")
	v.sampler()
	v.end()
	v.seeds()
}

func (v *validation) sampler() {
	s := v.t.Sampler
	v.need(finite(s.Temperature) && s.Temperature >= 0, "sampler", "temperature is %v", s.Temperature)
	v.need(s.TopK >= 0, "sampler", "top_k is %d", s.TopK)
	v.need(s.TopP >= 0 && s.TopP <= 1, "sampler", "top_p is %v", s.TopP)
	v.need(slices.Contains(meanings, s.Meaning), "sampler", "unknown meaning %q", s.Meaning)
}

// end checks how the trajectory ended against its last call.
func (v *validation) end() {
	t := v.t
	v.need(slices.Contains(ends, t.End), "end", "unknown %q", t.End)
	last := Outcome("none")
	if n := len(t.Calls); n > 0 {
		last = t.Calls[n-1].Outcome
	}
	v.need((t.End == EndAnswered) == (last == OutcomeAnswer), "end", "%q after the outcome %q", t.End, last)
	switch t.End {
	case EndUnusable:
		v.need(last == OutcomeUnusable, "end", "%q after the outcome %q", t.End, last)
	case EndTurnLimit, EndRetrieval:
		v.need(last == OutcomeSearch, "end", "%q after the outcome %q", t.End, last)
	}
	v.need(last == OutcomeAnswer || len(t.Answers) == 0, "answers", "%d without an answer call", len(t.Answers))
}

// seeds of a trajectory are all 0 (not known) or all different: with one seed
// twice, two calls would draw alike.
func (v *validation) seeds() {
	first := map[uint64]int{}
	for i, c := range v.t.Calls {
		if c.Seed == 0 {
			continue
		}
		at, seen := first[c.Seed]
		v.need(!seen, "calls", "calls %d and %d have the same seed %d", at, i, c.Seed)
		first[c.Seed] = i
	}
}

func (v *validation) ids(field string, ids []int32) {
	at := slices.IndexFunc(ids, func(id int32) bool { return id < 0 })
	if at >= 0 {
		v.need(false, field, "id %d is %d", at, ids[at])
	}
}

func (v *validation) text(field string, texts ...string) {
	for _, s := range texts {
		v.need(utf8.ValidString(s), field, "%q is not UTF-8", s)
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
