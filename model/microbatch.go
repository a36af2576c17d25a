package model

import (
	"cmp"
	"slices"

	"github.com/memopd/memopd-bench/align"
)

// Microbatches parts a batch into groups of at most tokensPerMicrobatch tokens,
// given as indices into batch, so that sequences of like block length come together and
// attention pads little. A sequence that is longer stands alone; none is cut.
// The same batch gives the same groups.
func Microbatches(batch []*align.Packed, tokensPerMicrobatch int) [][]int {
	order := make([]int, len(batch))
	longest := make([]int, len(batch))
	for i, p := range batch {
		order[i] = i
		for _, b := range p.Blocks {
			longest[i] = max(longest[i], b.End-b.Start)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(longest[a], longest[b]), cmp.Compare(batch[a].PrefixLength, batch[b].PrefixLength))
	})
	var groups [][]int
	tokens := 0
	for _, i := range order {
		if len(groups) == 0 || tokens+len(batch[i].IDs) > tokensPerMicrobatch {
			groups, tokens = append(groups, nil), 0
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], i)
		tokens += len(batch[i].IDs)
	}
	return groups
}
