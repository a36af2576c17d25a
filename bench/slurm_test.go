package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The stages of a reproduction as array jobs of a real Slurm of one node, which the
// script starts and stops.
func TestReproductionOnSlurm(t *testing.T) {
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not there: apt-get install slurm-wlm munge", program)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("starting munged and slurmctld for a test takes root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("../scripts/slurm/try.sh", "--preset", "smoke", "--seeds", "0", "--variants", "ppo", "--horizon", "q2",
		"--tasks", "1", "--timed-tasks", "1", "--audits=", "--steps", "1", "--train", "prompts-per-step=2")
	cmd.Env = append(os.Environ(), asBench+"=1", "BENCH="+self, "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"stage 1: 3 parts", "stage 2: 1 parts", "stage 3: 3 parts", "stage 4: 1 parts", "3 task rows", "stopped;"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "JobState=COMPLETED"); n != 8 {
		t.Errorf("%d jobs completed, want 8:\n%s", n, out)
	}
	if records, _ := filepath.Glob(filepath.Join(dir, "slurm-try.*/reproduction/runs/smoke/reproduce/parts/*.json")); len(records) != 7 {
		t.Errorf("%d parts finished, want 7", len(records))
	}
}
