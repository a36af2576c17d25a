package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/align"
)

// layout is a batch as the forward pass takes it: a flat run of N tokens for
// the token-wise layers, and for attention groups of rows of like length.
type layout struct {
	ids       []int64 // N
	positions []int32 // N
	groups    []group
	back      []int64 // N: where a token's attention output stands in the groups' outputs, one after another
}

// group is a padded set of attention rows. Queries are each row's own C tokens;
// keys are P places for its prefix, then the same C tokens.
type group struct {
	rows, own, prefix int     // R, C, P
	queries           []int64 // (R, C): flat tokens; a padded place repeats the row's last
	keys              []int64 // (R, P+C)
	prefixLengths     []int   // R: the prefix places in use
}

// span is one attention row before grouping: flat tokens [start, start+length)
// after a prefix of flat tokens [prefix, prefix+prefixLength).
type span struct {
	start, length        int
	prefix, prefixLength int
}

// newLayout lays packed sequences out. A sequence with at most one block is one
// causal row; any other is a causal row for its prefix and one row a block. It
// returns the flat start of each sequence too.
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
		if len(p.Blocks) <= 1 {
			spans = append(spans, span{start: start, length: len(p.IDs)})
			continue
		}
		if p.PrefixLength > 0 {
			spans = append(spans, span{start: start, length: p.PrefixLength})
		}
		for _, b := range p.Blocks {
			spans = append(spans, span{start + b.Start, b.End - b.Start, start, p.PrefixLength})
		}
	}
	l.group(spans)
	return l, starts, nil
}

// check reports a sequence whose blocks do not partition the tokens after the prefix.
func check(p *align.Packed) error {
	if len(p.IDs) == 0 || len(p.Positions) != len(p.IDs) {
		return fmt.Errorf("%d ids and %d positions", len(p.IDs), len(p.Positions))
	}
	end := p.PrefixLength
	for _, b := range p.Blocks {
		if b.Start != end || b.End <= b.Start {
			return fmt.Errorf("block of call %d is [%d, %d), want a start at %d", b.Call, b.Start, b.End, end)
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
// it has enough scores to be worth a round of operators of its own.
const (
	groupShrink    = 0.8
	scoresPerGroup = 1 << 15
)

// group sorts rows by length and cuts them into groups with little padding.
func (l *layout) group(spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(min(a.prefixLength, 1), min(b.prefixLength, 1)),
			-cmp.Compare(a.length, b.length), -cmp.Compare(a.prefixLength, b.prefixLength))
	})
	l.back = make([]int64, len(l.ids))
	offset := 0
	for len(spans) > 0 {
		n := groupSize(spans)
		g := newGroup(spans[:n])
		for r, s := range spans[:n] {
			for i := range s.length {
				l.back[s.start+i] = int64(offset + r*g.own + i)
			}
		}
		offset += g.rows * g.own
		l.groups = append(l.groups, g)
		spans = spans[n:]
	}
}

// groupSize is how many of the first rows form a group.
func groupSize(spans []span) int {
	first, scores, prefix := spans[0], 0, 0
	for n, s := range spans {
		short := float64(s.length) < groupShrink*float64(first.length)
		if (s.prefixLength > 0) != (first.prefixLength > 0) || short && scores >= scoresPerGroup {
			return n
		}
		prefix = max(prefix, s.prefixLength)
		scores += first.length * (prefix + first.length)
	}
	return len(spans)
}

func newGroup(spans []span) group {
	g := group{rows: len(spans), own: spans[0].length}
	for _, s := range spans {
		g.prefix = max(g.prefix, s.prefixLength)
		g.prefixLengths = append(g.prefixLengths, s.prefixLength)
	}
	for _, s := range spans {
		for i := range g.prefix {
			// Without a prefix token the place is masked; any token will do.
			g.keys = append(g.keys, int64(s.prefix+min(i, max(s.prefixLength-1, 0))))
		}
		for i := range g.own {
			token := int64(s.start + min(i, s.length-1))
			g.queries = append(g.queries, token)
			g.keys = append(g.keys, token)
		}
	}
	return g
}

// uniform tells whether all rows use all prefix places, so that one mask serves all.
func (g *group) uniform() bool {
	for _, n := range g.prefixLengths {
		if n != g.prefix {
			return false
		}
	}
	return true
}

// mask is the additive mask of the group, row-major: 0 where a query sees a key,
// minus infinity elsewhere. It has one row, or R rows where prefixes differ.
// Padded queries see what the row's last token sees, or more of its copies, and
// no real query sees a padded key.
func (g *group) mask() (values []float32, rows int) {
	rows = g.rows
	if g.uniform() {
		rows = 1
	}
	keys := g.prefix + g.own
	values = make([]float32, rows*g.own*keys)
	for r := range rows {
		for q := range g.own {
			line := values[(r*g.own+q)*keys:][:keys]
			for k := g.prefixLengths[r]; k < g.prefix; k++ {
				line[k] = negativeInfinity
			}
			for k := g.prefix + q + 1; k < keys; k++ {
				line[k] = negativeInfinity
			}
		}
	}
	return values, rows
}
