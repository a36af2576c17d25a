package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/train"
)

// runPlanWith runs bench plan and returns what it prints.
func runPlanWith(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newPlan()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

func planJSON(t *testing.T, args ...string) planReport {
	t.Helper()
	out, err := runPlanWith(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var r planReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

// The paper's preset fits on a device of 141 GB and not on one of 80; what the
// advice proposes for the smaller one makes it fit.
func TestPlanOfThePaper(t *testing.T) {
	r := planJSON(t)
	if r.Student.Parameters != 3_085_938_688 || r.Teacher.Parameters != 7_615_616_512 {
		t.Errorf("student and teacher have %d and %d parameters", r.Student.Parameters, r.Teacher.Parameters)
	}
	if len(r.Devices) != 2 || r.Devices[0].GB != 80 || r.Devices[0].Fits || !r.Devices[1].Fits {
		t.Fatalf("devices: %+v", r.Devices)
	}
	together := r.Devices[0].Together
	if together == nil || !together.Fits {
		t.Fatalf("advice for 80 GB: %+v", together)
	}
	var flags []string
	for _, change := range together.Changes {
		if change == "--rows halved" {
			change = "--rows 64"
		}
		flags = append(flags, strings.Fields(change)...)
	}
	again := planJSON(t, flags...)
	if !again.Devices[0].Fits || again.Devices[0].Peak != together.Peak {
		t.Errorf("with %v: %+v, the advice says %d bytes", flags, again.Devices[0], together.Peak)
	}
	if a := r.Activations; a.Checkpointed <= 0 || a.Kept < 5*a.Checkpointed {
		t.Errorf("activations: %+v", a)
	}
}

func TestPlanPrintsEveryPart(t *testing.T) {
	for _, args := range [][]string{nil, {"--stage", "sft"}, {"--preset", "small"}, {"--teacher-model", "none", "--critic", "head"}} {
		r := planJSON(t, args...)
		text, err := runPlanWith(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range r.Parts {
			if !strings.Contains(text, part.Name) {
				t.Errorf("%v: the table lacks %q:\n%s", args, part.Name, text)
			}
		}
		for _, want := range []string{"80 GB (74.5 GiB): ", "141 GB (131.3 GiB): ", "GiB with gradient checkpointing"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: the table lacks %q", args, want)
			}
		}
	}
}

// A folder's config.json is as good as a published shape.
func TestPlanOfAFolder(t *testing.T) {
	const folder = "../presets/mini/student"
	r := planJSON(t, "--preset", "mini", "--student", folder, "--teacher-model", "none")
	d, err := model.Load(folder, model.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	if r.Student.Parameters != int64(d.NumParameters()) {
		t.Errorf("the mini student has %d parameters, planned are %d", d.NumParameters(), r.Student.Parameters)
	}
	const file = "../model/testdata/gguf/qwen3_tied.gguf"
	g, err := model.Describe(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := planJSON(t, "--student", file, "--teacher-model", "none"); r.Student.Parameters != g.Parameters {
		t.Errorf("%s has %d parameters, planned are %d", file, g.Parameters, r.Student.Parameters)
	}
}

// A step that is not divided is one microbatch.
func TestPlanOfAWholeStep(t *testing.T) {
	c := train.MiniSFT()
	r := planJSON(t, "--preset", "mini", "--stage", "sft")
	if c.TokensPerMicrobatch != 0 || r.Workload.PackedTokens != c.TokensPerStep {
		t.Errorf("%d tokens a microbatch, planned are %d, want %d", c.TokensPerMicrobatch, r.Workload.PackedTokens, c.TokensPerStep)
	}
}

func TestPlanRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--student", "Qwen9"}, "Qwen2.5-3B"},
		{[]string{"--preset", "huge"}, "known: paper, small, mini"},
		{[]string{"--stage", "dpo"}, "known: ppo, sft"},
		{[]string{"--dtype", "fp8"}, "f32, bf16"},
		{[]string{"--rows", "0"}, "rows is 0"},
		{[]string{"--device-memory", "80,-1"}, "--device-memory: -1"},
	} {
		if _, err := runPlanWith(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v does not name %q", c.args, err, c.want)
		}
	}
}
