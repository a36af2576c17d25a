package audit

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

// Every generated update passes; the flattened history, the control, does only where
// everything is kept.
func TestUpdatesPass(t *testing.T) {
	d := newModel(t, 3)
	for _, u := range aligntest.Updates {
		c := aligntest.Small()
		c.Vocab, c.MaxCalls, c.Update = vocabulary, 6, u
		rng := rand.New(rand.NewPCG(4, 4))
		var all []*trace.Trajectory
		for range 12 {
			all = append(all, aligntest.Random(rng, c))
		}
		r, err := Update(context.Background(), string(u), Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: all})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Verdict(); err != nil {
			t.Errorf("%s: %v", u, err)
		}
		control := r.RCE.Named(updateControl)
		if keeps := u == aligntest.UpdateFull; control.Pass != keeps {
			t.Errorf("%s: the flattened history passes %v", u, control.Pass)
		}
		if !math.IsNaN(r.F1) || r.Stats.Actions != r.RCE.Tokens {
			t.Errorf("%s: F1 %g without scores; %d actions, %d tokens", u, r.F1, r.Stats.Actions, r.RCE.Tokens)
		}
	}
}

func TestUpdateCountsByHand(t *testing.T) {
	call := func(context int) trace.Call { return trace.Call{Context: make([]int32, context)} }
	r := UpdateReport{Update: "window:2", Ends: map[trace.End]int{}}
	r.count([]*trace.Trajectory{
		{Calls: []trace.Call{call(2), call(6), call(10)}, End: trace.EndAnswered, Scores: map[string]float64{"em": 1, "f1": .5}},
		{Calls: []trace.Call{call(4), call(8)}, End: trace.EndTurnLimit, Scores: map[string]float64{"em": 0, "f1": 0}},
	})
	if r.Calls != 5 || r.ContextMean != 6 || r.ContextMax != 10 || !reflect.DeepEqual(r.ContextByCall, []float64{3, 7, 10}) {
		t.Errorf("%+v", r)
	}
	if r.EM != .5 || r.F1 != .25 || r.Ends[trace.EndTurnLimit] != 1 || r.PaperName() != "sliding window" {
		t.Errorf("%+v, %s", r, r.PaperName())
	}
}

func TestUpdateOfOtherTrajectories(t *testing.T) {
	_, err := Update(context.Background(), "summary", Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: newModel(t, 3), Trajectories: sampled(1)})
	if err == nil || !strings.Contains(err.Error(), `by the context update "mem1", not "summary"`) {
		t.Error(err)
	}
}
