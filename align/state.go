package align

import "sort"

// A memory state is what a token's logits depend on: the ids and positions of the
// tokens that its predictor attends to, the predictor's own, and, since those
// tokens' keys and values depend on what they attended to in turn, the states of
// all of them. Two states are equal when a model must give the same logits for them.

// before lists the places before q that the token there attends to, in ranges.
func (p *Packed) before(q int) []Range {
	if q < p.PrefixLength {
		return []Range{{0, q}}
	}
	i := sort.Search(len(p.Blocks), func(i int) bool { return p.Blocks[i].End > q })
	if i == len(p.Blocks) {
		return nil
	}
	b := &p.Blocks[i]
	own := Range{b.Start, q}
	if b.Sees == nil {
		return []Range{{0, p.PrefixLength}, own}
	}
	return append(append(make([]Range, 0, len(b.Sees)+1), b.Sees...), own)
}

// States holds a number for the state at each place of a row: equal numbers stand
// for equal states (but for a chance of about 2^-64 a pair). They are found in one
// pass, without a table of who sees whom.
type States struct {
	row *Packed
	at  []uint64 // the state at each place, the token there included
	sum []uint64 // sum[i] of the first i of them
}

// StatesOf finds the states at all places of a row.
func StatesOf(p *Packed) *States {
	s := &States{row: p, at: make([]uint64, len(p.IDs)), sum: make([]uint64, len(p.IDs)+1)}
	for q := range p.IDs {
		s.at[q] = s.token(q)
		s.sum[q+1] = s.sum[q] + s.at[q]
	}
	return s
}

// token is the state of the token at q: its id, its position, and the states that
// it attends to, in no order, since attention has none.
func (s *States) token(q int) uint64 {
	seen := uint64(0)
	for _, r := range s.row.before(q) {
		if end := min(r.End, q); r.Start < end {
			seen += s.sum[end] - s.sum[r.Start]
		}
	}
	h := scramble(uint64(uint32(s.row.IDs[q]))<<32 | uint64(uint32(s.row.Positions[q])))
	return scramble(h ^ scramble(seen+0x9e3779b97f4a7c15))
}

// At is the state at a place; false outside the row.
func (s *States) At(place int) (uint64, bool) {
	if place < 0 || place >= len(s.at) {
		return 0, false
	}
	return s.at[place], true
}

// Equal tells whether an action of this row has the state of another row's: the
// same one predicts it, and its own id and position are the same.
func (s *States) Equal(a Action, other *States, b Action) bool {
	x, ok := s.At(a.Predict)
	y, ok2 := other.At(b.Predict)
	if !ok || !ok2 || x != y || a.ID != b.ID {
		return false
	}
	_, ok = s.At(a.Index)
	_, ok2 = other.At(b.Index)
	return ok && ok2 && s.row.Positions[a.Index] == other.row.Positions[b.Index]
}

// predictor is the place that should predict the token at q: the last one that it
// sees; -1 if it sees none.
func (p *Packed) predictor(q int) int {
	last := -1
	for _, r := range p.before(q) {
		if end := min(r.End, q); end > r.Start {
			last = end - 1
		}
	}
	return last
}

// scramble spreads a number's bits (the finaliser of SplitMix64).
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
