package agent

import "github.com/memopd/memopd-bench/trace"

// RefreshUpdate is retrieval refresh, c_{k+1} = y_0 ++ … ++ y_k ++ o_k: what the
// model wrote stays, all of it in order, and what was retrieved is replaced by the
// newest observation. [FullResponseUpdate] forgets the older responses too, and
// [FullUpdate] forgets no observation.
type RefreshUpdate struct{}

// Name returns "refresh".
func (RefreshUpdate) Name() string { return "refresh" }

// Retain names all outputs in order and the last observation.
func (RefreshUpdate) Retain(calls []trace.Call, _ Decoder) []Segment {
	if len(calls) == 0 {
		return nil
	}
	var segments []Segment
	for k := range calls {
		segments = append(segments, retained(k))
	}
	return append(segments, observed(len(calls)-1))
}
