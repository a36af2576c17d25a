package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/results"
)

// tinyReproduction is a whole reproduction as small as one can be: eleven parts.
const tinyReproduction = "reproduce --preset smoke --seeds 0-1 --variants memopd --horizon q2 --tasks 2 --timed-tasks 1 --audits speed --jobs 2" +
	" --steps 3 --train prompts-per-step=2,checkpoint-every=1"

// start begins a command without waiting for it.
func (w workplace) start(line string) (*exec.Cmd, *bytes.Buffer) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(self, strings.Fields(line)...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), asBench+"=1")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd, &log
}

// parts reads the records of finished parts by their file names.
func (w workplace) parts() map[string]string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "runs/smoke/reproduce/parts/*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	records := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		records[filepath.Base(file)] = string(data)
	}
	return records
}

// outcome is what a reproduction came to, without what a clock says.
func (w workplace) outcome() *results.Evidence {
	w.t.Helper()
	e, err := results.LoadEvidence(filepath.Join(w.dir, "results/smoke"))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range e.Rows {
		e.Rows[i].InferenceSeconds = nil
	}
	for _, c := range e.Curves {
		for name := range c.Metrics {
			if strings.HasPrefix(name, "timing_s/") || strings.HasPrefix(name, "perf/") {
				delete(c.Metrics, name)
			}
		}
	}
	return e
}

// children lists the processes that a process has begun, on Linux.
func children(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// Two processes in one folder share the work, each part begun once; and one that is
// killed at random moments, or whose children are, comes to the same records.
func TestReproductionIsKilledAndShared(t *testing.T) {
	shared, killed := newWorkplace(t), newWorkplace(t)
	shared.mustBench("data miniwiki")
	line := tinyReproduction + " --data " + filepath.Join(shared.dir, "data/miniwiki")

	a, alog := shared.start(line)
	b, blog := shared.start(line)
	if err := a.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, alog)
	}
	if err := b.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, blog)
	}
	want := shared.outcome()
	if len(want.Manifest.Parts) != 11 || len(want.Rows) != 4*2 || len(want.Curves) < 2*3 || len(want.Audits.Speed) != 1 {
		t.Errorf("%d parts, %d rows, %d lines of curves, %d audits of speed", len(want.Manifest.Parts), len(want.Rows), len(want.Curves), len(want.Audits.Speed))
	}
	for _, p := range want.Manifest.Parts {
		tries, err := results.ReadJSONL[try](partStore{filepath.Join(shared.dir, "runs/smoke/reproduce/parts")}.path(p.Name, "tries.jsonl"))
		if err != nil || len(tries) != 1 {
			t.Errorf("%s was begun %d times, %v", p.Name, len(tries), err)
		}
	}

	killed.killLoop(line)
	killed.mustBench(line)
	got := killed.outcome()
	if !reflect.DeepEqual(got.Rows, want.Rows) {
		t.Errorf("rows\n%+v\nafter kills\n%+v", want.Rows, got.Rows)
	}
	if !reflect.DeepEqual(got.Curves, want.Curves) {
		t.Errorf("curves differ after kills")
	}
	if views, err := results.ReadJSONL[results.TrajectoryView](filepath.Join(killed.dir, "results/smoke", results.TrajectoriesFile)); err != nil || len(views) != 3*2 {
		t.Errorf("%d trajectories, %v", len(views), err)
	}
}

// killLoop kills a reproduction, its children first or both, at random moments of the
// work. What was finished is never touched again, and no child goes on without its parent.
func (w workplace) killLoop(line string) {
	t := w.t
	for round := range 8 {
		before := w.parts()
		cmd, log := w.start(line)
		ended := make(chan error, 2)
		go func() { ended <- cmd.Wait() }()
		w.atWork(cmd.Process.Pid, len(before)+rand.IntN(2), ended)
		below := children(cmd.Process.Pid)
		t.Logf("round %d: killed with %d parts finished, %d at work", round, len(w.parts()), len(below))
		if round%3 > 0 {
			for _, pid := range below {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
			}
		}
		if round%3 > 1 { // the parent goes on, and begins them again
			w.atWork(cmd.Process.Pid, 0, ended)
		}
		below = children(cmd.Process.Pid)
		_ = cmd.Process.Kill() // it may have ended
		if err := <-ended; err != nil && !strings.Contains(err.Error(), "killed") {
			t.Errorf("round %d: %v\n%s", round, err, log)
		}
		w.waitForLocks(below)
		after := w.parts()
		for name, record := range before {
			if after[name] != record {
				t.Errorf("round %d did %s again", round, name)
			}
		}
	}
}

