package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopWait is how long a part that is asked to stop has before it is killed. A
// training run ends its step and writes a checkpoint.
const stopWait = 2 * time.Minute

// runChild runs a bench command line in a process of its own that writes to log and
// dies with this one. It holds the open files too, and with them their locks.
func runChild(ctx context.Context, args []string, log *os.File, held ...*os.File) error {
	// The kernel tells the child when the thread that began it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self, err := ownProgram()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, held
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWait
	cmd.SysProcAttr = childAttributes()
	return cmd.Run()
}

// killedFromOutside tells a child that a signal ended from one that failed.
func killedFromOutside(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// runPart does a part whose lock and gate are held, until its record is written. A
// child that was killed is begun again, once.
func (r *reproduction) runPart(ctx context.Context, p part, held ...*os.File) (err error) {
	for again := true; ; again = false {
		tries, err := r.store.begin(p.name, r.commit)
		if err != nil {
			return err
		}
		if err = r.try(ctx, p, held...); err == nil {
			return r.store.finish(p, tries)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !again || !killedFromOutside(err) {
			return fmt.Errorf("%s: %w; the end of %s:\n%s", p.name, err, r.store.path(p.name, "log"), lastLines(r.store.path(p.name, "log"), 12))
		}
		r.say("%s was killed; begun again", p.name)
	}
}

// try runs a part's command once.
func (r *reproduction) try(ctx context.Context, p part, held ...*os.File) error {
	log, err := os.OpenFile(r.store.path(p.name, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if _, err := fmt.Fprintf(log, "$ bench %s\n", strings.Join(p.args, " ")); err != nil {
		return err
	}
	return runChild(ctx, p.args, log, held...)
}

// lastLines is the end of a text file, indented.
func lastLines(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}
