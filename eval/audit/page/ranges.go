package page

import "github.com/memopd/memopd-bench/align"

// Lists of ranges are in order and apart.

// clip is what a list has within [start, end).
func clip(list []align.Range, start, end int) []align.Range {
	var kept []align.Range
	for _, r := range list {
		if r.Start, r.End = max(r.Start, start), min(r.End, end); r.Start < r.End {
			kept = append(kept, r)
		}
	}
	return kept
}

// both is what two lists share.
func both(a, b []align.Range) []align.Range {
	var shared []align.Range
	for _, r := range a {
		shared = append(shared, clip(b, r.Start, r.End)...)
	}
	return shared
}

// without is what a has and b has not.
func without(a, b []align.Range) []align.Range {
	var rest []align.Range
	for _, r := range a {
		for _, cut := range clip(b, r.Start, r.End) {
			if r.Start < cut.Start {
				rest = append(rest, align.Range{Start: r.Start, End: cut.Start})
			}
			r.Start = cut.End
		}
		if r.Start < r.End {
			rest = append(rest, r)
		}
	}
	return rest
}

// add puts a place into a list that is being built in order of its places.
func add(list []align.Range, place int) []align.Range {
	if n := len(list); n > 0 && list[n-1].End == place {
		list[n-1].End++
		return list
	}
	return append(list, align.Range{Start: place, End: place + 1})
}

// size counts the places of a list.
func size(list []align.Range) int {
	n := 0
	for _, r := range list {
		n += r.End - r.Start
	}
	return n
}
