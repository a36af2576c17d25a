package agent

import "github.com/memopd/memopd-bench/trace"

// FullUpdate is the full-context baseline, c_{k+1} = c_k ++ y_k ++ o_k: every
// output and observation stays.
type FullUpdate struct{}

// Name returns "full".
func (FullUpdate) Name() string { return "full" }

// Retain names all outputs and observations in order.
func (FullUpdate) Retain(calls []trace.Call, _ Decoder) []Segment {
	return lastTurns(calls, len(calls))
}
