package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/train"
)

// The check runs through on the CPU with a small model: each part has results, and
// those of parity and RCE are what they must be.
func TestCheckDeviceOnTheCPU(t *testing.T) {
	out := filepath.Join(t.TempDir(), "check.json")
	cmd := newCheckDevice()
	var text bytes.Buffer
	cmd.SetOut(&text)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--device", "cpu", "--shape", "mini/student", "--calls", "3", "--prefix-tokens", "20", "--response-tokens", "12",
		"--observation-tokens", "15", "--rows", "1,3", "--context-tokens", "40", "--new-tokens", "4", "--repeats", "1", "--threads", "1", "--out", out})
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var r checkReport
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Errors) > 0 || len(r.Parity) < 18 || len(r.RCE) != 2 || len(r.Decode) != 2 || len(r.Update) != 2 {
		t.Fatalf("report: %s", data)
	}
	if r.RCE[0].DType != train.Float32 || r.RCE[0].P99 > 1e-5 || r.RCE[0].Actions != 2*3*12 || r.RCE[1].DType != train.BFloat16 {
		t.Errorf("RCE: %+v", r.RCE)
	}
	for _, u := range r.Update {
		if u.TokensPerSecond <= 0 || u.Share <= 0 {
			t.Errorf("update: %+v", u)
		}
	}
	// A prefix of 20, then calls of 12, 27+12 and 27+12 tokens.
	if r.Update[0].PackedTokens != 20+12+39+39 || r.Update[0].Actions != 36 || !r.Update[0].Checkpointing {
		t.Errorf("update: %+v", r.Update[0])
	}
}

// A device that is not there ends with an error, and says so in the report.
func TestCheckDeviceReportsFailures(t *testing.T) {
	out := filepath.Join(t.TempDir(), "check.json")
	cmd := newCheckDevice()
	cmd.SetOut(&bytes.Buffer{})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--device", "cuda:99", "--shape", "mini/student", "--threads", "1", "--out", out})
	err := cmd.Execute()
	if err == nil || !strings.Contains(err.Error(), "parts failed") {
		t.Fatalf("error is %v", err)
	}
	data, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(data), "operators: ") {
		t.Errorf("report: %s (%v)", data, err)
	}
}
