package agent

import (
	"fmt"

	"github.com/memopd/memopd-bench/trace"
)

// Segment names a run of recorded ids for a context: those of call FromCall's
// output (trace.OriginRetained) or observation (trace.OriginObservation), from
// Offset on, Length of them. Length 0 means up to the end.
type Segment struct {
	Origin   trace.Origin
	FromCall int
	Offset   int
	Length   int
}

// Update is the rule that makes the next call's mutable context out of what was
// recorded, c_{k+1} = U(c_k, y_k, o_k) (MemOPD, arXiv 2608.07068). It names
// recorded ids and so cannot bring in text of its own. It must be safe for
// several goroutines.
type Update interface {
	// Name is what stands in trace.Trajectory.Agent.
	Name() string
	// Retain says what call len(calls) sees after the task prefix, in order. The
	// calls are all those before it, each of them a search with an observation.
	Retain(calls []trace.Call) []Segment
}

// MEM1Update is MEM1's rule, c_{k+1} = y_k ++ o_k: the last response and its
// observation stay, everything older is gone.
type MEM1Update struct{}

// Name returns "mem1".
func (MEM1Update) Name() string { return "mem1" }

// Retain names the last call's output and observation.
func (MEM1Update) Retain(calls []trace.Call) []Segment {
	if len(calls) == 0 {
		return nil
	}
	return turn(len(calls) - 1)
}

// FullUpdate is the full-context baseline: every output and observation stays.
type FullUpdate struct{}

// Name returns "full".
func (FullUpdate) Name() string { return "full" }

// Retain names all outputs and observations in order.
func (FullUpdate) Retain(calls []trace.Call) []Segment {
	var all []Segment
	for k := range calls {
		all = append(all, turn(k)...)
	}
	return all
}

func turn(k int) []Segment {
	return []Segment{
		{Origin: trace.OriginRetained, FromCall: k},
		{Origin: trace.OriginObservation, FromCall: k},
	}
}

// UpdateNamed returns the update rule of a name: "mem1" or "full".
func UpdateNamed(name string) (Update, error) {
	switch name {
	case "mem1":
		return MEM1Update{}, nil
	case "full":
		return FullUpdate{}, nil
	}
	return nil, fmt.Errorf("unknown context update %q (known: mem1, full)", name)
}

// Assemble copies the prefix and the segments into a context, with the spans that
// partition it. Empty segments leave no span. A segment that names what was not
// recorded is an error.
func Assemble(prefix []int32, calls []trace.Call, segments []Segment) ([]int32, []trace.Span, error) {
	context := append([]int32(nil), prefix...)
	var spans []trace.Span
	if len(prefix) > 0 {
		spans = append(spans, trace.Span{Origin: trace.OriginPrefix, FromCall: -1, End: len(prefix)})
	}
	for i, seg := range segments {
		ids, err := seg.ids(calls)
		if err != nil {
			return nil, nil, fmt.Errorf("segment %d: %w", i, err)
		}
		if len(ids) == 0 {
			continue
		}
		start := len(context)
		context = append(context, ids...)
		spans = append(spans, trace.Span{
			Origin: seg.Origin, FromCall: seg.FromCall, Offset: seg.Offset, Start: start, End: len(context),
		})
	}
	return context, spans, nil
}

func (s Segment) ids(calls []trace.Call) ([]int32, error) {
	if s.FromCall < 0 || s.FromCall >= len(calls) {
		return nil, fmt.Errorf("from call %d of %d", s.FromCall, len(calls))
	}
	var ids []int32
	switch s.Origin {
	case trace.OriginRetained:
		ids = calls[s.FromCall].Output
	case trace.OriginObservation:
		ids = calls[s.FromCall].Observation
	default:
		return nil, fmt.Errorf("origin %q is neither retained nor observation", s.Origin)
	}
	if s.Offset < 0 || s.Length < 0 || s.Offset > len(ids) || s.Length > len(ids)-s.Offset {
		return nil, fmt.Errorf("%d ids from %d on, of the %d of call %d", s.Length, s.Offset, len(ids), s.FromCall)
	}
	ids = ids[s.Offset:]
	if s.Length > 0 {
		ids = ids[:s.Length]
	}
	return ids, nil
}
