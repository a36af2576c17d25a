package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/trace"
)

// ErrRCE says that packed log-probs do not equal those of independent calls.
var ErrRCE = errors.New("rollout context equivalence is violated")

// RCE compares log-probs of the same actions in two forward passes (the paper's
// rollout context equivalence).
type RCE struct {
	Actions int
	Mean    float64 // of the absolute differences
	P99     float64
	Max     float64
	Flips   int // actions whose most probable token differs
}

// Check returns an error that wraps ErrRCE when the 99th percentile is above the
// tolerance, or no number.
func (r RCE) Check(tolerance float64) error {
	if r.P99 <= tolerance {
		return nil
	}
	return fmt.Errorf("%w: over %d actions the 99th percentile of the absolute log-prob difference is %.3g (tolerance %.3g), the largest %.3g, %d top-1 flips",
		ErrRCE, r.Actions, r.P99, tolerance, r.Max, r.Flips)
}

// MeasureRCE forwards the packed sequences of trajectories in one batch, and
// every call of them alone, and compares the log-probs of the sampled tokens.
// Spurious actions have no call to be compared with. packed[i] is the compiled form of trajectories[i].
func MeasureRCE(c Compute, d *model.Decoder, trajectories []*trace.Trajectory, packed []*align.Packed, o align.Options, temperature float64) (RCE, error) {
	if len(packed) == 0 {
		return RCE{}, nil
	}
	all, best := c.score(d, packed, temperature)
	var together []float32
	var top []int64
	for _, p := range packed {
		n := len(p.Actions)
		together, top = append(together, ofSampled(p, all[:n])...), append(top, ofSampled(p, best[:n])...)
		all, best = all[n:], best[n:]
	}
	var alone []float32
	var aloneTop []int64
	for i, t := range trajectories {
		calls, err := align.Calls(t, o)
		if err != nil {
			return RCE{}, err
		}
		if a, b := actionIDs(calls), ofSampled(packed[i], actionIDs(packed[i:i+1])); !slices.Equal(a, b) {
			return RCE{}, fmt.Errorf("%w: trajectory %q has %d actions packed and %d call by call, or other ids", ErrRCE, t.ID, len(b), len(a))
		}
		for _, call := range calls {
			logProbs, best := c.score(d, []*align.Packed{call}, temperature)
			alone, aloneTop = append(alone, logProbs...), append(aloneTop, best...)
		}
	}
	return compareLogProbs(together, alone, top, aloneTop), nil
}

// compareLogProbs sums up the differences of two lists of log-probs; the lists of top
// ids may be nil.
func compareLogProbs(a, b []float32, topA, topB []int64) RCE {
	r := RCE{Actions: len(a)}
	if len(a) == 0 {
		return r
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(differences[i]) {
			differences[i] = math.Inf(1)
		}
		r.Mean += differences[i] / float64(len(a))
	}
	for i := range topA {
		if topA[i] != topB[i] {
			r.Flips++
		}
	}
	slices.Sort(differences)
	r.P99 = differences[int(math.Ceil(0.99*float64(len(a))))-1]
	r.Max = differences[len(a)-1]
	return r
}
