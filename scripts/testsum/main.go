// Command testsum reads the events of "go test -json" on standard input and
// prints what a person wants of them: a line for each package, the output of
// the tests that failed, and at the end each skipped test with its reason and
// one line with the counts. It exits with 1 when a test or a build failed, and
// when no test ran at all.
//
// A line that is no event is printed as it is, so that several runs with
// headings between them can be read as one.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

// event is one line of go test -json (see "go doc test2json"). Builds report
// with ImportPath in place of Package.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

func main() {
	verbose := flag.Bool("v", false, "print all output, as go test -v does")
	flag.Parse()
	s := newSummary(os.Stdout, *verbose)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	if !s.finish() {
		os.Exit(1)
	}
}

// read takes every line of r. Lines may be of any length.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading events: %w", err)
		}
	}
}

// line takes an event, or prints what is none.
func (s *summary) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		_, _ = s.out.Write(line)
		return
	}
	s.take(e)
}
