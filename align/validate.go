package align

import (
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// validate says what is wrong with a trajectory, or nil. Every layout asks it
// with the same options, so that all of them take the same trajectories.
func validate(t *trace.Trajectory, o Options) *Rejected {
	if t == nil {
		return &Rejected{Reason: ReasonInconsistent, Call: -1, Detail: "no trajectory"}
	}
	reject := func(reason Reason, call int, format string, args ...any) *Rejected {
		return &Rejected{TrajectoryID: t.ID, Reason: reason, Call: call, Detail: fmt.Sprintf(format, args...)}
	}
	if len(t.Prefix) == 0 {
		return reject(ReasonInconsistent, -1, "the task prefix is empty, so nothing predicts a first token")
	}
	if i := slices.IndexFunc(t.Prefix, negative); i >= 0 {
		return reject(ReasonInconsistent, -1, "prefix token %d has the id %d", i, t.Prefix[i])
	}
	for k := range t.Calls {
		if detail := callFault(t, k); detail != "" {
			return reject(ReasonInconsistent, k, "%s", detail)
		}
		c := &t.Calls[k]
		n := len(c.Context) + len(c.Output)
		if o.MaxCallTokens > 0 && n > o.MaxCallTokens && len(c.Output) > 0 {
			return reject(ReasonCallTokens, k, "%d tokens, limit %d", n, o.MaxCallTokens)
		}
	}
	if t.SampledTokens() == 0 {
		return reject(ReasonNoActions, -1, "none of its %d calls has an output", len(t.Calls))
	}
	return nil
}

func negative(id int32) bool { return id < 0 }

// callFault describes the first contradiction in call k, "" if there is none.
func callFault(t *trace.Trajectory, k int) string {
	c, n := &t.Calls[k], len(t.Prefix)
	switch {
	case c.Index != k:
		return fmt.Sprintf("its index says %d", c.Index)
	case len(c.Context) < n || !slices.Equal(c.Context[:n], t.Prefix):
		return fmt.Sprintf("the context (%d tokens) does not start with the task prefix (%d tokens)", len(c.Context), n)
	case len(c.LogProbs) != 0 && len(c.LogProbs) != len(c.Output):
		return fmt.Sprintf("%d log-probs for %d output ids", len(c.LogProbs), len(c.Output))
	}
	parts := []string{"context", "output", "observation"}
	for p, ids := range [][]int32{c.Context, c.Output, c.Observation} {
		if i := slices.IndexFunc(ids, negative); i >= 0 {
			return fmt.Sprintf("%s token %d has the id %d", parts[p], i, ids[i])
		}
	}
	return spanFault(t, k)
}

// spanFault checks that the spans of call k partition its context, that the
// prefix is marked as such and nothing else, and that each copy is
// what stands in the place that it names.
func spanFault(t *trace.Trajectory, k int) string {
	c, end := &t.Calls[k], 0
	for i, s := range c.Spans {
		if s.Start != end || s.End < s.Start || s.End > len(c.Context) {
			return fmt.Sprintf("span %d is [%d, %d), after %d of %d context tokens", i, s.Start, s.End, end, len(c.Context))
		}
		end = s.End
		if fault := originFault(t, k, s); fault != "" {
			return fmt.Sprintf("span %d [%d, %d): %s", i, s.Start, s.End, fault)
		}
	}
	if end != len(c.Context) {
		return fmt.Sprintf("the spans cover %d of %d context tokens", end, len(c.Context))
	}
	return ""
}

func originFault(t *trace.Trajectory, k int, s trace.Span) string {
	ids := t.Calls[k].Context[s.Start:s.End]
	if s.Origin != trace.OriginPrefix && s.Start < len(t.Prefix) && s.End > s.Start {
		return fmt.Sprintf("origin %q inside the task prefix", s.Origin)
	}
	switch s.Origin {
	case trace.OriginPrefix:
		if s.FromCall != -1 || s.End > len(t.Prefix) {
			return fmt.Sprintf("a prefix span from call %d, of a prefix of %d tokens", s.FromCall, len(t.Prefix))
		}
	case trace.OriginRetained:
		if s.FromCall < 0 || s.FromCall >= k {
			return fmt.Sprintf("retained from call %d", s.FromCall)
		}
		if !copied(t.Calls[s.FromCall].Output, s.Offset, ids) {
			return fmt.Sprintf("not what stands at %d in call %d's output", s.Offset, s.FromCall)
		}
	case trace.OriginObservation:
		// -1 is what the environment showed before the first call.
		if s.FromCall < -1 || s.FromCall >= k {
			return fmt.Sprintf("an observation from call %d", s.FromCall)
		}
		if s.FromCall >= 0 && !copied(t.Calls[s.FromCall].Observation, s.Offset, ids) {
			return fmt.Sprintf("not what stands at %d in call %d's observation", s.Offset, s.FromCall)
		}
	case trace.OriginUnknown: // conditions like any other context
		if s.FromCall != -1 {
			return fmt.Sprintf("of unknown origin, yet from call %d", s.FromCall)
		}
	default:
		return fmt.Sprintf("unknown origin %q", s.Origin)
	}
	return ""
}

// copied reports whether ids stand in source from offset on.
func copied(source []int32, offset int, ids []int32) bool {
	return offset >= 0 && offset <= len(source) && len(ids) <= len(source)-offset &&
		slices.Equal(source[offset:offset+len(ids)], ids)
}
