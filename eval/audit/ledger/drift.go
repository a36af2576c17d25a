package ledger

import (
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// site is where a later context holds an earlier output otherwise than it was
// sampled: Found stands in the place of Recorded.
type site struct {
	from     int // the call whose output it is
	token    int // of that output
	at       int // in the later context
	recorded []int32
	found    []int32
	resumes  bool // the output goes on behind it
}

// drift looks for outputs that later contexts hold with other ids, which needs no
// tokenizer: runs of the output stand there with ids of unknown origin between.
func (s *subject) drift() {
	imported := slices.ContainsFunc(s.t.Lacks, func(name string) bool { return name == "context origins" })
	for k := range s.t.Calls {
		c := &s.t.Calls[k]
		unknown := 0
		for _, span := range c.Spans {
			if span.Origin == trace.OriginUnknown {
				unknown += span.End - span.Start
			}
		}
		s.saw(CheckOrigins, 1, len(c.Context))
		if unknown > 0 {
			s.warn(CheckOrigins, Finding{Call: k, Token: firstUnknown(c), Problem: fmt.Sprintf("%s of its context of unknown origin, the first at this place", count(unknown, "id"))})
		}
		if k == 0 || !s.sound(k) {
			continue
		}
		s.saw(CheckDrift, 1, len(c.Context))
		s.saw(CheckParts, 1, len(c.Context))
		for _, at := range sites(s.t, k) {
			s.report(k, at, imported)
		}
	}
}

// sound says whether the spans of call k can be read at all.
func (s *subject) sound(k int) bool {
	for _, span := range s.t.Calls[k].Spans {
		if span.Start < 0 || span.End < span.Start || span.End > len(s.t.Calls[k].Context) || span.Offset < 0 {
			return false
		}
		if span.Origin == trace.OriginRetained && (span.FromCall < 0 || span.FromCall >= k || span.Offset+span.End-span.Start > len(s.t.Calls[span.FromCall].Output)) {
			return false
		}
	}
	return true
}

func firstUnknown(c *trace.Call) int {
	for _, span := range c.Spans {
		if span.Origin == trace.OriginUnknown {
			return span.Start
		}
	}
	return -1
}

// localIDs is how many ids a place may have on either side to be called a
// retokenisation where no tokenizer can tell.
const localIDs = 16

func (s *subject) report(k int, at site, imported bool) {
	f := Finding{Call: k, Token: at.token, Recorded: some(at.recorded), Found: some(at.found)}
	where := fmt.Sprintf("at %d of the context stands call %d's output", at.at, at.from)
	switch {
	case len(at.found) == 0: // a part left out; what agents of ours leave out, they meant to
		if imported {
			f.Problem = fmt.Sprintf("%s without %s", where, count(len(at.recorded), "id"))
			f.Found = nil
			s.warn(CheckParts, f)
		}
		return
	case len(at.recorded) == 0:
		f.Problem = fmt.Sprintf("%s with %s inserted that nobody sampled", where, count(len(at.found), "id"))
	case s.sameText(at):
		f.Problem = where + " retokenised"
	case s.o.Tokenizer == nil && at.resumes && len(at.recorded) <= localIDs && len(at.found) <= localIDs:
		f.Problem = where + " retokenised (the text may differ: no tokenizer)"
	default:
		f.Problem = fmt.Sprintf("%s rewritten, %s for %s", where, count(len(at.found), "other id"), count(len(at.recorded), "id"))
	}
	s.fail(CheckDrift, f)
}

// sameText says whether both sides spell the same; where the output does not go on
// behind the place, whether one begins with the other.
func (s *subject) sameText(at site) bool {
	if s.o.Tokenizer == nil {
		return false
	}
	a, b := s.o.Tokenizer.Decode(at.recorded), s.o.Tokenizer.Decode(at.found)
	if at.resumes {
		return a == b
	}
	n := min(len(a), len(b))
	return n > 0 && a[:n] == b[:n]
}

// sites lists where the context of call k departs from the outputs that it holds.
func sites(t *trace.Trajectory, k int) []site {
	c := &t.Calls[k]
	var all []site
	for i, s := range c.Spans {
		if s.Origin != trace.OriginRetained {
			continue
		}
		output := t.Calls[s.FromCall].Output
		gap, before := foreign(c, i, -1)
		if p := before; p != nil && p.Origin == trace.OriginRetained && p.FromCall == s.FromCall && offsetEnd(*p) <= s.Offset {
			if end := offsetEnd(*p); end < s.Offset || len(gap) > 0 {
				all = append(all, site{s.FromCall, end, p.End, output[end:s.Offset], gap, true})
			}
		} else if starts := begins(t, k, s.FromCall, s.Start-len(gap)); s.Offset > 0 || starts && len(gap) > 0 {
			if !starts {
				gap = nil // some other context, and then a part of the output
			}
			all = append(all, site{s.FromCall, 0, s.Start - len(gap), output[:s.Offset], gap, true})
		}
		gap, after := foreign(c, i, 1)
		if goesOn := after != nil && after.Origin == trace.OriginRetained && after.FromCall == s.FromCall && after.Offset >= offsetEnd(s); goesOn {
			continue // seen from there
		}
		if end := offsetEnd(s); end < len(output) {
			all = append(all, site{s.FromCall, end, s.End, output[end:], gap, false})
		}
	}
	if at, ok := unrecognised(t, k); ok {
		all = append(all, at)
	}
	for i := range all {
		all[i].trim()
	}
	return all
}

// foreign returns the ids of unknown origin beside span i, in the direction of step,
// and the span behind them.
func foreign(c *trace.Call, i, step int) (ids []int32, next *trace.Span) {
	i += step
	if i >= 0 && i < len(c.Spans) && c.Spans[i].Origin == trace.OriginUnknown {
		ids = c.Context[c.Spans[i].Start:c.Spans[i].End]
		i += step
	}
	if i >= 0 && i < len(c.Spans) {
		next = &c.Spans[i]
	}
	return ids, next
}

func offsetEnd(s trace.Span) int { return s.Offset + s.End - s.Start }

// begins says whether call j's output was to begin at this place of call k's
// context: all that j saw stands before it.
func begins(t *trace.Trajectory, k, j, at int) bool {
	seen := t.Calls[j].Context
	return at == len(seen) && slices.Equal(t.Calls[k].Context[:at], seen)
}

// unrecognised is the site of the last output where the context goes on behind what
// that call saw, and nothing there is known to be of the output, yet half of the
// smaller side's ids are the same.
func unrecognised(t *trace.Trajectory, k int) (site, bool) {
	c, last := &t.Calls[k], &t.Calls[k-1]
	n := len(last.Context)
	if len(c.Context) <= n || !begins(t, k, k-1, n) {
		return site{}, false
	}
	for _, s := range c.Spans {
		switch {
		case s.Origin == trace.OriginRetained && s.FromCall == k-1:
			return site{}, false
		case s.Start < n && s.End > n, s.Start == n && s.Origin != trace.OriginUnknown:
			return site{}, false
		}
	}
	found := c.Context[n:min(len(c.Context), n+len(last.Output)+localIDs)]
	left := map[int32]int{}
	for _, id := range found {
		left[id]++
	}
	common := 0
	for _, id := range last.Output {
		if left[id] > 0 {
			left[id]--
			common++
		}
	}
	return site{from: k - 1, at: n, recorded: last.Output, found: found}, common > 0 && 2*common >= min(len(found), len(last.Output))
}

// trim takes off what both sides begin with, and end with where the output goes on.
func (s *site) trim() {
	for len(s.recorded) > 0 && len(s.found) > 0 && s.recorded[0] == s.found[0] {
		s.recorded, s.found = s.recorded[1:], s.found[1:]
		s.token++
		s.at++
	}
	for s.resumes && len(s.recorded) > 0 && len(s.found) > 0 && s.recorded[len(s.recorded)-1] == s.found[len(s.found)-1] {
		s.recorded, s.found = s.recorded[:len(s.recorded)-1], s.found[:len(s.found)-1]
	}
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
