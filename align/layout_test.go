package align_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

// thirds is a division of outputs for tests: some tokens of memory, some others.
func thirds(t *trace.Trajectory, call int) int { return len(t.Calls[call].Output) * (1 + call%3) / 3 }

func rowsOf(t *testing.T, layout string, traj *trace.Trajectory, o align.Options) []*align.Packed {
	t.Helper()
	l, err := align.LayoutNamed(layout)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := l.Rows(traj, o)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestLayoutsAgainstReference holds every layout of one row to what it is to be:
// the tokens, their positions, and what sees what.
func TestLayoutsAgainstReference(t *testing.T) {
	checked := map[string]bool{}
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		for _, think := range []aligntest.Think{nil, thirds} {
			for _, l := range align.Layouts() {
				want, ok := aligntest.ReferenceOf(l.Name, traj, think)
				if !ok {
					continue
				}
				checked[l.Name] = true
				rows, err := l.Rows(traj, align.Options{PrefixOnly: true, ThinkLength: think})
				if err != nil || len(rows) != 1 {
					t.Fatalf("%s: %d rows, %v", l.Name, len(rows), err)
				}
				checkReference(t, l.Name, rows[0], want)
			}
		}
	})
	if len(checked) != len(align.Layouts())-1 { // all but calls, which has several rows
		t.Errorf("checked %v", checked)
	}
}

func checkReference(t *testing.T, layout string, p *align.Packed, want aligntest.Reference) {
	t.Helper()
	if len(p.IDs) != len(want.Tokens) || len(p.Positions) != len(want.Tokens) {
		t.Fatalf("%s: %d ids, %d positions, want %d", layout, len(p.IDs), len(p.Positions), len(want.Tokens))
	}
	for q, token := range want.Tokens {
		if p.IDs[q] != token.ID || int(p.Positions[q]) != token.Position {
			t.Errorf("%s: place %d holds %d at position %d, want %d at %d", layout, q, p.IDs[q], p.Positions[q], token.ID, token.Position)
		}
		for k := -1; k <= len(want.Tokens); k++ {
			sees := k >= 0 && k < len(want.Tokens) && want.Sees[q][k]
			if p.Visible(q, k) != sees {
				t.Fatalf("%s: visible(%d, %d) = %v (%+v, blocks %+v)", layout, q, k, !sees, token, p.Blocks)
			}
		}
	}
}

// TestLayoutsHaveTheSameActions holds the actions of all layouts, those that
// nothing sampled left out, to Compile's.
func TestLayoutsHaveTheSameActions(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		want := compiled(t, traj).Actions
		for _, l := range align.Layouts() {
			i := 0
			rows, err := l.Rows(traj, align.Options{ThinkLength: thirds})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range rows {
				for _, a := range p.Actions {
					if p.IDs[a.Index] != a.ID || a.Predict < 0 || a.Predict >= a.Index {
						t.Fatalf("%s: action %+v of token %d", l.Name, a, p.IDs[a.Index])
					}
					if a.Spurious() {
						continue
					}
					if w := want[i]; a.Call != w.Call || a.Token != w.Token || a.ID != w.ID || a.Teacher != w.Teacher {
						t.Fatalf("%s: action %d is %+v, want %+v", l.Name, i, a, w)
					}
					i++
				}
			}
			if i != len(want) {
				t.Errorf("%s: %d actions, want %d", l.Name, i, len(want))
			}
		}
	})
}

// TestMEM1OfNineTokens is MEM1's mask by hand: memory t, response r, observation i
// of three calls after a question of one token.
func TestMEM1OfNineTokens(t *testing.T) {
	const q, t0, r0, i0, t1, r1, i1, t2, r2 = 100, 101, 102, 103, 104, 105, 106, 107, 108
	call := func(k int, context, output []int32, observation ...int32) trace.Call {
		c := trace.Call{Index: k, Context: context, Spans: []trace.Span{span(trace.OriginPrefix, -1, 0, 1)}, Output: output, Observation: observation}
		if k > 0 {
			c.Spans = append(c.Spans, span(trace.OriginRetained, k-1, 1, 3), span(trace.OriginObservation, k-1, 3, 4))
		}
		return c
	}
	traj := &trace.Trajectory{ID: "nine", Prefix: []int32{q}, Calls: []trace.Call{
		call(0, []int32{q}, []int32{t0, r0}, i0),
		call(1, []int32{q, t0, r0, i0}, []int32{t1, r1}, i1),
		call(2, []int32{q, t1, r1, i1}, []int32{t2, r2}),
	}}
	p := rowsOf(t, "mem1", traj, align.Options{ThinkLength: func(*trace.Trajectory, int) int { return 1 }})[0]
	rows := []string{
		"q         ",
		"q t        ",
		"q t r       ",
		"      i      ",  // the observation sees itself alone
		"q   r i t     ", // and the memory of the call before is hidden
		"q   r i t r    ",
		"            i   ",
		"q         r i t  ",
		"q         r i t r ",
	}
	if !slices.Equal(p.IDs, []int32{q, t0, r0, i0, t1, r1, i1, t2, r2}) || !slices.Equal(p.Positions, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Fatalf("ids %v at %v", p.IDs, p.Positions)
	}
	for query, row := range rows {
		for key := range rows {
			want := 2*key < len(row) && row[2*key] != ' '
			if p.Visible(query, key) != want {
				t.Errorf("place %d sees %d: %v", query, key, !want)
			}
		}
	}
	for _, a := range p.Actions {
		if a.Predict != a.Index-1 {
			t.Errorf("%+v: predicted by %d, want the token before it", a, a.Predict)
		}
	}
	// Without a division all of an output is memory, and hidden.
	whole := rowsOf(t, "mem1", traj, align.Options{})[0]
	if whole.Visible(4, 2) || !whole.Visible(4, 3) || !whole.Visible(5, 4) || whole.Visible(7, 5) {
		t.Errorf("undivided: blocks %+v", whole.Blocks)
	}
	for _, n := range []int{-1, 3} {
		_, err := align.MEM1(traj, align.Options{ThinkLength: func(*trace.Trajectory, int) int { return n }})
		var r *align.Rejected
		if !errors.As(err, &r) || r.Reason != align.ReasonInconsistent {
			t.Errorf("a think part of %d: %v", n, err)
		}
	}
}

