package agent

import (
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/trace"
)

// checkResponse finds what a faulty policy would bring into the record: ids past
// the stop tag would be trained on, log-probs of another length would be shifted.
func (e *Episode) checkResponse(r *trace.Response) error {
	n := len(r.Output)
	switch {
	case n == 0:
		return fmt.Errorf("the response is empty, stop %q", r.Stop)
	case n > e.limit:
		return fmt.Errorf("the response has %d ids, %d were allowed", n, e.limit)
	case r.LogProbs != nil && len(r.LogProbs) != n:
		return fmt.Errorf("the response has %d ids and %d log-probs", n, len(r.LogProbs))
	case !(r.Seconds >= 0) || math.IsInf(r.Seconds, 0):
		return fmt.Errorf("the response took %v seconds", r.Seconds)
	}
	for i, id := range r.Output {
		if id < 0 {
			return fmt.Errorf("response id %d is %d", i, id)
		}
	}
	for i, p := range r.LogProbs {
		if math.IsNaN(float64(p)) || math.IsInf(float64(p), 0) {
			return fmt.Errorf("the log-prob of response id %d is %v", i, p)
		}
	}
	return e.checkStop(r)
}

func (e *Episode) checkStop(r *trace.Response) error {
	at := e.stopper.StopIndex(r.Output)
	switch r.Stop {
	case trace.StopTag:
		if at < 0 {
			return fmt.Errorf("the response says %q and closes no tag", r.Stop)
		}
	case trace.StopEOS, trace.StopLength, trace.StopContext, trace.StopScript:
		if at == len(r.Output) {
			return fmt.Errorf("the response says %q and closes a tag", r.Stop)
		}
	default:
		return fmt.Errorf("the response has the unknown stop reason %q", r.Stop)
	}
	if at >= 0 && at < len(r.Output) {
		return fmt.Errorf("the response goes on %d ids after a closing tag", len(r.Output)-at)
	}
	return nil
}
