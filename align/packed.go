package align

import "sort"

// Visible reports whether the token at physical place q attends to that at k:
// earlier prefix tokens, earlier tokens of its own block, and itself. Places
// outside the sequence see nothing and are seen by none.
func (p *Packed) Visible(q, k int) bool {
	switch {
	case k < 0 || k > q || q >= len(p.IDs):
		return false
	case k < p.PrefixLength:
		return true
	}
	i := sort.Search(len(p.Blocks), func(i int) bool { return p.Blocks[i].End > q })
	return i < len(p.Blocks) && p.Blocks[i].Start <= k
}

// ActionMask is true on the original occurrence of each sampled token, one value
// a stored token.
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
		mask[a.Index] = a.Teacher
	}
	return mask
}

// Stats are token counts of compiled sequences.
type Stats struct {
	Blocks         int
	StoredTokens   int // tokens of the sequence
	SeparateTokens int // tokens of one row a block, each with its own prefix
	Actions        int
	TeacherActions int
}

// Stats counts the tokens of a sequence.
func (p *Packed) Stats() Stats {
	s := Stats{Blocks: len(p.Blocks), StoredTokens: len(p.IDs), Actions: len(p.Actions)}
	for _, b := range p.Blocks {
		s.SeparateTokens += p.PrefixLength + b.End - b.Start
	}
	for _, a := range p.Actions {
		if a.Teacher {
			s.TeacherActions++
		}
	}
	return s
}

// Add sums two counts.
func (s Stats) Add(t Stats) Stats {
	return Stats{
		Blocks:         s.Blocks + t.Blocks,
		StoredTokens:   s.StoredTokens + t.StoredTokens,
		SeparateTokens: s.SeparateTokens + t.SeparateTokens,
		Actions:        s.Actions + t.Actions,
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
