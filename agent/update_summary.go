package agent

import (
	"sort"
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// SummaryUpdate is summary replacement: the thinking of y_k, in which the agent
// sums up what it knows, replaces everything older, the action that followed it
// included, and o_k comes after it. A response without a thinking part stays whole.
//
// The part is found in the recorded ids and cut between them, by what they decode
// to; nothing is encoded again. It begins with the id that holds the start of the
// first <think> and ends with the id that completes the last </think>, so that a
// second opening within the thinking cuts nothing. Where no <think> stands before
// that, as when the prompt ends with one, it begins with the response. An id that
// holds the edge of a tag and other text, such as "><", stays whole, with that text.
type SummaryUpdate struct{}

// Name returns "summary".
func (SummaryUpdate) Name() string { return "summary" }

// Retain names the thinking of the last output, and its observation.
func (SummaryUpdate) Retain(calls []trace.Call, d Decoder) []Segment {
	k := len(calls) - 1
	if k < 0 {
		return nil
	}
	kept := retained(k)
	if start, end := thinking(calls[k].Output, d); end > 0 {
		kept.Offset, kept.Length = start, end-start
	}
	return []Segment{kept, observed(k)}
}

// thinking returns the ids [start, end) of an output that hold its thinking part;
// end is 0 where there is none. It decodes some twenty prefixes of a long output.
func thinking(output []int32, d Decoder) (start, end int) {
	closings := strings.Count(d.Decode(output), thinkClose)
	if closings == 0 {
		return 0, 0
	}
	end = shortest(len(output), func(n int) bool {
		return strings.Count(d.Decode(output[:n]), thinkClose) >= closings
	})
	if !strings.Contains(d.Decode(output[:end]), thinkOpen) {
		return 0, end
	}
	opened := shortest(end, func(n int) bool { return strings.Contains(d.Decode(output[:n]), thinkOpen) })
	tag := shortest(opened, func(n int) bool { return strings.Contains(d.Decode(output[opened-n:opened]), thinkOpen) })
	return opened - tag, end
}

// shortest returns the least n from 1 to most for which ok holds, given that it
// holds for most and, once it does, for all that are larger.
func shortest(most int, ok func(n int) bool) int {
	return 1 + sort.Search(most-1, func(i int) bool { return ok(i + 1) })
}
