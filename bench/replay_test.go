package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// A step of a smoke run, run again in another process, is the same bit for bit; a
// ledger that was changed is named; what cannot be replayed is explained.
func TestReplayOfASmokeRun(t *testing.T) {
	w := newWorkplace(t)
	const line = "train --preset smoke --prompts-per-step 4 --tokens-per-microbatch 300 "
	w.mustBench(line + "--steps 3 --checkpoint-every 1 --bundle-every 1")
	const run = "runs/smoke/memopd/seed-0"
	w.mustBench(line + "--steps 3 --bundle-every 2") // trained already: bundles are no other settings

	for _, arguments := range []string{"1 --run " + run, run + "/bundles/step-000001 --micro 1", run, "--run " + run} {
		out := w.mustBench("replay " + arguments)
		if !strings.Contains(out, "step 1, microbatch") || !strings.Contains(out, "all that was compared is equal, bit for bit") {
			t.Errorf("replay %s:\n%s", arguments, out)
		}
	}
	if err := os.CopyFS(filepath.Join(w.dir, "copy"), os.DirFS(filepath.Join(w.dir, run, "bundles/step-000001"))); err != nil {
		t.Fatal(err)
	}
	w.mustBench("replay copy --run " + run)
	var r train.ReplayReport
	if err := json.Unmarshal([]byte(w.mustBench("replay 1 --json --run "+run)), &r); err != nil || len(r.Stages) != 13 || r.First != "" {
		t.Errorf("%v, %d stages, first difference %q", err, len(r.Stages), r.First)
	}

	path := filepath.Join(w.dir, run, "bundles/step-000001/ledger.parquet")
	all, err := trace.ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	last := &all[1].Calls[len(all[1].Calls)-1]
	last.Output[0]++
	if err := trace.WriteAll(path, all); err != nil {
		t.Fatal(err)
	}
	out, stderr, status := w.bench("replay 1 --run " + run)
	for _, part := range []string{"note: ledger.parquet is not as it was written", "first difference: ids", "1 differ; first: trajectory"} {
		if !strings.Contains(out, part) {
			t.Errorf("of a changed ledger there is no %q in\n%s", part, out)
		}
	}
	if status != 1 || !strings.Contains(stderr, `differs first in the stage "ids"`) {
		t.Errorf("exit %d: %s", status, stderr)
	}

	if err := os.Remove(filepath.Join(w.dir, run, "checkpoints/step-000003/critic.safetensors")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ arguments, want string }{
		{"2 --run " + run, "steps that can be replayed: 1"}, {"9 --run " + run, "steps with one: [1 2 3], of which [1] can be replayed"},
		{"nosuch", "neither a step's number nor"}, {"1 --run nosuch", "holds no bundles"}, {"1 --micro 99 --run " + run, "microbatch 99"},
		{"1 --tolerance -1 --run " + run, "want 0 or more"}, {"1 --student nosuch --run " + run, "nosuch"},
	} {
		if _, stderr, status := w.bench("replay " + c.arguments); status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("replay %s: exit %d, want an error with %q, got\n%s", c.arguments, status, c.want, stderr)
		}
	}
}
