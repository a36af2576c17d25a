package page

import (
	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// Segment is a run of stored tokens that are alike: of one kind and source, in one
// block, at consecutive positions, in the state of one call. The lists hold places
// before it, in the numbering of the view.
type Segment struct {
	Start, End int
	Kind       Kind
	Owner      int // the call in whose state it stands, -1: none
	Index      int // true position of its first token, -1: unknown
	From       int // the call whose output or observation it is, -1: none
	Offset     int // in that
	Position   int // stored position of its first token

	Right, Extra, Missing []align.Range // seen as in the rollout; seen and should not be; not seen and should be
}

// Area is a part of the visibility matrix: the places [Q0, Q1) see those of
// [K0, K1); of a triangle, which lies on the diagonal, each up to itself.
type Area struct {
	Q0, Q1, K0, K1 int
	Triangle       bool
}

// Contains tells whether the pair (query, key) lies in the area.
func (a Area) Contains(q, k int) bool {
	return a.Q0 <= q && q < a.Q1 && a.K0 <= k && k < a.K1 && (!a.Triangle || k <= q)
}

// pairs counts the pairs of an area.
func (a Area) pairs() int {
	n := a.Q1 - a.Q0
	if a.Triangle {
		return n * (n + 1) / 2
	}
	return n * (a.K1 - a.K0)
}

// view is a layout of one trajectory with its rows one after the other, which is how
// places are numbered.
type view struct {
	t        *trace.Trajectory
	rows     []*align.Packed
	base     []int // place of each row's first token
	n        int   // places
	segments []Segment
	actions  []align.Action // Index and Predict as places of the view

	right, extra, missing []Area
}

func newView(t *trace.Trajectory, rows []*align.Packed) *view {
	v := &view{t: t, rows: rows}
	for _, p := range rows {
		v.base = append(v.base, v.n)
		for _, s := range segmentsOf(t, p) {
			s.shift(v.n)
			v.segments = append(v.segments, s)
		}
		for _, a := range p.Actions {
			a.Index, a.Predict = a.Index+v.n, a.Predict+v.n
			v.actions = append(v.actions, a)
		}
		v.n += len(p.IDs)
	}
	for _, s := range v.segments {
		for _, list := range []struct {
			areas *[]Area
			seen  []align.Range
		}{{&v.right, s.Right}, {&v.extra, s.Extra}, {&v.missing, s.Missing}} {
			for _, r := range list.seen {
				*list.areas = append(*list.areas, Area{s.Start, s.End, r.Start, r.End, false})
			}
		}
		v.right = append(v.right, Area{s.Start, s.End, s.Start, s.End, true})
	}
	return v
}

// shift moves a segment by n places.
func (s *Segment) shift(n int) {
	s.Start, s.End = s.Start+n, s.End+n
	for _, list := range [][]align.Range{s.Right, s.Extra, s.Missing} {
		for i := range list {
			list[i].Start, list[i].End = list[i].Start+n, list[i].End+n
		}
	}
}

// segmentsOf divides a row, and compares what each part sees with what it saw.
func segmentsOf(t *trace.Trajectory, p *align.Packed) []Segment {
	r := newTruth(t, p)
	var list []Segment
	block := -1 // the prefix
	for i, x := range r.places {
		moved := false
		for i >= p.PrefixLength && block+1 < len(p.Blocks) && p.Blocks[block+1].Start <= i {
			block, moved = block+1, true
		}
		if n := len(list); n > 0 && !moved && list[n-1].takes(x, int(p.Positions[i])) {
			list[n-1].End++
			continue
		}
		s := Segment{Start: i, End: i + 1, Kind: x.kind, Owner: x.owner, Index: x.index, From: x.from.call, Offset: x.from.offset, Position: int(p.Positions[i])}
		r.compare(&s, block)
		list = append(list, s)
	}
	return list
}

// takes tells whether the place right after the segment goes on as it does.
func (s *Segment) takes(x place, position int) bool {
	n := s.End - s.Start
	index := s.Index
	if index >= 0 {
		index += n
	}
	return x.kind == s.Kind && x.owner == s.Owner && x.index == index && x.from.call == s.From &&
		(x.kind == KindOther || x.from.offset == s.Offset+n) && position == s.Position+n
}

// compare fills in what a segment of a block sees of the places before it.
func (r *truth) compare(s *Segment, block int) {
	seen := []align.Range{{Start: 0, End: s.Start}} // of the prefix
	if block >= 0 {
		b := &r.p.Blocks[block]
		seen = nil
		switch {
		case b.Sees != nil:
			seen = append(seen, b.Sees...)
		case r.p.PrefixLength > 0:
			seen = append(seen, align.Range{Start: 0, End: r.p.PrefixLength})
		}
		seen = append(seen, align.Range{Start: b.Start, End: s.Start})
	}
	seen = clip(seen, 0, s.Start)
	if s.Owner < 0 || s.Index < 0 {
		s.Right = seen
		return
	}
	want := clip(r.state(s.Owner, s.Index), 0, s.Start)
	s.Right, s.Extra, s.Missing = both(seen, want), without(seen, want), without(want, seen)
}

// pairs counts the pairs of areas.
func pairs(areas []Area) int {
	n := 0
	for _, a := range areas {
		n += a.pairs()
	}
	return n
}

// segmentAt is the segment that holds a place.
func (v *view) segmentAt(place int) *Segment {
	for i := range v.segments {
		if place < v.segments[i].End {
			return &v.segments[i]
		}
	}
	return nil
}

// rowAt is the row that holds a place.
func (v *view) rowAt(place int) int {
	row := 0
	for i, b := range v.base {
		if b <= place {
			row = i
		}
	}
	return row
}

// id is the token at a place.
func (v *view) id(place int) int32 {
	row := v.rowAt(place)
	return v.rows[row].IDs[place-v.base[row]]
}

// position is the stored position of a place.
func (v *view) position(place int) int {
	row := v.rowAt(place)
	return int(v.rows[row].Positions[place-v.base[row]])
}
