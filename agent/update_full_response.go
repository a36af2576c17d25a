package agent

import "github.com/memopd/memopd-bench/trace"

// FullResponseUpdate is full response retention, which we take for MEM1's rule,
// c_{k+1} = y_k ++ o_k: the last response stays whole, with its observation;
// everything older is gone.
type FullResponseUpdate struct{}

// Name returns "full-response".
func (FullResponseUpdate) Name() string { return "full-response" }

// Retain names the last call's output and observation.
func (FullResponseUpdate) Retain(calls []trace.Call, _ Decoder) []Segment {
	return lastTurns(calls, 1)
}

// MEM1Update is the same rule under MEM1's name, the default.
type MEM1Update struct{ FullResponseUpdate }

// Name returns "mem1".
func (MEM1Update) Name() string { return "mem1" }
