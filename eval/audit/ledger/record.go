package ledger

import (
	"errors"
	"math"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// maxLogProb leaves room for rounding above log 1, as the ledger does.
const maxLogProb = 1e-4

// record sorts what Validate finds into the checks that it belongs to.
func (s *subject) record() {
	for i := range s.t.Calls {
		c := &s.t.Calls[i]
		s.saw(CheckLengths, 1, len(c.Output))
		s.saw(CheckSpans, 1, len(c.Context))
		s.saw(CheckPrefix, 1, len(c.Context))
		s.saw(CheckRecord, 1, len(c.Context)+len(c.Output))
		if c.LogProbs != nil && len(c.LogProbs) != len(c.Output) {
			f := Finding{Call: i, Token: min(len(c.LogProbs), len(c.Output))}
			f.Problem = count(len(c.LogProbs), "log-prob") + " for " + count(len(c.Output), "output id")
			s.fail(CheckLengths, f)
		}
	}
	joined, ok := s.t.Validate().(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, err := range joined.Unwrap() {
		var e *trace.FieldError
		if !errors.As(err, &e) {
			continue
		}
		check := CheckRecord
		switch e.Field {
		case "log_probs":
			continue // by value, below
		case "spans":
			check = CheckSpans
		case "context":
			check = CheckPrefix
		}
		s.fail(check, Finding{Call: e.Call, Token: -1, Problem: e.Field + ": " + e.Problem})
	}
}

// manyZeros is how many log-probs of exactly 0 in a row are no longer taken for real.
const manyZeros = 16

// logProbs checks each value. One that is exactly 0 can be real; an output of
// nothing else is a placeholder.
func (s *subject) logProbs() {
	for i := range s.t.Calls {
		c := &s.t.Calls[i]
		if len(c.Output) == 0 {
			continue
		}
		s.saw(CheckLogProbs, 1, len(c.LogProbs))
		if c.LogProbs == nil {
			s.warn(CheckLogProbs, Finding{Call: i, Token: -1, Problem: "none"})
			continue
		}
		for j, p := range c.LogProbs {
			switch x := float64(p); {
			case math.IsNaN(x):
				s.fail(CheckLogProbs, Finding{Call: i, Token: j, Problem: "is NaN"})
			case math.IsInf(x, 0):
				s.fail(CheckLogProbs, Finding{Call: i, Token: j, Problem: "is infinite"})
			case x > maxLogProb:
				s.fail(CheckLogProbs, Finding{Call: i, Token: j, Problem: "is above 0: a probability of more than 1"})
			}
		}
		zero := !slices.ContainsFunc(c.LogProbs, func(p float32) bool { return p != 0 })
		if zero && len(c.LogProbs) >= manyZeros && !s.t.Sampler.Greedy {
			s.warn(CheckLogProbs, Finding{Call: i, Token: -1, Problem: "all are exactly 0: placeholders, not what was sampled"})
		}
	}
}
