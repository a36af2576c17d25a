package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/align"
)

// layout is a batch as the forward pass takes it: a flat run of N tokens for
// the token-wise layers, and for attention groups of rows of like length.
//
// Keys are numbered on their own: first past tokens whose keys and values are
// at hand from earlier passes, then the flat tokens.
type layout struct {
	ids       []int64 // N
	positions []int32 // N
	past      int     // keys before the flat tokens'
	groups    []group
	back      []int64 // N: where a token's attention output stands in the groups' outputs, one after another
}

// group is a padded set of attention rows. Queries are each row's own C tokens;
// keys are P places for its prefix, then the same C tokens.
type group struct {
	rows, own, prefix int     // R, C, P
	queries           []int64 // (R, C): flat tokens; a padded place repeats the row's last
	keys              []int64 // (R, P+C)
	prefixLengths     []int64 // R: the prefix places in use

	visible *align.Packed // one whole sequence under a dense mask: see dense.go
}

// span is one attention row before grouping: flat tokens [start, start+length)
// after the keys of its prefix.
type span struct {
	start, length int
	prefix        []int64
}

// count is the numbers from start on, length of them.
func count(start, length int) []int64 {
	list := make([]int64, length)
	for i := range list {
		list[i] = int64(start + i)
	}
	return list
}

// newLayout lays packed sequences out. One whose only block sees the whole prefix
// is one causal row; any other is a causal row for its prefix and one row a block,
// whose keys are the places that it sees. It returns the flat start of each
// sequence too.
func newLayout(batch []*align.Packed) (*layout, []int, error) {
	l := &layout{}
	var spans []span
	starts := make([]int, len(batch))
	for i, p := range batch {
		if err := check(p); err != nil {
			return nil, nil, fmt.Errorf("sequence %d (%s): %w", i, p.TrajectoryID, err)
		}
		start := len(l.ids)
		starts[i] = start
		for j, id := range p.IDs {
			l.ids = append(l.ids, int64(id))
			l.positions = append(l.positions, p.Positions[j])
		}
		spans = appendSpans(spans, p, start)
	}
	l.group(spans)
	return l, starts, nil
}

// appendSpans appends the attention rows of a sequence whose flat tokens begin at start.
func appendSpans(spans []span, p *align.Packed, start int) []span {
	if causal(p) {
		return append(spans, span{start: start, length: len(p.IDs)})
	}
	if p.PrefixLength > 0 {
		spans = append(spans, span{start: start, length: p.PrefixLength})
	}
	prefix := count(start, p.PrefixLength)
	for _, b := range p.Blocks {
		keys := prefix
		if b.Sees != nil {
			keys = nil
			for _, r := range b.Sees {
				keys = append(keys, count(start+r.Start, r.End-r.Start)...)
			}
		}
		spans = append(spans, span{start + b.Start, b.End - b.Start, keys})
	}
	return spans
}

// causal tells whether each token of a sequence sees all before it.
func causal(p *align.Packed) bool {
	return len(p.Blocks) == 0 || len(p.Blocks) == 1 && p.SeenBefore(&p.Blocks[0]) == p.Blocks[0].Start
}

// check reports a sequence whose blocks do not partition the tokens after the
// prefix, or see what is not there.
func check(p *align.Packed) error {
	if len(p.IDs) == 0 || len(p.Positions) != len(p.IDs) {
		return fmt.Errorf("%d ids and %d positions", len(p.IDs), len(p.Positions))
	}
	end := p.PrefixLength
	for _, b := range p.Blocks {
		if b.Start != end || b.End <= b.Start {
			return fmt.Errorf("block of call %d is [%d, %d), want a start at %d", b.Call, b.Start, b.End, end)
		}
		seen := 0
		for _, r := range b.Sees {
			if r.Start < seen || r.End <= r.Start || r.End > b.Start {
				return fmt.Errorf("block of call %d at %d sees [%d, %d): want ranges in order, apart and before the block", b.Call, b.Start, r.Start, r.End)
			}
			seen = r.End
		}
		end = b.End
	}
	if end != len(p.IDs) || p.PrefixLength < 0 {
		return fmt.Errorf("prefix and blocks end at %d of %d tokens", end, len(p.IDs))
	}
	for _, q := range p.Positions {
		if q < 0 {
			return fmt.Errorf("position %d", q)
		}
	}
	return nil
}

