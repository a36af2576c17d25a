package agent

import (
	"fmt"
	"strconv"
	"strings"

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
// recorded ids and so cannot bring in text of its own, nor leave the task prefix
// out, which stands before whatever it names. It must be safe for several
// goroutines.
//
// The paper names five: full response retention, suffix retention, summary
// replacement, sliding window and retrieval refresh. Its definitions were not at hand:
// what we take each for stands at its type, and is our choice.
type Update interface {
	// Name is what stands in trace.Trajectory.Agent, parameters included; of the
	// rules here, [UpdateNamed] takes it.
	Name() string
	// Retain says what call len(calls) sees after the task prefix, in order. The
	// calls are all those before it, each of them a search with an observation. A
	// rule that goes by what was written reads it with the decoder.
	Retain(calls []trace.Call, d Decoder) []Segment
}

// Decoder turns ids to text, for reading alone.
type Decoder interface {
	Decode(ids []int32) string
}

// retained and observed name the whole output and the whole observation of call k.
func retained(k int) Segment { return Segment{Origin: trace.OriginRetained, FromCall: k} }
func observed(k int) Segment { return Segment{Origin: trace.OriginObservation, FromCall: k} }

// UpdateNames lists the context updates as [UpdateNamed] takes them, N for a number.
func UpdateNames() []string {
	return []string{"mem1", "full", "full-response", "suffix:N", "summary", "window:N", "refresh"}
}

// UpdateNamed returns the update rule of a name, such as "mem1" or "window:2".
func UpdateNamed(name string) (Update, error) {
	for _, u := range []Update{MEM1Update{}, FullUpdate{}, FullResponseUpdate{}, SummaryUpdate{}, RefreshUpdate{}} {
		if u.Name() == name {
			return u, nil
		}
	}
	kind, number, _ := strings.Cut(name, ":")
	n, err := strconv.Atoi(number)
	var u Update
	switch kind {
	case "suffix":
		u = SuffixUpdate{IDs: n}
	case "window":
		u = WindowUpdate{Turns: n}
	default:
		return nil, fmt.Errorf("unknown context update %q (known: %s)", name, strings.Join(UpdateNames(), ", "))
	}
	// A rule has one name in ledgers, so "window:02" is none.
	if err != nil || n < 1 || u.Name() != name {
		return nil, fmt.Errorf("context update %q: want %s:N with a whole number of 1 or more", name, kind)
	}
	return u, nil
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
