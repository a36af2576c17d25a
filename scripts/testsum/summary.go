package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// testName names a test or subtest of a package.
type testName struct{ pkg, test string }

// summary gathers the events of one or several runs.
type summary struct {
	out     io.Writer
	verbose bool

	output map[testName]*strings.Builder // of tests that have not ended
	ended  map[testName]bool             // tests that passed or failed in some run
	skips  []skip                        // in order, each test once
	passed int
	failed int
	broken []string // packages that failed to build, or failed outside of a test
}

// skip is a test that did not run, and why.
type skip struct {
	testName
	reason string
}

func newSummary(out io.Writer, verbose bool) *summary {
	return &summary{out: out, verbose: verbose, output: map[testName]*strings.Builder{}, ended: map[testName]bool{}}
}

// take brings one event into the summary.
func (s *summary) take(e event) {
	name := testName{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		s.print(e.Output)
	case "build-fail":
		s.breaks(e.ImportPath)
	case "output":
		s.takeOutput(name, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
			return
		}
		s.endTest(name, e.Action)
	}
}

// takeOutput prints a package's own lines and keeps a test's for its end.
func (s *summary) takeOutput(name testName, text string) {
	if s.verbose {
		s.print(text)
	} else if name.test == "" && text != "PASS\n" {
		s.print(text)
	}
	if name.test == "" {
		return
	}
	if s.output[name] == nil {
		s.output[name] = &strings.Builder{}
	}
	s.output[name].WriteString(text)
}

// endTest counts a test and prints its output if it failed.
func (s *summary) endTest(name testName, action string) {
	text := ""
	if b := s.output[name]; b != nil {
		text = b.String()
		delete(s.output, name)
	}
	switch action {
	case "pass":
		s.passed++
		s.ended[name] = true
	case "fail":
		s.failed++
		s.ended[name] = true
		if !s.verbose {
			s.print(text)
		}
	case "skip":
		if !slices.ContainsFunc(s.skips, func(other skip) bool { return other.testName == name }) {
			s.skips = append(s.skips, skip{name, reason(text)})
		}
	}
}

// endPackage notes a package that failed, and prints what the tests that it
// left unfinished had said: a panic and a time-out end a package that way.
func (s *summary) endPackage(e event) {
	for name, b := range s.output {
		if name.pkg != e.Package {
			continue
		}
		delete(s.output, name)
		if e.Action == "fail" {
			s.breaks(e.Package)
			if !s.verbose {
				s.print(b.String())
			}
		}
	}
	if e.Action == "fail" {
		s.breaks(e.Package)
	}
}

func (s *summary) breaks(pkg string) {
	if !slices.Contains(s.broken, pkg) {
		s.broken = append(s.broken, pkg)
	}
}

func (s *summary) print(text string) { _, _ = io.WriteString(s.out, text) }

// reason is what a skipped test printed, without go test's own lines.
func reason(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		return "no reason given"
	}
	return strings.Join(kept, "; ")
}

// finish prints the end of the summary and tells whether all is well.
func (s *summary) finish() bool {
	// What one run leaves out, the race detector's for one, another may have run.
	skips := slices.DeleteFunc(slices.Clone(s.skips), func(k skip) bool { return s.ended[k.testName] })
	if len(skips) > 0 {
		fmt.Fprintln(s.out, "\nskipped:")
		for _, k := range skips {
			fmt.Fprintf(s.out, "  %s %s: %s\n", k.pkg, k.test, k.reason)
		}
	}
	if len(s.broken) > 0 {
		fmt.Fprintln(s.out, "\nfailed:", strings.Join(s.broken, " "))
	}
	ran := s.passed + s.failed
	if ran == 0 {
		fmt.Fprintln(s.out, "no test ran")
	}
	fmt.Fprintf(s.out, "\n%d passed, %d failed, %d skipped\n", s.passed, s.failed, len(skips))
	return ran > 0 && s.failed == 0 && len(s.broken) == 0
}
