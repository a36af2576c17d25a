package align

import "github.com/memopd/memopd-bench/trace"

// TrajectoryMask is the aligned state under a wrong mask: every token after the
// prefix is taken for an action but those that are copies of what stands before,
// so that observations are trained on beside outputs. Where an observation is shown again
// it is a copy, as a retained output is. Only the prefix is stored once. Those
// that nothing sampled are spurious and in no teacher mask; the others are the actions
// of Compile, one to one and in order. The error is a *Rejected.
func TrajectoryMask(t *trace.Trajectory, o Options) (*Packed, error) {
	return masked(t, o, false)
}

// ResponseMask is TrajectoryMask with the context copies too: every token after
// the prefix.
func ResponseMask(t *trace.Trajectory, o Options) (*Packed, error) {
	return masked(t, o, true)
}

func masked(t *trace.Trajectory, o Options, copies bool) (*Packed, error) {
	p, err := compileBlocks(t, o)
	if err != nil {
		return nil, err
	}
	sampled := p.Actions
	p.Actions = nil
	shown := map[shownToken]bool{}
	for _, b := range p.Blocks {
		for _, s := range t.Calls[b.Call].Spans {
			for i := max(s.Start, p.PrefixLength); i < s.End; i++ {
				if first := firstShown(shown, s, i); first || copies {
					p.spurious(b, b.Start+i-p.PrefixLength)
				}
			}
		}
		n := len(t.Calls[b.Call].Output)
		p.Actions = append(p.Actions, sampled[:n]...)
		sampled = sampled[n:]
	}
	return p, nil
}

// shownToken is a token of the observation after a call, -1: before the first one.
type shownToken struct{ call, offset int }

// firstShown tells whether place i of a context, in span s, is no copy, and notes it.
func firstShown(shown map[shownToken]bool, s trace.Span, i int) bool {
	if s.Origin != trace.OriginObservation {
		return false
	}
	token := shownToken{s.FromCall, s.Offset + i - s.Start}
	again := shown[token]
	shown[token] = true
	return !again
}

// spurious makes an action of the token at place index, in block b.
func (p *Packed) spurious(b Block, index int) {
	predict := index - 1
	if index == b.Start {
		predict = p.PrefixLength - 1
	}
	p.Actions = append(p.Actions, Action{Call: b.Call, Token: -1, ID: p.IDs[index], Index: index, Predict: predict})
}
