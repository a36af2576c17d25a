package agent

import (
	"fmt"

	"github.com/memopd/memopd-bench/trace"
)

// SuffixUpdate is suffix retention: the last N ids of y_k, or all where there are
// no more, and the whole of o_k. The cut is in ids and may fall anywhere, also
// within a tag. The observation is never cut here; its length is the protocol's.
type SuffixUpdate struct{ IDs int }

// Name returns "suffix:" and the number of ids.
func (u SuffixUpdate) Name() string { return fmt.Sprintf("suffix:%d", u.IDs) }

// Retain names the end of the last output, and its observation.
func (u SuffixUpdate) Retain(calls []trace.Call, _ Decoder) []Segment {
	k := len(calls) - 1
	if k < 0 {
		return nil
	}
	kept := retained(k)
	kept.Offset = max(0, len(calls[k].Output)-max(0, u.IDs))
	return []Segment{kept, observed(k)}
}
