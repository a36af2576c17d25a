package page

import (
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// Kind says what a stored token is.
type Kind uint8

// The kinds of stored tokens.
const (
	KindPrefix      Kind = iota // of the task prefix
	KindCopy                    // an earlier output's, kept in a context
	KindObservation             // what the environment showed
	KindSampled                 // an action, where it was sampled
	KindOther                   // none that the record knows
)

// String is the kind's name in the page's legend.
func (k Kind) String() string {
	return [...]string{"prefix", "context copy", "observation", "sampled action", "other"}[k]
}

// source names a token by where it first came from: place offset of the prefix, of a
// call's output (OriginRetained) or of the observation after a call.
type source struct {
	origin trace.Origin
	call   int // -1: the prefix, or shown before the first call
	offset int
}

// place is a stored token as the record knows it.
type place struct {
	kind  Kind
	from  source
	owner int // the call whose context and output it stands in; -1: all or unknown
	index int // in that call's context and output: its true position; -1: unknown
}

// placesOf tells what each token of a row is.
func placesOf(t *trace.Trajectory, p *align.Packed) []place {
	places := make([]place, len(p.IDs))
	for i := range places {
		places[i] = place{KindOther, source{call: -1}, -1, -1}
		if i < p.PrefixLength {
			places[i] = place{KindPrefix, source{trace.OriginPrefix, -1, i}, -1, i}
		}
	}
	for _, a := range p.Actions {
		if !a.Spurious() && places[a.Index].kind != KindSampled {
			places[a.Index] = place{KindSampled, source{trace.OriginRetained, a.Call, a.Token}, a.Call, len(t.Calls[a.Call].Context) + a.Token}
		}
	}
	before := -1 // the last call with an action before the run
	for start := p.PrefixLength; start < len(places); {
		end := start
		for end < len(places) && places[end].kind != KindSampled {
			end++
		}
		if end == len(places) {
			break
		}
		nameRun(t, p.IDs[start:end], places[start:end], before, places[end].owner)
		before, start = places[end].owner, end+1
	}
	return places
}

// nameRun names the tokens that stand right before an action of call k: the end of
// its context, or in a flat history the observations since the action before, which
// was of call before.
func nameRun(t *trace.Trajectory, ids []int32, places []place, before, k int) {
	context := t.Calls[k].Context
	if n := len(context) - len(ids); n >= 0 && slices.Equal(context[n:], ids) {
		for i := range places {
			from := contextSource(&t.Calls[k], n+i)
			places[i] = place{kindOf(from.origin), from, k, n + i}
		}
		return
	}
	var shown []source
	var shownIDs []int32
	for j := max(before, 0); j < k; j++ {
		for i, id := range t.Calls[j].Observation {
			shown, shownIDs = append(shown, source{trace.OriginObservation, j, i}), append(shownIDs, id)
		}
	}
	if !slices.Equal(shownIDs, ids) {
		return
	}
	for i, from := range shown {
		places[i] = place{KindObservation, from, k, contextIndex(&t.Calls[k], from)}
	}
}

func kindOf(o trace.Origin) Kind {
	switch o {
	case trace.OriginPrefix:
		return KindPrefix
	case trace.OriginRetained:
		return KindCopy
	}
	return KindObservation
}

// contextSource is where token i of a call's context came from.
func contextSource(c *trace.Call, i int) source {
	for _, s := range c.Spans {
		if s.Start <= i && i < s.End {
			return source{s.Origin, s.FromCall, s.Offset + i - s.Start}
		}
	}
	return source{trace.OriginPrefix, -1, i}
}

// contextIndex is where a call's context holds a source, -1 if nowhere.
func contextIndex(c *trace.Call, from source) int {
	for _, s := range c.Spans {
		if i := from.offset - s.Offset; s.Origin == from.origin && s.FromCall == from.call && i >= 0 && i < s.End-s.Start {
			return s.Start + i
		}
	}
	return -1
}

// truth finds where a row stores what the calls saw.
type truth struct {
	t          *trace.Trajectory
	p          *align.Packed
	places     []place
	bySource   map[source][]int
	byPosition map[int32][]int
	calls      map[int][]int // call -> the place of each token of its context and output, -1: nowhere
}

func newTruth(t *trace.Trajectory, p *align.Packed) *truth {
	r := &truth{t: t, p: p, places: placesOf(t, p), bySource: map[source][]int{}, byPosition: map[int32][]int{}, calls: map[int][]int{}}
	for i, x := range r.places {
		if x.kind != KindOther && x.kind != KindSampled {
			r.bySource[x.from] = append(r.bySource[x.from], i)
		}
		r.byPosition[p.Positions[i]] = append(r.byPosition[p.Positions[i]], i)
	}
	for _, a := range p.Actions {
		if !a.Spurious() {
			from := source{trace.OriginRetained, a.Call, a.Token}
			r.bySource[from] = append(r.bySource[from], a.Index)
		}
	}
	return r
}

// call is the place of each token of a call's context and output.
func (r *truth) call(k int) []int {
	if list, ok := r.calls[k]; ok {
		return list
	}
	c := &r.t.Calls[k]
	list := make([]int, len(c.Context)+len(c.Output))
	for i := range list {
		list[i] = -1
	}
	query := -1 // a place in the call's state
	for i, x := range r.places {
		if x.owner == k && x.index >= 0 {
			list[x.index], query = i, i
		}
	}
	for i, at := range list {
		if at < 0 {
			list[i] = r.find(c, k, i, query)
		}
	}
	r.calls[k] = list
	return list
}

// find looks for token i of call k's context and output where none stands in the
// call's own block: a place that query sees is better than one that it does not, and
// one with the right position better than another.
func (r *truth) find(c *trace.Call, k, i, query int) int {
	from, id := source{trace.OriginRetained, k, i - len(c.Context)}, int32(-1)
	if i < len(c.Context) {
		from, id = contextSource(c, i), c.Context[i]
	} else {
		id = c.Output[i-len(c.Context)]
	}
	best, score := -1, 0
	consider := func(at, worth int) {
		if worth > score {
			best, score = at, worth
		}
	}
	for _, at := range r.bySource[from] {
		worth := 1
		if r.p.Visible(query, at) {
			worth = 3
			if int(r.p.Positions[at]) == i {
				worth = 4
			}
		}
		consider(at, worth)
	}
	for _, at := range r.byPosition[int32(i)] {
		if r.p.IDs[at] == id && r.p.Visible(query, at) {
			consider(at, 2)
		}
	}
	return best
}

// state lists the places that hold the first n tokens of call k's context and output.
func (r *truth) state(k, n int) []align.Range {
	places := slices.Clone(r.call(k)[:n])
	slices.Sort(places)
	var list []align.Range
	for i, at := range places {
		if at >= 0 && (i == 0 || places[i-1] != at) {
			list = add(list, at)
		}
	}
	return list
}
