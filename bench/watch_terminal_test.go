package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/memopd/memopd-bench/train"
)

// pseudoTerminal is a terminal without a screen: what a program writes to its slave
// is kept.
type pseudoTerminal struct {
	t             *testing.T
	master, slave *os.File

	mu      sync.Mutex
	written strings.Builder
}

func newPseudoTerminal(t *testing.T) *pseudoTerminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pseudoTerminal{t: t, master: master, slave: slave}
	t.Cleanup(func() { _, _ = slave.Close(), master.Close() })
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := master.Read(buffer)
			p.mu.Lock()
			p.written.Write(buffer[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pseudoTerminal) resize(columns, lines int) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(lines)}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pseudoTerminal) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

// await waits for a whole picture that suits, and returns its lines.
func (p *pseudoTerminal) await(what string, suits func(lines []string) bool) []string {
	p.t.Helper()
	for range 600 { // a minute, for a busy machine
		pictures := strings.Split(p.all(), goHome)
		for _, picture := range pictures[1:] {
			picture, _, whole := strings.Cut(picture, clearBelow)
			if lines := strings.Split(strings.NewReplacer(clearLine, "", "\r", "").Replace(picture), "\n"); whole && suits(lines) {
				return lines
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	all := p.all()
	p.t.Fatalf("no picture of %s at the end of %q", what, all[max(0, len(all)-2000):])
	return nil
}

// In a terminal the picture follows the run and the terminal's size, and Ctrl-C ends
// it cleanly: the terminal's own screen is back, the last picture on it.
func TestWatchInATerminal(t *testing.T) {
	out := t.TempDir()
	dir := madeUpRun(t, out, "mini/ppo/seed-0", 2, 0.5, &trainRun{Variant: "ppo"})
	unlock, err := lockFolder(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	p := newPseudoTerminal(t)
	p.resize(100, 30)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "watch", "--out", out, "--every", "100ms")
	cmd.Env = append(os.Environ(), asBench+"=1", "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.slave, p.slave, p.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()

	p.await("the run", func(lines []string) bool { return strings.HasPrefix(lines[0], "mini/ppo/seed-0  running  step 2/10") })
	if !strings.HasPrefix(p.all(), enterScreen) {
		t.Errorf("begins with %.40q", p.all())
	}
	appendText(t, filepath.Join(dir, train.MetricsFile), trainLine(3, 0.3))
	p.await("step 3", func(lines []string) bool { return strings.Contains(lines[0], "step 3/10  3 s/step  21s left") })
	p.resize(40, 4)
	p.await("four short lines", func(lines []string) bool {
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 40 {
				return false
			}
		}
		return len(lines) == 4 && strings.HasSuffix(lines[0], "…")
	})
	if _, err := io.WriteString(p.master, "\x03"); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	time.Sleep(200 * time.Millisecond) // for the reader
	_, last, left := strings.Cut(p.all(), leaveScreen)
	if !left || !strings.HasPrefix(last, "mini/ppo/seed-0  running  step 3/10") || !strings.Contains(last, "eval/q2_f1") {
		t.Errorf("after Ctrl-C: %q", last)
	}
}
