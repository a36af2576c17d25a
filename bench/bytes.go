package main

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// byteProgress shows how far the download of one file after the other is: a bar
// on a terminal, elsewhere a line every few seconds.
type byteProgress struct {
	name  string
	total int64
	start time.Time
	last  time.Time
	from  int64 // bytes that an earlier download left
	now   int64
	begun bool // something has come
	bar   *progressbar.ProgressBar
}

// begin starts the display of the next file; size 0 is not known.
func (p *byteProgress) begin(name string, size int64) {
	p.finish()
	*p = byteProgress{name: name, total: size}
}

// set takes what hub.Downloader tells.
func (p *byteProgress) set(done, total int64) {
	if !p.begun {
		p.begun, p.start, p.last, p.from = true, time.Now(), time.Now(), done
		if term.IsTerminal(int(os.Stderr.Fd())) {
			p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(p.name),
				progressbar.OptionShowBytes(true), progressbar.OptionSetPredictTime(true), progressbar.OptionShowTotalBytes(true),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		if done > 0 {
			p.say(fmt.Sprintf("%s: going on after %s", p.name, byteSize(done)))
		}
	}
	p.now, p.total, p.from = done, total, min(p.from, done)
	if p.bar != nil {
		_ = p.bar.Set64(done) // a display that fails must not stop the work
		return
	}
	if time.Since(p.last) >= plainEvery {
		p.last = time.Now()
		note("%s: %s of %s, %s/s", p.name, byteSize(done), byteSize(total), byteSize(p.rate()))
	}
}

func (p *byteProgress) rate() int64 {
	return int64(float64(p.now-p.from) / max(time.Since(p.start).Seconds(), 1e-3))
}

// say prints a line above the display.
func (p *byteProgress) say(line string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	note("%s", line)
}

// finish ends a file's display with a line that stays.
func (p *byteProgress) finish() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	if p.begun {
		note("%s: %s in %s", p.name, byteSize(p.now), time.Since(p.start).Round(100*time.Millisecond))
	}
	p.begun, p.bar = false, nil
}

// byteSize is a number of bytes as people read it, in decimal units as the hub
// shows them; "?" if it is not known.
func byteSize(n int64) string {
	if n < 0 {
		return "?"
	}
	units := []string{"B", "kB", "MB", "GB", "TB"}
	x, i := float64(n), 0
	for x >= 999.5 && i < len(units)-1 {
		x, i = x/1000, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", x, units[i])
}
