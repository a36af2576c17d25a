package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// progressEvery is the time between two lines of progress where there is no terminal.
const progressEvery = time.Minute

// progress shows how far the whole is: every second on a terminal, else now and then.
func (r *reproduction) progress(parts []part, now bool) {
	terminal := term.IsTerminal(int(os.Stderr.Fd()))
	every := progressEvery
	if terminal {
		every = time.Second
	}
	if !now && time.Since(r.shown) < every {
		return
	}
	r.shown = time.Now()
	line := r.progressLine(parts, time.Now())
	if terminal {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", line)
		return
	}
	note("%s", line)
}

// say prints a line above the line of progress.
func (r *reproduction) say(format string, args ...any) {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	note(format, args...)
	r.shown = time.Time{}
}

func (r *reproduction) progressLine(parts []part, now time.Time) string {
	done, failed := 0, 0
	var running []string
	for _, p := range parts {
		switch s := r.states[p.name]; {
		case s.record != nil:
			done++
		case s.ended():
			failed++
		case !s.began.IsZero():
			running = append(running, p.name)
		case s.elsewhere:
			running = append(running, p.name+" (another process)")
		}
	}
	line := fmt.Sprintf("%d of %d parts done", done, len(parts))
	if failed > 0 {
		line += fmt.Sprintf(", %d failed or left out", failed)
	}
	if done+failed == len(parts) {
		return line
	}
	line += fmt.Sprintf(", about %s left", roundTime(r.left(parts, now)))
	if len(running) > 0 {
		line += ": " + strings.Join(running, ", ")
	}
	return line
}

func roundTime(d time.Duration) time.Duration {
	if d > 10*time.Minute {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}

// plan prints the parts, how they stand, and the time that the rest may take.
func (r *reproduction) plan(w io.Writer) error {
	if err := r.read(); err != nil {
		return err
	}
	expected := r.expected()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "part\tstate\tseconds\tafter")
	done, rest := 0, 0.0
	for _, p := range r.parts {
		state, about := r.standing(p), "~"
		if state == "done" {
			done, about = done+1, ""
		} else {
			rest += expected[p.name]
		}
		fmt.Fprintf(t, "%s\t%s\t%s%.0f\t%s\n", p.name, state, about, expected[p.name], strings.Join(p.after, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d parts done; about %s left, %d at a time (%s of work)\n", done, len(r.parts),
		roundTime(r.left(r.parts, time.Now())), r.o.Jobs, roundTime(time.Duration(rest*float64(time.Second))))
	return err
}

// standing is a word for how a part stands.
func (r *reproduction) standing(p part) string {
	if r.states[p.name].record != nil {
		return "done"
	}
	if !r.store.begun(p.name) {
		return "to do"
	}
	lock, err := r.store.lock(p.name)
	if err == nil && lock == nil {
		return "running"
	}
	if lock != nil {
		_ = lock.Close() // nothing was written
	}
	return "stopped"
}

// list prints a line a part, its columns separated by tabs: stage, alone or -, name,
// what it hangs on or -, command. What a stage hangs on stands in earlier ones.
func (r *reproduction) list(w io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	base := append([]string{self, "reproduce"}, r.o.given()...)
	fmt.Fprintln(w, "# stage\talone\tpart\tafter\tcommand")
	stages := r.stages()
	for i, stage := range stages {
		for _, p := range stage {
			alone := "-"
			if p.alone {
				alone = "alone"
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", i+1, alone, p.name, cmp.Or(strings.Join(p.after, ","), "-"), shellQuote(append(base, "--only="+p.name)))
		}
	}
	_, err = fmt.Fprintf(w, "%d\t-\tcollect\t-\t%s\n", len(stages)+1, shellQuote(append(base, "--collect")))
	return err
}

// stages groups the parts so that each hangs on parts of earlier groups alone; those
// that run alone are the last one.
func (r *reproduction) stages() (stages [][]part) {
	stage := map[string]int{}
	var alone []part
	for range r.parts { // as deep as it may be
		for _, p := range r.parts {
			for _, before := range p.after {
				stage[p.name] = max(stage[p.name], stage[before]+1)
			}
		}
	}
	for _, p := range r.parts {
		if p.alone {
			alone = append(alone, p)
			continue
		}
		for len(stages) <= stage[p.name] {
			stages = append(stages, nil)
		}
		stages[stage[p.name]] = append(stages[stage[p.name]], p)
	}
	return append(stages, alone)
}

// given are the flags that differ from the preset's defaults, but for those that say
// what this call does.
func (o reproduceOptions) given() []string {
	defaults, err := reproduceDefaults(o.Preset)
	if err != nil {
		return nil
	}
	before := fields(&defaults)
	out := []string{"--preset=" + o.Preset}
	for i, f := range fields(&o) {
		if !slices.Contains([]string{"preset", "plan", "list", "only", "collect", "jobs"}, f.name) && f.String() != before[i].String() {
			out = append(out, "--"+f.name+"="+f.String())
		}
	}
	return out
}

// shellQuote is a command line as a POSIX shell reads it.
func shellQuote(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if a == "" || strings.ContainsFunc(a, func(c rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%", c)
		}) {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
