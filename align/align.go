// Package align compiles recorded trajectories into training sequences that
// reproduce each sampled action's memory state: token ids, position ids, causal
// visibility and prediction position (MemOPD, arXiv 2608.07068). It is pure Go
// and knows no tensors.
package align

// Action is one sampled token in a compiled sequence.
type Action struct {
	Trajectory int   // index of the sample that it is of; 0 where there is but one
	Call       int   // index of the call that sampled it
	Token      int   // index in that call's output, -1 for what was never sampled
	ID         int32 // the sampled token id
	Index      int   // physical place of its original occurrence
	Predict    int   // physical place whose logits predict it
	Teacher    bool  // in the teacher mask
}

// Spurious tells a position that only a wrong action mask takes for an action:
// nothing was sampled there.
func (a Action) Spurious() bool { return a.Token < 0 }

// Range is a run of physical places [Start, End).
type Range struct{ Start, End int }

// Block is a run of tokens [Start, End) with one visibility: each sees the places
// of Sees and the earlier tokens of the block. Trajectory and Call are the sample
// and the call whose tokens they are, each -1 for those of several.
type Block struct {
	Trajectory int
	Call       int
	Start, End int

	// Sees are the places before Start that the block's tokens attend to: ranges that
	// hold something, in order, none over another. Nil: the task prefix; empty: none.
	Sees []Range
}

// Packed is one compiled sequence. Tokens [0, PrefixLength) are the task
// prefix, once; the blocks follow, and partition the rest. A causal row (one
// call, or the persistent history) is a Packed with one block that sees the
// prefix.
type Packed struct {
	TrajectoryID string
	IDs          []int32
	Positions    []int32
	PrefixLength int
	Blocks       []Block
	Actions      []Action // ordered by trajectory, call and token
}
