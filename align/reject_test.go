package align_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

func TestRejections(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*trace.Trajectory)
		reason align.Reason
		call   int
		detail string
	}{
		{"empty prefix", func(t *trace.Trajectory) { t.Prefix = nil }, align.ReasonInconsistent, -1, "prefix is empty"},
		{"negative id", func(t *trace.Trajectory) { t.Calls[1].Output[2] = -1 }, align.ReasonInconsistent, 1, "output token 2"},
		{"wrong index", func(t *trace.Trajectory) { t.Calls[1].Index = 2 }, align.ReasonInconsistent, 1, "index says 2"},
		{"other prefix", func(t *trace.Trajectory) { t.Calls[1].Context[1] = 3 }, align.ReasonInconsistent, 1, "does not start"},
		{"short context", func(t *trace.Trajectory) { t.Calls[0].Context = []int32{1} }, align.ReasonInconsistent, 0, "does not start"},
		{"log-probs", func(t *trace.Trajectory) { t.Calls[0].LogProbs = make([]float32, 1) }, align.ReasonInconsistent, 0, "1 log-probs for 2"},
		{"no spans", func(t *trace.Trajectory) { t.Calls[0].Spans = nil }, align.ReasonInconsistent, 0, "cover 0 of 2"},
		{"gap", func(t *trace.Trajectory) { t.Calls[1].Spans[1].Start = 3 }, align.ReasonInconsistent, 1, "span 1 is [3, 4), after 2"},
		{"overlong span", func(t *trace.Trajectory) { t.Calls[1].Spans[2].End = 6 }, align.ReasonInconsistent, 1, "span 2 is [4, 6)"},
		{"backward span", func(t *trace.Trajectory) { t.Calls[1].Spans[1].End = 1 }, align.ReasonInconsistent, 1, "span 1 is [2, 1)"},
		{"prefix too far", func(t *trace.Trajectory) { t.Calls[1].Spans[1] = span(trace.OriginPrefix, -1, 2, 4) },
			align.ReasonInconsistent, 1, "of a prefix of 2"},
		{"prefix as observation", func(t *trace.Trajectory) { t.Calls[0].Spans[0].Origin = trace.OriginObservation },
			align.ReasonInconsistent, 0, "inside the task prefix"},
		{"from a later call", func(t *trace.Trajectory) { t.Calls[1].Spans[1].FromCall = 1 }, align.ReasonInconsistent, 1, "retained from call 1"},
		{"observation from itself", func(t *trace.Trajectory) { t.Calls[1].Spans[2].FromCall = 1 }, align.ReasonInconsistent, 1, "from call 1"},
		{"unknown origin", func(t *trace.Trajectory) { t.Calls[1].Spans[1].Origin = "x" }, align.ReasonInconsistent, 1, "unknown origin"},
		{"retokenised copy", func(t *trace.Trajectory) { t.Calls[1].Context[3] = 99 }, align.ReasonInconsistent, 1, "at 0 in call 0's output"},
		{"wrong offset", func(t *trace.Trajectory) { t.Calls[1].Spans[1].Offset = 1 }, align.ReasonInconsistent, 1, "at 1 in call 0's output"},
		{"negative offset", func(t *trace.Trajectory) { t.Calls[1].Spans[2].Offset = -1 }, align.ReasonInconsistent, 1, "at -1 in call 0's observation"},
		{"other observation", func(t *trace.Trajectory) { t.Calls[0].Observation[0] = 99 }, align.ReasonInconsistent, 1, "at 0 in call 0's observation"},
		{"no actions", func(t *trace.Trajectory) { t.Calls = t.Calls[:1]; t.Calls[0].Output = nil }, align.ReasonNoActions, -1, "none of its 1"},
		{"no calls", func(t *trace.Trajectory) { t.Calls = nil }, align.ReasonNoActions, -1, "none of its 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			traj := example()
			c.spoil(traj)
			for layout, err := range layouts(traj, align.Options{}) {
				var r *align.Rejected
				if !errors.As(err, &r) {
					t.Fatalf("%s: error %v, want a rejection", layout, err)
				}
				if r.Reason != c.reason || r.Call != c.call || !strings.Contains(r.Detail, c.detail) {
					t.Errorf("%s: %v, want (%s) call %d %q", layout, r, c.reason, c.call, c.detail)
				}
			}
		})
	}
	for layout, err := range layouts(nil, align.Options{}) {
		if err == nil {
			t.Errorf("%s takes nil", layout)
		}
	}
}

func layouts(t *trace.Trajectory, o align.Options) map[string]error {
	errs := map[string]error{}
	for _, l := range align.Layouts() {
		_, errs[l.Name] = l.Rows(t, o)
	}
	return errs
}