// atWork waits until a process has children and so many parts are finished, or it has
// ended, and then a random time.
func (w workplace) atWork(pid, finished int, ended chan error) {
	for len(children(pid)) == 0 || len(w.parts()) < finished {
		select {
		case err := <-ended:
			ended <- err
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
}

// waitForLocks waits until no process is at a part. The children of a killed parent are
// killed with it, and do not come to their end by themselves.
func (w workplace) waitForLocks(below []int) {
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range below {
		for running(pid) {
			if time.Now().After(deadline) {
				w.t.Fatalf("process %d goes on without its parent", pid)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	locks, err := filepath.Glob(filepath.Join(w.dir, "runs/smoke/reproduce/parts/*.lock"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range locks {
		f, err := flock(path, syscall.LOCK_EX)
		for ; err == nil && f == nil; f, err = flock(path, syscall.LOCK_EX) {
			if time.Now().After(deadline) {
				w.t.Fatalf("%s is held by a child without its parent", path)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		f.Close()
	}
}

// running tells a process that runs from one that is gone or only waits to be noticed.
func running(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(data), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// A child that has long to go does not outlive its parent, however that ends: Linux
// kills it.
func TestPartsEndWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills a process with its parent")
	}
	w := newWorkplace(t)
	cmd, log := w.start("reproduce --preset smoke --steps 100000 --only train/memopd/seed-0")
	ended := make(chan error, 2)
	go func() { ended <- cmd.Wait() }()
	w.atWork(cmd.Process.Pid, 0, ended)
	below := children(cmd.Process.Pid)
	if len(below) != 1 {
		t.Fatalf("%d children\n%s", len(below), log)
	}
	_ = cmd.Process.Kill()
	<-ended
	w.waitForLocks(below)
}

// A part that fails is shown with the end of its log, what hangs on it is left out, the
// rest goes on, and the next call does what is missing.
func TestReproductionGoesOnAfterAFailure(t *testing.T) {
	w := newWorkplace(t)
	const line = "reproduce --preset smoke --seeds 0 --variants ppo,memopd --horizon q2 --tasks 1 --timed-tasks 1 --audits= --steps 1 --train prompts-per-step=2"
	if err := os.MkdirAll(filepath.Join(w.dir, "runs/smoke/ppo/seed-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.write("runs/smoke/ppo/seed-0/run.json", "broken")
	_, stderr, status := w.bench(line)
	for _, want := range []string{"failed: train/ppo/seed-0: exit status 1", "  bench: ppo, seed 0: ", "run.json", "eval/ppo/seed-0 is left out: it needs train/ppo/seed-0",
		"1 of 10 parts failed: train/ppo/seed-0; left out for them: eval/ppo/seed-0, time/ppo/seed-0"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
	if done := w.parts(); status != 1 || len(done) != 7 || done["time.memopd.seed-0.json"] == "" {
		t.Errorf("exit %d, %d parts done", status, len(done))
	}
	if stdout, _, status := w.bench(line + " --collect"); status == 0 || !strings.Contains(stdout, "3 task rows") {
		t.Errorf("collected of what is finished: exit %d, %s", status, stdout)
	}
	if plan := w.mustBench(line + " --plan"); !strings.Contains(plan, "7 of 10 parts done") || !strings.Contains(plan, "stopped") {
		t.Errorf("plan:\n%s", plan)
	}
	if err := os.Remove(filepath.Join(w.dir, "runs/smoke/ppo/seed-0/run.json")); err != nil {
		t.Fatal(err)
	}
	w.mustBench(line + " --only train/ppo/seed-0")
	if done := w.parts(); len(done) != 8 {
		t.Errorf("%d parts done after one more", len(done))
	}
	if _, stderr, status := w.bench(strings.Replace(line, "--steps 1", "--steps 2", 1)); status == 0 || !strings.Contains(stderr, "made by other settings") {
		t.Errorf("other settings: exit %d\n%s", status, stderr)
	}
	w.mustBench(line)
	if e := w.outcome(); len(e.Rows) != 4 || len(e.Manifest.Parts) != 10 {
		t.Errorf("%d rows, %d parts", len(e.Rows), len(e.Manifest.Parts))
	}
}
