package agent

import (
	"math"
	"testing"
)

// The values come from Python's hashlib and struct, after CallSeed's description.
func TestCallSeed(t *testing.T) {
	for _, tc := range []struct {
		run          uint64
		task         string
		sample, call int
		want         uint64
	}{
		{0, "", 0, 0, 1747960674990008487},
		{7, "w17/q2-0", 0, 0, 995612494195960115},
		{7, "w17/q2-0", 0, 1, 5092909662161863314},
		{7, "w17/q2-0", 1, 0, 1353138920651315705},
		{math.MaxUint64, "é", 3, 47, 1357009862570811408},
	} {
		if got := CallSeed(tc.run, tc.task, tc.sample, tc.call); got != tc.want {
			t.Errorf("CallSeed(%d, %q, %d, %d) = %d, want %d", tc.run, tc.task, tc.sample, tc.call, got, tc.want)
		}
	}
}
