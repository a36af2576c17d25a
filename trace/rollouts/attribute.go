package rollouts

import (
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// runLength is how many equal ids in a row are taken for a copy; a whole output of
// two ids or more is one however short.
const runLength = 8

// attribute gives every call of a trajectory its spans, from equal ids alone, and
// the observations that follow from them.
func attribute(t *trace.Trajectory) {
	a := &attribution{t: t, grams: map[gram][]place{}}
	for k := range t.Calls {
		a.call(k)
		a.add(k)
	}
}

// gram is the beginning of a run that may be a copy.
type gram [runLength]int32

// place is a token of a recorded output or observation.
type place struct {
	origin trace.Origin
	call   int
	offset int
}

// attribution finds earlier ids again.
type attribution struct {
	t     *trace.Trajectory
	grams map[gram][]place
	short []place // whole outputs below runLength
	upTo  []int   // how far the context at hand goes on as each earlier call
}

// add makes call k's ids known to later ones.
func (a *attribution) add(k int) {
	c := &a.t.Calls[k]
	if n := len(c.Output); n >= 2 && n < runLength {
		a.short = append(a.short, place{trace.OriginRetained, k, 0})
	}
	a.index(trace.OriginRetained, k, c.Output)
	a.index(trace.OriginObservation, k, c.Observation)
}

func (a *attribution) index(origin trace.Origin, k int, source []int32) {
	for i := 0; i+runLength <= len(source); i++ {
		g := gram(source[i : i+runLength])
		a.grams[g] = append(a.grams[g], place{origin, k, i})
	}
}

// call finds where the context of call k came from.
func (a *attribution) call(k int) {
	c, at := &a.t.Calls[k], len(a.t.Prefix)
	a.upTo = a.upTo[:0]
	for j := range k {
		a.upTo = append(a.upTo, a.continued(j, c.Context))
	}
	c.Spans = []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: at}}
	for at < len(c.Context) {
		spans := a.longest(k, at)
		if spans == nil {
			if last := &c.Spans[len(c.Spans)-1]; last.Origin == trace.OriginUnknown {
				last.End++
			} else {
				c.Spans = append(c.Spans, trace.Span{Origin: trace.OriginUnknown, FromCall: -1, Start: at, End: at + 1})
			}
			at++
			continue
		}
		c.Spans = append(c.Spans, spans...)
		at = spans[len(spans)-1].End
	}
	a.observe(k)
}

// longest is the longest run from at on that is known, as spans; nil if there is none.
func (a *attribution) longest(k, at int) []trace.Span {
	context := a.t.Calls[k].Context
	var best []trace.Span
	length := 0
	for j, end := range a.upTo { // what call j saw and said, at the same place
		if end-at > length {
			best, length = a.spans(j, at, end), end-at
		}
	}
	if len(context)-at >= runLength {
		for _, p := range a.grams[gram(context[at:at+runLength])] {
			if n := commonLength(a.source(p)[p.offset:], context[at:]); n >= length {
				best, length = []trace.Span{{Origin: p.origin, FromCall: p.call, Offset: p.offset, Start: at, End: at + n}}, n
			}
		}
	}
	for _, p := range a.short {
		whole := a.source(p)
		if n := len(whole); n >= length && commonLength(whole, context[at:]) == n {
			best, length = []trace.Span{{Origin: p.origin, FromCall: p.call, Start: at, End: at + n}}, n
		}
	}
	return best
}

func (a *attribution) source(p place) []int32 {
	if p.origin == trace.OriginRetained {
		return a.t.Calls[p.call].Output
	}
	return a.t.Calls[p.call].Observation
}

// continued is how far a context goes on as call j's context and output do, 0
// where the agreement ends in the context and is too short to mean much.
func (a *attribution) continued(j int, context []int32) int {
	c := &a.t.Calls[j]
	n := commonLength(c.Context, context)
	if n == len(c.Context) {
		return n + commonLength(c.Output, context[n:])
	}
	if n-len(a.t.Prefix) < runLength {
		return 0
	}
	return n
}

// spans lists the spans of call j's context and output in [start, end).
func (a *attribution) spans(j, start, end int) []trace.Span {
	c := &a.t.Calls[j]
	all := append(slices.Clone(c.Spans),
		trace.Span{Origin: trace.OriginRetained, FromCall: j, Start: len(c.Context), End: len(c.Context) + len(c.Output)})
	var spans []trace.Span
	for _, s := range all {
		if s.End <= start || s.Start >= end {
			continue
		}
		if cut := start - s.Start; cut > 0 {
			s.Start = start
			if s.Origin != trace.OriginUnknown {
				s.Offset += cut
			}
		}
		s.End = min(s.End, end)
		spans = append(spans, s)
	}
	return spans
}

// observe takes ids of unknown origin that follow a whole output for the
// observation of its call; where that has one, for a copy of it if they are one.
func (a *attribution) observe(k int) {
	c := &a.t.Calls[k]
	for i := 1; i < len(c.Spans); i++ {
		s, before := c.Spans[i], c.Spans[i-1]
		if s.Origin != trace.OriginUnknown || before.Origin != trace.OriginRetained {
			continue
		}
		from := &a.t.Calls[before.FromCall]
		if before.Offset+before.End-before.Start != len(from.Output) {
			continue
		}
		here := c.Context[s.Start:s.End]
		if from.Observation == nil {
			from.Observation = slices.Clone(here)
			a.index(trace.OriginObservation, before.FromCall, from.Observation)
		}
		n := len(from.Observation)
		if n == 0 || commonLength(from.Observation, here) < n {
			continue
		}
		c.Spans[i] = trace.Span{Origin: trace.OriginObservation, FromCall: before.FromCall, Start: s.Start, End: s.Start + n}
		if s.Start += n; s.Start < s.End {
			c.Spans = slices.Insert(c.Spans, i+1, s)
		}
	}
}
