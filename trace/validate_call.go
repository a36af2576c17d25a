package trace

import "slices"

func (v *validation) checkCall(c *Call) {
	v.need(c.Index == v.call, "index", "is %d", c.Index)
	v.ids("context", c.Context)
	v.ids("output", c.Output)
	v.ids("observation", c.Observation)
	v.text("reason", c.Reason)
	v.text("query", c.Query)
	v.text("documents", c.Documents...)
	v.text("retrieval_error", c.RetrievalError)
	v.need(finite(c.Seconds) && c.Seconds >= 0, "seconds", "is %v", c.Seconds)
	v.need(finite(c.RetrievalSeconds) && c.RetrievalSeconds >= 0, "retrieval_seconds", "is %v", c.RetrievalSeconds)
	v.output(c)
	v.logProbs(c)
	v.outcome(c)
	v.context(c)
}

func (v *validation) output(c *Call) {
	n := len(c.Output)
	v.need(slices.Contains(stopReasons, c.Stop), "stop", "unknown %q", c.Stop)
	imported := c.Outcome == OutcomeUnknown
	v.need(n > 0 || imported && c.Stop == StopUnknown, "output", "empty")
	if imported && c.MaxNewTokens == 0 {
		return
	}
	v.need(c.MaxNewTokens > 0, "max_new_tokens", "is %d", c.MaxNewTokens)
	v.need(n <= c.MaxNewTokens, "output", "%d ids, at most %d were allowed", n, c.MaxNewTokens)
	v.need(c.Stop != StopLength || n == c.MaxNewTokens, "stop", "%q after %d of %d ids", c.Stop, n, c.MaxNewTokens)
}

func (v *validation) logProbs(c *Call) {
	if c.LogProbs == nil {
		return
	}
	v.need(len(c.LogProbs) == len(c.Output), "log_probs", "%d for %d output ids", len(c.LogProbs), len(c.Output))
	for i, p := range c.LogProbs {
		if !finite(float64(p)) || p > maxLogProb {
			v.need(false, "log_probs", "that of output id %d is %v", i, p)
			return
		}
	}
}

// outcome checks the fields that only some outcomes have, and that nothing but an
// answered search goes on.
func (v *validation) outcome(c *Call) {
	last := v.call == len(v.t.Calls)-1
	switch c.Outcome {
	case OutcomeSearch:
		v.need(c.Query != "", "query", "empty after a search")
		v.need(last || len(c.Observation) > 0, "observation", "empty, but a call follows")
	case OutcomeAnswer, OutcomeUnusable:
		v.need(last, "outcome", "%q, but a call follows", c.Outcome)
		v.need(c.Query == "", "query", "set on the outcome %q", c.Outcome)
		v.need(len(c.Observation) == 0, "observation", "set on the outcome %q", c.Outcome)
	case OutcomeUnknown:
		v.need(c.Query == "", "query", "set on the outcome %q", c.Outcome)
	default:
		v.need(false, "outcome", "unknown %q", c.Outcome)
	}
	v.need((c.Outcome == OutcomeUnusable) == (c.Reason != ""), "reason", "%q on the outcome %q", c.Reason, c.Outcome)
	v.need(len(c.Documents) == 0 || len(c.Observation) > 0, "documents", "%d without an observation", len(c.Documents))
	v.need(c.RetrievalError == "" || c.Outcome == OutcomeSearch && len(c.Documents) == 0, "retrieval_error",
		"%q on the outcome %q with %d documents", c.RetrievalError, c.Outcome, len(c.Documents))
}

// context checks that the spans partition the context and that each holds a copy
// of what it names.
func (v *validation) context(c *Call) {
	prefix := v.t.Prefix
	if len(c.Context) < len(prefix) || !slices.Equal(c.Context[:len(prefix)], prefix) {
		v.need(false, "context", "does not begin with the task prefix")
		return
	}
	end := 0
	for i, s := range c.Spans {
		if s.Start != end || s.End <= s.Start || s.End > len(c.Context) {
			v.need(false, "spans", "span %d is [%d, %d), after %d of %d context ids", i, s.Start, s.End, end, len(c.Context))
			return
		}
		end = s.End
		v.span(c, i, s)
	}
	v.need(end == len(c.Context), "spans", "they end at %d of %d context ids", end, len(c.Context))
	if len(prefix) > 0 {
		v.need(len(c.Spans) > 0 && c.Spans[0].Origin == OriginPrefix, "spans", "the first is not the prefix")
	}
}

func (v *validation) span(c *Call, i int, s Span) {
	if s.Origin == OriginPrefix {
		ok := i == 0 && s.FromCall == -1 && s.Offset == 0 && s.End == len(v.t.Prefix)
		v.need(ok, "spans", "span %d, the prefix, is %+v of %d prefix ids", i, s, len(v.t.Prefix))
		return
	}
	if s.Origin == OriginUnknown {
		v.need(s.FromCall == -1 && s.Offset == 0, "spans", "span %d, of unknown origin, is %+v", i, s)
		return
	}
	if s.FromCall < 0 || s.FromCall >= v.call {
		v.need(false, "spans", "span %d is from call %d", i, s.FromCall)
		return
	}
	var source []int32
	switch s.Origin {
	case OriginRetained:
		source = v.t.Calls[s.FromCall].Output
	case OriginObservation:
		source = v.t.Calls[s.FromCall].Observation
	default:
		v.need(false, "spans", "span %d has the unknown origin %q", i, s.Origin)
		return
	}
	n := s.End - s.Start
	if s.Offset < 0 || n > len(source) || s.Offset > len(source)-n {
		v.need(false, "spans", "span %d copies %d ids from %d on, of %d", i, n, s.Offset, len(source))
		return
	}
	for j, id := range source[s.Offset : s.Offset+n] {
		if got := c.Context[s.Start+j]; got != id {
			v.need(false, "spans", "span %d: context id %d is %d, in the %s of call %d it is %d",
				i, s.Start+j, got, s.Origin, s.FromCall, id)
			return
		}
	}
}
