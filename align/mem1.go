package align

import (
	"fmt"
	"sort"
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// MEM1 lays a trajectory out as MEM1's published training code (arXiv 2506.15841)
// shows it to the model: the flat transcript q t_0 r_0 i_0 t_1 r_1 i_1 …, where q
// is the task prefix, t_j the memory that call j writes (its think part), r_j the
// rest of its output and i_j the observation.
//
//   - t_j sees q, r_(j-1), i_(j-1) and its own earlier tokens, but not t_(j-1), the
//     memory that the sampler had in its context;
//   - r_j sees that too, t_j and its own earlier tokens;
//   - i_j sees itself alone, so that its keys and values are not those of the rollout;
//   - positions march over the transcript.
//
// It is a negative control. What the environment showed before the first call
// stands as i_(-1). An output is divided by [Options.ThinkLength]; without it all of
// it is memory, of which the next call sees nothing. What follows the last action is left out.
// Actions are those of Compile, one to one and in order. The error is a *Rejected.
func MEM1(t *trace.Trajectory, o Options) (*Packed, error) {
	if r := validate(t, o); r != nil {
		return nil, r
	}
	b := newBuilder(t, o)
	n := len(t.Prefix)
	shown := Range{n, n} // r_(j-1) and i_(j-1), which stand side by side
	shown.End = b.alone(t.Calls[0].Context[n:])
	for k := range t.Calls {
		c := &t.Calls[k]
		think, err := o.thinkLength(t, k)
		if err != nil {
			return nil, err
		}
		start := len(b.p.IDs)
		if len(c.Output) > 0 {
			b.open(k)
			b.p.Blocks[len(b.p.Blocks)-1].Sees = ranges(Range{0, n}, shown)
			b.output(k)
		}
		shown = Range{start + think, b.alone(c.Observation)}
	}
	b.cut()
	march(b.p)
	for i := range b.p.Actions {
		b.p.Actions[i].Predict = b.p.Actions[i].Index - 1 // whatever that token sees
	}
	return b.finish()
}

// thinkLength is ThinkLength of a call, held to its output.
func (o Options) thinkLength(t *trace.Trajectory, call int) (int, error) {
	n := len(t.Calls[call].Output)
	if o.ThinkLength == nil {
		return n, nil
	}
	think := o.ThinkLength(t, call)
	if think < 0 || think > n {
		return 0, &Rejected{TrajectoryID: t.ID, Reason: ReasonInconsistent, Call: call,
			Detail: fmt.Sprintf("a think part of %d tokens in an output of %d", think, n)}
	}
	return think, nil
}

// alone appends tokens that see but themselves, and returns where they end.
func (b *builder) alone(ids []int32) int {
	if len(ids) > 0 {
		b.open(-1)
		b.p.Blocks[len(b.p.Blocks)-1].Sees = []Range{}
		b.context(ids)
	}
	return len(b.p.IDs)
}

// ranges lists those of the given that hold something, the ones that touch as one.
func ranges(all ...Range) []Range {
	list := []Range{}
	for _, r := range all {
		switch n := len(list); {
		case r.End == r.Start:
		case n > 0 && list[n-1].End == r.Start:
			list[n-1].End = r.End
		default:
			list = append(list, r)
		}
	}
	return list
}

// ThinkTo is an Options.ThinkLength for outputs whose memory ends with a tag, such
// as "</think>": the fewest tokens of an output whose text, by decode, holds it; 0 where the
// tag is missing, as all of it is the response then. A token that ends the tag
// and goes on counts as memory.
func ThinkTo(tag string, decode func(ids []int32) string) func(*trace.Trajectory, int) int {
	return func(t *trace.Trajectory, call int) int {
		output := t.Calls[call].Output
		n := sort.Search(len(output)+1, func(n int) bool { return strings.Contains(decode(output[:n]), tag) })
		if n > len(output) {
			return 0
		}
		return n
	}
}