// TestLimits stands at each limit and one below it.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		o       align.Options
		layout  string
		refused align.Reason // "" when it is taken
	}{
		{align.Options{MaxPackedTokens: 8}, "aligned", ""}, // tokens that are stored, the shared ones once
		{align.Options{MaxPackedTokens: 7}, "aligned", align.ReasonPackedTokens},
		{align.Options{MaxPackedTokens: 10, PrefixOnly: true}, "aligned", ""},
		{align.Options{MaxPackedTokens: 9, PrefixOnly: true}, "aligned", align.ReasonPackedTokens},
		{align.Options{MaxPackedTokens: 9}, "both", align.ReasonPackedTokens},
		{align.Options{MaxPackedTokens: 8}, "persistent", ""},
		{align.Options{MaxPackedTokens: 7}, "persistent", align.ReasonPackedTokens},
		{align.Options{MaxPackedTokens: 8}, "calls", ""},
		{align.Options{MaxPackedTokens: 7}, "calls", align.ReasonPackedTokens},
		{align.Options{MaxCallTokens: 8}, "aligned", ""},
		{align.Options{MaxCallTokens: 7}, "aligned", align.ReasonCallTokens},
		{align.Options{MaxCallTokens: 7}, "calls", align.ReasonCallTokens},
		{align.Options{MaxCallTokens: 7}, "persistent", align.ReasonCallTokens},
	} {
		err := layouts(example(), c.o)[c.layout]
		var r *align.Rejected
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s with %+v: %v", c.layout, c.o, err)
		case c.refused != "" && (!errors.As(err, &r) || r.Reason != c.refused):
			t.Errorf("%s with %+v: %v, want %s", c.layout, c.o, err, c.refused)
		}
	}
}

// A call that sampled nothing conditions nothing: it has no block, and its
// length does not matter.
func TestCallWithoutOutput(t *testing.T) {
	traj := example()
	traj.Calls[1].Output = nil
	p, err := align.Compile(traj, align.Options{MaxCallTokens: 4})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Blocks) != 1 || len(p.IDs) != 4 || len(p.Actions) != 2 {
		t.Errorf("compiled %+v, want one block", p)
	}
}

func TestErrorText(t *testing.T) {
	_, err := align.Compile(example(), align.Options{MaxCallTokens: 7})
	want := `align: trajectory "ex", call 1 rejected (call_tokens): 8 tokens, limit 7`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// FuzzCompile spoils generated trajectories: whatever comes of it is a rejection
// or a layout that reproduces every state.
func FuzzCompile(f *testing.F) {
	f.Add(uint64(1), []byte{})
	f.Add(uint64(2), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add(uint64(3), []byte{9, 1, 255, 8, 0, 250})
	f.Fuzz(func(t *testing.T, seed uint64, edits []byte) {
		c := aligntest.Small()
		c.Update = aligntest.UpdateOf(seed)
		traj := aligntest.Random(rand.New(rand.NewPCG(seed, 2)), c)
		for ; len(edits) >= 3; edits = edits[3:] {
			spoil(traj, edits[0], int(edits[1]), int(int8(edits[2])))
		}
		p, err := align.Compile(traj, align.Options{})
		for layout, other := range layouts(traj, align.Options{}) {
			if (err == nil) != (other == nil) {
				t.Errorf("%s: %v, but compile: %v", layout, other, err)
			}
		}
		if err != nil {
			return
		}
		checkStates(t, p, traj)
		for q := range p.IDs {
			p.Visible(q, q)
		}
	})
}

// spoil changes one thing of a trajectory: which thing, where, to what.
func spoil(t *trace.Trajectory, what byte, where, value int) {
	if len(t.Calls) == 0 {
		return
	}
	c := &t.Calls[where%len(t.Calls)]
	var s *trace.Span
	if len(c.Spans) > 0 {
		s = &c.Spans[where%len(c.Spans)]
	}
	cut := func(ids []int32) []int32 { return ids[:min(len(ids), max(value, 0))] }
	switch what % 13 {
	case 0:
		t.Prefix = cut(t.Prefix)
	case 1:
		c.Context = cut(c.Context)
	case 2:
		c.Output = cut(c.Output)
	case 3:
		c.Observation = cut(c.Observation)
	case 4:
		c.Index = value
	case 5:
		c.Spans = c.Spans[:min(len(c.Spans), max(value, 0))]
	case 6:
		if s != nil {
			s.Start = value
		}
	case 7:
		if s != nil {
			s.End = value
		}
	case 8:
		if s != nil {
			s.FromCall = value
		}
	case 9:
		if s != nil {
			s.Origin = []trace.Origin{trace.OriginPrefix, trace.OriginRetained, trace.OriginObservation, ""}[value&3]
		}
	case 10:
		t.Calls = t.Calls[:len(t.Calls)-1]
	case 12:
		if s != nil {
			s.Offset = value
		}
	case 11:
		if len(c.Context) > 0 {
			c.Context[where%len(c.Context)] = int32(value)
		}
	}
}
