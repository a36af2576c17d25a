package align

import "sort"

// Visible reports whether the token at physical place q attends to that at k:
// earlier prefix tokens, for a token of a block the places that the block sees
// and the block's earlier tokens, and itself. Places outside the sequence see
// nothing and are seen by none.
func (p *Packed) Visible(q, k int) bool {
	switch {
	case k < 0 || k > q || q >= len(p.IDs):
		return false
	case q < p.PrefixLength || k == q:
		return true
	}
	i := p.blockAt(q)
	return i < len(p.Blocks) && p.Blocks[i].sees(k, p.PrefixLength)
}

// blockAt is the index of the block that holds place q, after the prefix.
func (p *Packed) blockAt(q int) int {
	return sort.Search(len(p.Blocks), func(i int) bool { return p.Blocks[i].End > q })
}

// sees tells whether the block's last token attends to place k.
func (b *Block) sees(k, prefix int) bool {
	switch {
	case k >= b.Start:
		return k < b.End
	case b.Sees == nil:
		return k < prefix
	}
	i := sort.Search(len(b.Sees), func(i int) bool { return b.Sees[i].End > k })
	return i < len(b.Sees) && b.Sees[i].Start <= k
}

// SeenBefore counts the places before the block that its tokens attend to.
func (p *Packed) SeenBefore(b *Block) int {
	if b.Sees == nil {
		return p.PrefixLength
	}
	n := 0
	for _, r := range b.Sees {
		n += r.End - r.Start
	}
	return n
}

// ActionMask is true on the original occurrence of each sampled token, and where
// a wrong mask takes one to be: one value a stored token. Actions of several calls
// can share a place, so that losses go by Actions.
func (p *Packed) ActionMask() []bool {
	mask := make([]bool, len(p.IDs))
	for _, a := range p.Actions {
		mask[a.Index] = true
	}
	return mask
}

// TeacherMask is true where the teacher's term is taken: a subset of ActionMask.
func (p *Packed) TeacherMask() []bool {
	mask := make([]bool, len(p.IDs))
	for _, a := range p.Actions {
		mask[a.Index] = mask[a.Index] || a.Teacher
	}
	return mask
}

// Stats are token counts of compiled sequences.
type Stats struct {
	Calls          int // that an action comes from
	Blocks         int
	StoredTokens   int // tokens of the sequence
	SeparateTokens int // tokens of one row a call, each with its own prefix
	Actions        int // sampled tokens
	SpuriousTokens int // places that a wrong mask takes for actions
	TeacherActions int
}

// Stats counts the tokens of a sequence. A call's own row is what its last action
// sees, and that action.
func (p *Packed) Stats() Stats {
	s := Stats{Blocks: len(p.Blocks), StoredTokens: len(p.IDs)}
	var last *Action
	row := func() {
		if last != nil {
			s.Calls++
			s.SeparateTokens += p.rowLength(last.Index)
		}
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Spurious() {
			s.SpuriousTokens++
			continue
		}
		if last != nil && (last.Trajectory != a.Trajectory || last.Call != a.Call) {
			row()
		}
		last = a
		s.Actions++
		if a.Teacher {
			s.TeacherActions++
		}
	}
	row()
	return s
}

// rowLength is how many places the token at place q sees, itself included.
func (p *Packed) rowLength(q int) int {
	i := p.blockAt(q)
	if q < p.PrefixLength || i == len(p.Blocks) {
		return q + 1
	}
	b := &p.Blocks[i]
	return p.SeenBefore(b) + q - b.Start + 1
}

// Add sums two counts.
func (s Stats) Add(t Stats) Stats {
	return Stats{
		Calls:          s.Calls + t.Calls,
		Blocks:         s.Blocks + t.Blocks,
		StoredTokens:   s.StoredTokens + t.StoredTokens,
		SeparateTokens: s.SeparateTokens + t.SeparateTokens,
		Actions:        s.Actions + t.Actions,
		SpuriousTokens: s.SpuriousTokens + t.SpuriousTokens,
		TeacherActions: s.TeacherActions + t.TeacherActions,
	}
}

// Saved is the share of the separate rows' tokens that packing does not store,
// 0 when there are none.
func (s Stats) Saved() float64 {
	if s.SeparateTokens == 0 {
		return 0
	}
	return 1 - float64(s.StoredTokens)/float64(s.SeparateTokens)
}