// A group ends where its next row is shorter than its first by this share, once
// it has enough scores to be worth a round of operators of its own. One whose
// padded scores are more than the share of waste is cut by the rows' prefixes too.
const (
	groupShrink    = 0.8
	scoresPerGroup = 1 << 15
	groupWaste     = 1.25
)

// group sorts rows by length and cuts them into groups with little padding.
func (l *layout) group(spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(min(len(a.prefix), 1), min(len(b.prefix), 1)),
			-cmp.Compare(a.length, b.length), -cmp.Compare(len(a.prefix), len(b.prefix)))
	})
	l.back = make([]int64, len(l.ids))
	offset := 0
	for len(spans) > 0 {
		n := groupSize(spans)
		for _, part := range cutByPrefix(spans[:n]) {
			g := newGroup(part, l.past)
			for r, s := range part {
				for i := range s.length {
					l.back[s.start+i] = int64(offset + r*g.own + i)
				}
			}
			offset += g.rows * g.own
			l.groups = append(l.groups, g)
		}
		spans = spans[n:]
	}
}

// cutByPrefix cuts a group whose rows have too unlike prefixes, as those of a
// tree's blocks have, into parts with prefixes of like length.
func cutByPrefix(spans []span) [][]span {
	if padded, used := scores(spans); float64(padded) <= groupWaste*float64(used) {
		return [][]span{spans}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return -cmp.Compare(len(a.prefix), len(b.prefix)) })
	var parts [][]span
	first, own := 0, 0
	for i, s := range spans {
		prefix := len(spans[first].prefix)
		if float64(len(s.prefix)) < groupShrink*float64(prefix) && (i-first)*own*(prefix+own) >= scoresPerGroup {
			parts = append(parts, spans[first:i])
			first, own = i, 0
		}
		own = max(own, s.length)
	}
	return append(parts, spans[first:])
}

// scores counts the query-key pairs of rows as one group: with padding, and without.
func scores(spans []span) (padded, used int) {
	own, prefix := longest(spans)
	for _, s := range spans {
		used += s.length * (len(s.prefix) + s.length)
	}
	return len(spans) * own * (prefix + own), used
}

// longest is the most own tokens and the most prefix places that a row has.
func longest(spans []span) (own, prefix int) {
	for _, s := range spans {
		own, prefix = max(own, s.length), max(prefix, len(s.prefix))
	}
	return own, prefix
}

// groupSize is how many of the first rows form a group.
func groupSize(spans []span) int {
	first, scores, prefix := spans[0], 0, 0
	for n, s := range spans {
		short := float64(s.length) < groupShrink*float64(first.length)
		if (len(s.prefix) > 0) != (len(first.prefix) > 0) || short && scores >= scoresPerGroup {
			return n
		}
		prefix = max(prefix, len(s.prefix))
		scores += first.length * (prefix + first.length)
	}
	return len(spans)
}

func newGroup(spans []span, past int) group {
	g := group{rows: len(spans)}
	g.own, g.prefix = longest(spans)
	for _, s := range spans {
		g.prefixLengths = append(g.prefixLengths, int64(len(s.prefix)))
	}
	for _, s := range spans {
		g.keys = append(g.keys, s.prefix...)
		for range g.prefix - len(s.prefix) {
			g.keys = append(g.keys, 0) // masked: any key will do
		}
		for i := range g.own {
			token := s.start + min(i, s.length-1)
			g.queries = append(g.queries, int64(token))
			g.keys = append(g.keys, int64(past+token))
		}
	}
	return g
}

// uniform tells whether all rows use all prefix places, so that one mask serves all.
func (g *group) uniform() bool {
	for _, n := range g.prefixLengths {
		if n != int64(g.prefix) {
			return false
		}
	}
	return true
}
