package agent

import (
	"fmt"

	"github.com/memopd/memopd-bench/trace"
)

// WindowUpdate is the sliding window, c_{k+1} = y_{k-W+1} ++ o_{k-W+1} ++ … ++ y_k
// ++ o_k: the last W turns stay whole, a response and its observation each. With
// one turn it is [FullResponseUpdate]; until W turns are there, [FullUpdate].
type WindowUpdate struct{ Turns int }

// Name returns "window:" and the number of turns.
func (u WindowUpdate) Name() string { return fmt.Sprintf("window:%d", u.Turns) }

// Retain names the outputs and observations of the last turns in order.
func (u WindowUpdate) Retain(calls []trace.Call, _ Decoder) []Segment {
	return lastTurns(calls, u.Turns)
}

// lastTurns names the last n turns, or as many as there are.
func lastTurns(calls []trace.Call, n int) []Segment {
	var segments []Segment
	for k := max(0, len(calls)-n); k < len(calls); k++ {
		segments = append(segments, retained(k), observed(k))
	}
	return segments
}