func TestThinkTo(t *testing.T) {
	decode := func(ids []int32) string {
		text := ""
		for _, id := range ids {
			text += []string{"<think>", "a", "</thi", "nk>", "nk> <search>", "b"}[id]
		}
		return text
	}
	for _, c := range []struct {
		output []int32
		want   int
	}{
		{[]int32{0, 1, 2, 3, 5, 5}, 4},
		{[]int32{0, 1, 2, 4, 5}, 4}, // the token that ends the tag and goes on is memory
		{[]int32{0, 2, 3, 2, 3, 5}, 3},
		{[]int32{0, 1, 5}, 0},
		{nil, 0},
	} {
		traj := &trace.Trajectory{Calls: []trace.Call{{Output: c.output}}}
		if got := align.ThinkTo("</think>", decode)(traj, 0); got != c.want {
			t.Errorf("%v: %d tokens of memory, want %d", c.output, got, c.want)
		}
	}
}

// TestMasksByHand holds the wrong masks: observations, then copies too.
func TestMasksByHand(t *testing.T) {
	for layout, want := range map[string][]align.Action{
		"trajectory-mask": {{Call: 1, Token: -1, ID: 20, Index: 6, Predict: 5}},
		"response-mask": {{Call: 1, Token: -1, ID: 10, Index: 4, Predict: 1}, {Call: 1, Token: -1, ID: 11, Index: 5, Predict: 4},
			{Call: 1, Token: -1, ID: 20, Index: 6, Predict: 5}},
	} {
		p := rowsOf(t, layout, example(), align.Options{})[0]
		var spurious []align.Action
		for _, a := range p.Actions {
			if a.Spurious() {
				spurious = append(spurious, a)
			}
		}
		if !slices.Equal(spurious, want) {
			t.Errorf("%s: %+v, want %+v", layout, spurious, want)
		}
		s := p.Stats()
		if s.Actions != 5 || s.SpuriousTokens != len(want) || s.TeacherActions != 5 || s.Calls != 2 || s.SeparateTokens != 12 {
			t.Errorf("%s: %+v", layout, s)
		}
	}
}

// TestOnlySampledTokensAreActions holds the action mask of every layout but the two
// with a wrong one to the outputs: no prefix token, no observation, and no copy of an earlier
// output, though a model wrote that too.
func TestOnlySampledTokensAreActions(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		for _, layout := range []string{"aligned", "visibility", "positions", "both", "persistent", "mem1"} {
			want, _ := aligntest.ReferenceOf(layout, traj, thirds)
			p := rowsOf(t, layout, traj, align.Options{PrefixOnly: true, ThinkLength: thirds})[0]
			for i, is := range p.ActionMask() {
				if kind := want.Tokens[i].Kind; is != (kind == aligntest.KindThink || kind == aligntest.KindResponse) {
					t.Errorf("%s: token %+v in the mask: %v", layout, want.Tokens[i], is)
				}
			}
		}
	})
}

// TestMaskDomains holds the places of the wrong masks to the kinds of tokens.
func TestMaskDomains(t *testing.T) {
	generated(t, func(t *testing.T, traj *trace.Trajectory) {
		want, _ := aligntest.ReferenceOf("aligned", traj, nil)
		for layout, domain := range map[string][]aligntest.Kind{
			"trajectory-mask": {aligntest.KindThink, aligntest.KindObservation},
			"response-mask":   {aligntest.KindThink, aligntest.KindObservation, aligntest.KindCopy},
		} {
			p := rowsOf(t, layout, traj, align.Options{})[0]
			mask := p.ActionMask()
			for i, token := range want.Tokens {
				if mask[i] != slices.Contains(domain, token.Kind) {
					t.Errorf("%s: token %+v in the mask: %v", layout, token, mask[i])
				}
			}
			if !slices.IsSortedFunc(p.Actions, func(a, b align.Action) int { return a.Index - b.Index }) {
				t.Errorf("%s: the actions are not in order", layout)
			}
		}
	})
}

func TestUnknownLayout(t *testing.T) {
	_, err := align.LayoutNamed("aligne")
	if err == nil || !strings.Contains(err.Error(), "aligned, calls, persistent, visibility, positions, both, mem1, trajectory-mask, response-mask") {
		t.Errorf("error %v", err)
	}
}
