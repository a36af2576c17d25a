package audit

import (
	"fmt"

	"github.com/memopd/memopd-bench/align"
)

// place names a sampled token.
type place struct{ call, token int }

// truth is a trajectory call by call: its sampled tokens in order.
type truth struct {
	rows    []*align.Packed // one a call
	states  []*align.States // of the rows
	actions []align.Action
	row     []int // of each action
	index   map[place]int
}

func newTruth(rows []*align.Packed) *truth {
	t := &truth{rows: rows, index: map[place]int{}}
	for i, r := range rows {
		t.states = append(t.states, align.StatesOf(r))
		for _, a := range r.Actions {
			t.index[place{a.Call, a.Token}] = len(t.actions)
			t.actions = append(t.actions, a)
			t.row = append(t.row, i)
		}
	}
	return t
}

// domain is a layout of one trajectory with its actions told apart: those that are
// sampled tokens, each once, and the rest.
type domain struct {
	rows     []*align.Packed // with the sampled tokens as their only actions
	row      []int           // of each of those actions
	actions  []align.Action
	index    []int // of each among the truth's actions
	spurious int
	missing  int
	first    string // what the first spurious or missing action is
}

// newDomain matches a layout's actions with the sampled tokens.
func newDomain(t *truth, rows []*align.Packed) *domain {
	d := &domain{}
	seen := make([]bool, len(t.actions))
	for r, row := range rows {
		kept := *row
		kept.Actions = nil
		for _, a := range row.Actions {
			i, ok := t.index[place{a.Call, a.Token}]
			if a.Spurious() || !ok || seen[i] {
				if d.spurious++; d.first == "" {
					d.first = fmt.Sprintf("row %d, place %d: id %d is an action that was not sampled there", r, a.Index, a.ID)
				}
				continue
			}
			seen[i] = true
			kept.Actions = append(kept.Actions, a)
			d.row, d.actions, d.index = append(d.row, r), append(d.actions, a), append(d.index, i)
		}
		d.rows = append(d.rows, &kept)
	}
	for i, ok := range seen {
		if !ok {
			if d.missing++; d.first == "" {
				d.first = fmt.Sprintf("call %d, token %d: id %d was sampled and is no action", t.actions[i].Call, t.actions[i].Token, t.actions[i].ID)
			}
		}
	}
	return d
}

// only is rows with those actions alone that keep says, and the numbers of those
// actions among all of the rows, in order; rows without one are left out.
func only(rows []*align.Packed, keep func(align.Action) bool) (kept []*align.Packed, numbers []int) {
	n := 0
	for _, row := range rows {
		short := *row
		short.Actions = nil
		for _, a := range row.Actions {
			if keep(a) {
				short.Actions = append(short.Actions, a)
				numbers = append(numbers, n)
			}
			n++
		}
		if len(short.Actions) > 0 {
			kept = append(kept, &short)
		}
	}
	return kept, numbers
}
