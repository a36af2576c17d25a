package audit

import (
	"math"
	"strings"
	"testing"
)

func TestFigures(t *testing.T) {
	tokens := []Token{
		{Call: 0, Error: 0.3, DLogit: 2, Flip: true}, {Call: 1, Error: 0.1, DLogit: math.NaN()}, {Call: 1, Error: 0.2, DLogit: 5, Clip: true}, {Call: 2, Row: -1, Error: 9},
	}
	p := figures(tokens, -1, func(Token) bool { return true })
	if p.Tokens != 3 || p.P50 != 0.2 || p.P99 != 0.3 || p.Max != 0.3 || p.Flips != 1 || p.FalseClips != 1 || p.MaxDLogit != 5 {
		t.Errorf("%+v", p)
	}
	if p := figures(tokens, 2, func(t Token) bool { return t.Call == 2 }); p.Tokens != 0 || !math.IsNaN(p.P99) {
		t.Errorf("of none: %+v", p)
	}
	for _, c := range []struct {
		top, was     int64
		gap, trueGap float64
		want         bool
	}{{1, 1, 9, 9, false}, {1, 2, 1e-5, 1e-5, false}, {1, 2, 1e-5, 1, true}, {1, 2, 1, 1e-5, true}, {1, 2, math.Inf(1), 0, true}} {
		if got := flipped(c.top, c.was, c.gap, c.trueGap, 1e-4); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if !clipped(0, math.NaN(), .2) || clipped(math.Log(1.19), 0, .2) || !clipped(math.Log(1.21), 0, .2) || !clipped(math.Log(0.79), 0, .2) {
		t.Error("clips are off")
	}
}

// TestJudge breaks one condition at a time, at its limit and beyond.
func TestJudge(t *testing.T) {
	good := LayoutReport{Tokens: 200, P99: 1e-4, Max: 5}
	for _, c := range []struct {
		spoil func(*LayoutReport)
		want  string // "" passes
	}{
		{func(*LayoutReport) {}, ""},
		{func(l *LayoutReport) { l.P99 = 1.01e-4 }, "p99 0.000101 above 0.0001"},
		{func(l *LayoutReport) { l.P99 = math.Inf(1) }, "p99 +Inf above 0.0001"},
		{func(l *LayoutReport) { l.Flips = 1 }, "1 top-1 flips"},
		{func(l *LayoutReport) { l.FalseClips = 1 }, "1 false clips"},
		{func(l *LayoutReport) { l.Spurious = 1 }, "1 actions that were not sampled"},
		{func(l *LayoutReport) { l.Missing = 1 }, "1 sampled tokens that are no actions"},
		{func(l *LayoutReport) { l.Tokens, l.P99 = 0, math.NaN() }, "nothing was compared"},
	} {
		l := good
		c.spoil(&l)
		l.judge(1e-4)
		if got := strings.Join(l.Reasons, ", "); got != c.want || l.Pass != (c.want == "") {
			t.Errorf("pass %v, %q, want %q", l.Pass, got, c.want)
		}
	}
}
