package results

import (
	"fmt"
	"maps"
	"slices"
)

// endAnswered is the end of an episode with an answer, as ledgers have it.
const endAnswered = "answered"

// tally counts how a group's episodes ended.
type tally struct {
	episodes, calls int
	ends            map[string]int
	f1              float64 // sum over the answered
}

func tallyOf(g *group) tally {
	t := tally{ends: map[string]int{}}
	for _, task := range g.tasks { // in order: sums of floats depend on it
		for _, r := range g.rows[task] {
			if r.End == "" {
				continue
			}
			t.episodes, t.calls = t.episodes+1, t.calls+r.Calls
			t.ends[r.End]++
			if r.End == endAnswered {
				t.f1 += r.F1
			}
		}
	}
	return t
}

// ends is a table of how the episodes of some groups ended, over all seeds; nil where
// no row says it. An episode without an answer scores 0, so that F1 is the answered
// share times the F1 of those.
func (p paper) ends(title string, keep func(*group) bool) *Table {
	var groups []*group
	var tallies []tally
	other := map[string]bool{}
	for _, g := range p.groups {
		if !keep(g) {
			continue
		}
		if t := tallyOf(g); t.episodes > 0 {
			groups, tallies = append(groups, g), append(tallies, t)
			for end := range t.ends {
				other[end] = true
			}
		}
	}
	if groups == nil {
		return nil
	}
	delete(other, endAnswered)
	ends := append([]string{endAnswered}, slices.Sorted(maps.Keys(other))...)
	t := &Table{Name: "ends", Title: title + ", how episodes end"}
	t.Columns = slices.Concat(words("horizon", "variant"), figures("episodes", "calls"), counted(ends...), figures("F1 of answered"))
	for i, g := range groups {
		n := tallies[i]
		mean := float64(n.calls) / float64(n.episodes)
		row := []Cell{Text(g.horizon), Text(g.variant), Text(n.episodes), {fmt.Sprintf("%.1f", mean), stats(mean)}}
		for _, end := range ends {
			count := n.ends[end]
			row = append(row, share(&count, n.episodes))
		}
		f1 := dash
		if answered := n.ends[endAnswered]; answered > 0 {
			mean := n.f1 / float64(answered)
			f1 = Cell{fmt.Sprintf("%.3f", mean), stats(mean)}
		}
		t.Rows = append(t.Rows, append(row, f1))
	}
	t.Notes = []string{"Over all seeds. An episode without an answer scores 0; calls: mean of an episode; F1 (squad) of those that answered."}
	return t
}
