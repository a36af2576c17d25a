package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far a long piece of work is: a bar with rate and time left
// on a terminal, a plain line every few seconds elsewhere.
type progress struct {
	bar   *progressbar.ProgressBar
	out   io.Writer
	what  string
	total int64
	start time.Time
	last  time.Time
	now   int64
}

// plainEvery is the time between two lines where there is no terminal.
const plainEvery = 10 * time.Second

// newProgress starts a progress display on standard error; total -1 is unknown.
func newProgress(what string, total int64) *progress {
	p := &progress{out: os.Stderr, what: what, total: total, start: time.Now(), last: time.Now()}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
	}
	return p
}

// set says how much is done.
func (p *progress) set(done int64) {
	p.now = done
	if p.bar != nil {
		_ = p.bar.Set64(done) // a display that fails must not stop the work
		return
	}
	if time.Since(p.last) >= plainEvery {
		p.last = time.Now()
		p.line()
	}
}

func (p *progress) line() {
	elapsed := time.Since(p.start).Seconds()
	rate := float64(p.now) / max(elapsed, 1e-9)
	if p.total > 0 && rate > 0 {
		left := time.Duration(float64(p.total-p.now) / rate * float64(time.Second))
		fmt.Fprintf(p.out, "%s: %d of %d, %.1f/s, %s left\n", p.what, p.now, p.total, rate, left.Round(time.Second))
		return
	}
	fmt.Fprintf(p.out, "%s: %d, %.1f/s\n", p.what, p.now, rate)
}

// say prints a line above the display.
func (p *progress) say(line string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(p.out, line)
	p.last = time.Now()
}

// done ends the display with one line that stays.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	elapsed := time.Since(p.start)
	fmt.Fprintf(p.out, "%s: %d in %s\n", p.what, p.now, elapsed.Round(100*time.Millisecond))
}
