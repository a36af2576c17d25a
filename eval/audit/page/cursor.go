package page

import "fmt"

// cursor is the token that a view asks about: its place, and the place that predicts
// it, -1 where it is no action.
type cursor struct{ place, predict int }

// start puts the cursor on the token with the largest error.
func (v *view) start(errors map[[2]int]TokenError) cursor {
	at, worst := cursor{0, -1}, -1.
	for _, a := range v.actions {
		e, ok := errors[[2]int{a.Call, a.Token}]
		if a.Spurious() || !ok {
			continue
		}
		if e.Error > worst {
			at, worst = cursor{a.Index, a.Predict}, e.Error
		}
	}
	return at
}

// what says which token stands at a place.
func (s *Segment) what(place int) string {
	i := s.Offset + place - s.Start
	switch {
	case s.Kind == KindPrefix:
		return fmt.Sprintf("task prefix, token %d", i)
	case s.Kind == KindSampled:
		return fmt.Sprintf("sampled by call %d, token %d", s.From, i)
	case s.Kind == KindCopy:
		return fmt.Sprintf("copy of call %d's output, token %d", s.From, i)
	case s.Kind == KindObservation && s.From < 0:
		return fmt.Sprintf("shown before the first call, token %d", i)
	case s.Kind == KindObservation:
		return fmt.Sprintf("observation after call %d, token %d", s.From, i)
	}
	return "not in the record"
}

// sees says how many places a token sees, itself included, and what is wrong with them.
func (s *Segment) sees(place int) string {
	text := count(size(s.Right) + size(s.Extra) + place - s.Start + 1)
	if n := size(s.Extra); n > 0 {
		text += ", " + count(n) + " too many"
	}
	if n := size(s.Missing); n > 0 {
		text += ", " + count(n) + " missing"
	}
	return text
}

// stands says at which position a token stands, and at which it should.
func (s *Segment) stands(place int) string {
	i := place - s.Start
	if s.Index >= 0 && s.Index != s.Position {
		return fmt.Sprintf("%s, was %s", count(s.Position+i), count(s.Index+i))
	}
	return count(s.Position + i)
}
