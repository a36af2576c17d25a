package page

import (
	"math/rand/v2"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

// generated calls check with random trajectories of every update rule, in every layout.
func generated(t *testing.T, check func(t *testing.T, traj *trace.Trajectory, layout string, v *view)) {
	t.Helper()
	for seed := range uint64(96) {
		c := aligntest.Small()
		c.Update = aligntest.Updates[seed%4]
		c.EmptyOutputChance = []float64{0, 0.3}[seed/4%2]
		c.MaxOpening = []int{0, 5}[seed/8%2]
		c.Vocab = []int{3, 40, 5000}[seed/16%3] // few ids: much that is alike by chance
		traj := aligntest.Random(rand.New(rand.NewPCG(seed, 7)), c)
		for _, l := range align.Layouts() {
			rows, err := l.Rows(traj, align.Options{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, traj, l.Name, newView(traj, rows))
			if t.Failed() {
				t.Fatalf("seed %d, update %s, layout %s", seed, c.Update, l.Name)
			}
		}
	}
}

func in(areas []Area, q, k int) int {
	n := 0
	for _, a := range areas {
		if a.Contains(q, k) {
			n++
		}
	}
	return n
}

// TestAreasAreVisible holds the areas that are drawn to align's visibility: each
// visible pair lies in one of those that are seen, no other pair in any of them.
func TestAreasAreVisible(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory, layout string, v *view) {
		for q := range v.n {
			for k := range v.n {
				row := v.rowAt(q)
				want := 0
				if row == v.rowAt(k) && v.rows[row].Visible(q-v.base[row], k-v.base[row]) {
					want = 1
				}
				if got := in(v.right, q, k) + in(v.extra, q, k); got != want {
					t.Fatalf("pair (%d, %d) lies in %d seen areas, want %d", q, k, got, want)
				}
				if n := in(v.missing, q, k); n > 1 || n == 1 && want == 1 {
					t.Fatalf("pair (%d, %d) is seen and missing (%d)", q, k, n)
				}
			}
		}
	})
}

// TestAreasOfRightStates: where the layout gives the states of the rollout nothing
// is extra or missing, and the positions are the true ones.
func TestAreasOfRightStates(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory, layout string, v *view) {
		switch layout {
		case "aligned", "calls", "trajectory-mask", "response-mask", "positions":
			if len(v.extra) > 0 || len(v.missing) > 0 {
				t.Fatalf("extra %v, missing %v", v.extra, v.missing)
			}
		}
		for _, s := range v.segments {
			if s.Kind == KindOther {
				t.Fatalf("segment %+v is of no known kind", s)
			}
			if layout == "aligned" || layout == "calls" || layout == "visibility" {
				if s.Position != s.Index {
					t.Fatalf("segment %+v: the position is not the true one", s)
				}
			}
		}
	})
}

// TestAreasOfCorruptions: what all-seeing shows too much is what the right layout
// hides, and nothing is missing; MEM1's mask hides the memory that was seen.
func TestAreasOfCorruptions(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory, layout string, v *view) {
		if layout != "visibility" && layout != "both" {
			return
		}
		if len(v.missing) > 0 {
			t.Fatalf("missing %v", v.missing)
		}
		rows, err := align.Compile(traj, align.Options{PrefixOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		for q := range v.n {
			for k := 0; k <= q; k++ {
				if (in(v.right, q, k) == 1) != rows.Visible(q, k) {
					t.Fatalf("pair (%d, %d): %d in right areas, the rollout's visibility is %v", q, k, in(v.right, q, k), rows.Visible(q, k))
				}
			}
		}
	})
}
