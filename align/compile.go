package align

import (
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// Teacher says whether a sampled token is in the teacher mask.
type Teacher func(t *trace.Trajectory, call, token int) bool

// TeacherFromCall puts the tokens of call first and later ones in the mask.
func TeacherFromCall(first int) Teacher {
	return func(_ *trace.Trajectory, call, _ int) bool { return call >= first }
}

// Options are the limits and masks of a compilation; the zero value has no
// limit and teaches every sampled token.
type Options struct {
	// MaxPackedTokens bounds the tokens stored in one compiled sequence, 0: no bound.
	MaxPackedTokens int
	// MaxCallTokens bounds context and output of one call together, 0: no bound.
	MaxCallTokens int
	// Teacher chooses the teacher mask among the sampled tokens, nil: all.
	Teacher Teacher
	// PrefixOnly stores nothing once but the task prefix, as MemOPD's own packing:
	// for Compile, whose states are the same either way.
	PrefixOnly bool
	// ThinkLength is how many of a call's output tokens are its memory, the rest
	// being its action: for MEM1, which treats them apart. Nil: all of them.
	ThinkLength func(t *trace.Trajectory, call int) int
}

// Compile packs all calls of a trajectory in one sequence, as a prefix tree: what
// several calls begin with (task prefix, then mutable context and output) is
// stored once, the task prefix always. A block is a run of tokens that the same calls begin
// with; it sees what these calls have before it, and positions are those of the call, so
// that each call keeps its ids, positions and visibility. A retained output stands twice, as action
// and as context of a later call, unless all that stands before it is the same too.
//
// An action is predicted by the token before it in its call; the first action
// of a call whose mutable context is empty is predicted by the last prefix
// token. The error is a *Rejected: no trajectory is ever shortened.
func Compile(t *trace.Trajectory, o Options) (*Packed, error) {
	return CompileGroup([]*trace.Trajectory{t}, o)
}

// CompileGroup packs samples of one task in one sequence, as Compile does their
// calls: samples share what they begin with, too. Two samples that begin an output with the same
// token have one place for it and an action each. MaxPackedTokens bounds the whole. The error is
// a *Rejected for the first sample that Compile would reject, or whose prefix is another.
func CompileGroup(ts []*trace.Trajectory, o Options) (*Packed, error) {
	if len(ts) == 0 {
		return nil, &Rejected{Reason: ReasonNoActions, Call: -1, Detail: "no samples"}
	}
	for _, t := range ts {
		if r := validate(t, o); r != nil {
			return nil, r
		}
		if !slices.Equal(t.Prefix, ts[0].Prefix) {
			return nil, &Rejected{TrajectoryID: t.ID, Reason: ReasonInconsistent, Call: -1,
				Detail: fmt.Sprintf("its task prefix (%d tokens) is not that of %q (%d tokens)", len(t.Prefix), ts[0].ID, len(ts[0].Prefix))}
		}
	}
	return compile(ts, o)
}

// Calls gives one causal row for each call that sampled something, as the
// sampler saw it: prefix, mutable context, output. It is the truth that Compile
// is measured against. The error is a *Rejected.
func Calls(t *trace.Trajectory, o Options) ([]*Packed, error) {
	if r := validate(t, o); r != nil {
		return nil, r
	}
	var rows []*Packed
	for k := range t.Calls {
		if len(t.Calls[k].Output) == 0 {
			continue
		}
		b := newBuilder(t, o)
		b.call(k)
		row, err := b.finish()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Persistent flattens a trajectory into the history that a full transcript
// shows: prefix, y_0, o_0, y_1, o_1, … with marching positions and causal
// visibility (its block has the Call -1). If the first call already had a
// mutable context, that stands before y_0. What follows the last action is left
// out. Actions correspond one to one, in order, with those of Compile: the same
// tokens, scored in another state. The error is a *Rejected.
func Persistent(t *trace.Trajectory, o Options) (*Packed, error) {
	if r := validate(t, o); r != nil {
		return nil, r
	}
	b := newBuilder(t, o)
	b.open(-1)
	b.context(t.Calls[0].Context[len(t.Prefix):])
	for k := range t.Calls {
		b.output(k)
		b.context(t.Calls[k].Observation)
	}
	b.cut()
	return b.finish()
}

// builder appends blocks to a packed sequence that starts with the prefix.
type builder struct {
	t *trace.Trajectory
	o Options
	p *Packed
}

func newBuilder(t *trace.Trajectory, o Options) *builder {
	b := &builder{t: t, o: o, p: &Packed{TrajectoryID: t.ID, PrefixLength: len(t.Prefix)}}
	for i, id := range t.Prefix {
		b.p.IDs = append(b.p.IDs, id)
		b.p.Positions = append(b.p.Positions, int32(i))
	}
	return b
}

// open starts a block, whose positions go on from the prefix.
func (b *builder) open(call int) {
	n := len(b.p.IDs)
	b.p.Blocks = append(b.p.Blocks, Block{Call: call, Start: n, End: n})
}

func (b *builder) call(k int) {
	b.open(k)
	b.context(b.t.Calls[k].Context[len(b.t.Prefix):])
	b.output(k)
}

// context appends tokens that condition and are no actions.
func (b *builder) context(ids []int32) {
	for _, id := range ids {
		b.token(id)
	}
}

// output appends the sampled tokens of call k.
func (b *builder) output(k int) {
	for i, id := range b.t.Calls[k].Output {
		predict := len(b.p.IDs) - 1
		if len(b.p.IDs) == b.p.Blocks[len(b.p.Blocks)-1].Start {
			predict = b.p.PrefixLength - 1
		}
		teacher := b.o.Teacher == nil || b.o.Teacher(b.t, k, i)
		b.p.Actions = append(b.p.Actions, Action{Call: k, Token: i, ID: id, Index: len(b.p.IDs), Predict: predict, Teacher: teacher})
		b.token(id)
	}
}

func (b *builder) token(id int32) {
	block := &b.p.Blocks[len(b.p.Blocks)-1]
	b.p.Positions = append(b.p.Positions, int32(b.p.PrefixLength+len(b.p.IDs)-block.Start))
	b.p.IDs = append(b.p.IDs, id)
	block.End = len(b.p.IDs)
}

// cut takes off what follows the last action.
func (b *builder) cut() {
	end := b.p.Actions[len(b.p.Actions)-1].Index + 1
	b.p.IDs, b.p.Positions = b.p.IDs[:end], b.p.Positions[:end]
	n := len(b.p.Blocks)
	for b.p.Blocks[n-1].Start >= end {
		n--
	}
	b.p.Blocks = b.p.Blocks[:n]
	b.p.Blocks[n-1].End = end
}

func (b *builder) finish() (*Packed, error) {
	if limit, n := b.o.MaxPackedTokens, len(b.p.IDs); limit > 0 && n > limit {
		return nil, &Rejected{TrajectoryID: b.t.ID, Reason: ReasonPackedTokens, Call: -1,
			Detail: fmt.Sprintf("%d tokens, limit %d", n, limit)}
	}
	return b.p, nil
}
