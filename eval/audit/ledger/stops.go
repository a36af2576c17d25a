package ledger

import (
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// stops checks that the ids which end outputs stand once and last. They are the
// ones given; else the ids that ended outputs by their stop reason; else, where
// reasons are not known, special ids that an output ends with, and ids that end
// several.
func (s *subject) stops() {
	ids, known := s.stopIDs()
	if len(ids) == 0 {
		return
	}
	for i := range s.t.Calls {
		c := &s.t.Calls[i]
		if len(c.Output) == 0 {
			continue
		}
		s.saw(CheckStops, 1, len(c.Output))
		last := len(c.Output) - 1
		if c.Stop == trace.StopEOS && !slices.Contains(ids, c.Output[last]) {
			s.fail(CheckStops, Finding{Call: i, Token: last, Problem: fmt.Sprintf("stopped at an end of sequence, and ends with %d, which is none of %v", c.Output[last], ids)})
		}
		at := slices.IndexFunc(c.Output[:last], func(id int32) bool { return slices.Contains(ids, id) })
		if at < 0 {
			continue
		}
		f := Finding{Call: i, Token: at, Problem: fmt.Sprintf("the stop token %d stands before the end of an output of %d: what follows was not the policy's to say", c.Output[at], last+1)}
		if known {
			s.fail(CheckStops, f)
		} else {
			s.warn(CheckStops, f)
		}
	}
}

// stopIDs are the ids that end outputs, and whether that is known or guessed.
func (s *subject) stopIDs() (ids []int32, known bool) {
	if len(s.o.StopIDs) > 0 {
		return s.o.StopIDs, true
	}
	ends := map[int32]int{}
	for i := range s.t.Calls {
		c := &s.t.Calls[i]
		if len(c.Output) == 0 {
			continue
		}
		last := c.Output[len(c.Output)-1]
		switch c.Stop {
		case trace.StopEOS:
			known = true
			ids = append(ids, last)
		case trace.StopUnknown:
			ends[last]++
		}
	}
	if known {
		return ids, true
	}
	for id, n := range ends {
		if n > 1 || s.o.Tokenizer != nil && s.o.Tokenizer.Special(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, false
}
