package main

import (
	"strings"
	"testing"
)

// run feeds lines to a summary and returns what it printed and its verdict.
func run(t *testing.T, lines ...string) (string, bool) {
	t.Helper()
	var out strings.Builder
	s := newSummary(&out, false)
	if err := s.read(strings.NewReader(strings.Join(lines, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	ok := s.finish()
	return out.String(), ok
}

const (
	runA    = `{"Action":"run","Package":"p","Test":"TestA"}`
	sayA    = `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: said by A\n"}`
	passA   = `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}`
	failA   = `{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0.1}`
	skipA   = `{"Action":"skip","Package":"p","Test":"TestA","Elapsed":0}`
	headA   = `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`
	okP     = `{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`
	passP   = `{"Action":"pass","Package":"p","Elapsed":0.1}`
	failP   = `{"Action":"fail","Package":"p","Elapsed":0.1}`
	buildNo = `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: syntax error\n"}`
	buildP  = `{"ImportPath":"q","Action":"build-fail"}`
)

func TestSummary(t *testing.T) {
	cases := []struct {
		name    string
		lines   []string
		ok      bool
		want    []string
		wantNot []string
	}{
		{"pass", []string{runA, sayA, passA, okP, passP}, true,
			[]string{"ok  \tp", "\n1 passed, 0 failed, 0 skipped\n"}, []string{"said by A", "skipped:"}},
		{"fail prints output", []string{runA, sayA, failA, failP}, false,
			[]string{"said by A", "\n0 passed, 1 failed, 0 skipped\n", "failed: p"}, nil},
		{"only skips is no run", []string{runA, headA, sayA, skipA, okP, passP}, false,
			[]string{"  p TestA: a_test.go:3: said by A\n", "no test ran", "\n0 passed, 0 failed, 1 skipped\n"}, []string{"=== RUN"}},
		{"a skip beside a pass", []string{runA, skipA, `{"Action":"pass","Package":"p","Test":"TestB"}`, passP}, true,
			[]string{"  p TestA: no reason given\n", "\n1 passed, 0 failed, 1 skipped\n"}, nil},
		{"skipped in one run, passed in another", []string{runA, sayA, skipA, passP, runA, passA, passP}, true,
			[]string{"\n1 passed, 0 failed, 0 skipped\n"}, []string{"skipped:"}},
		{"skipped in both runs", []string{runA, skipA, passP, runA, skipA, `{"Action":"pass","Package":"p","Test":"TestB"}`, passP}, true,
			[]string{"skipped:", "\n1 passed, 0 failed, 1 skipped\n"}, nil},
		{"nothing", nil, false, []string{"no test ran", "0 passed"}, nil},
		{"build failure", []string{runA, passA, passP, buildNo, buildP}, false,
			[]string{"q.go:1: syntax error", "failed: q"}, nil},
		{"a panic leaves its test unfinished", []string{runA, sayA, failP}, false,
			[]string{"said by A", "failed: p"}, nil},
		{"other lines pass through", []string{"== race", runA, passA, passP}, true, []string{"== race\n"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, ok := run(t, c.lines...)
			if ok != c.ok {
				t.Errorf("verdict %v, want %v", ok, c.ok)
			}
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("no %q in:\n%s", w, got)
				}
			}
			for _, w := range c.wantNot {
				if strings.Contains(got, w) {
					t.Errorf("%q should not be in:\n%s", w, got)
				}
			}
		})
	}
}
