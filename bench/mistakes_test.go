package main

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// saidBy runs a command line in this process.
func saidBy(line ...string) (string, error) {
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(line)
	err := root.Execute()
	return out.String(), err
}

// A mistyped subcommand of any parent is an error that lists the known ones.
func TestUnknownSubcommands(t *testing.T) {
	var parents func(c *cobra.Command) [][]string
	parents = func(c *cobra.Command) (all [][]string) {
		if c.HasSubCommands() {
			all = append(all, strings.Fields(c.CommandPath())[1:])
		}
		for _, sub := range c.Commands() {
			all = append(all, parents(sub)...)
		}
		return all
	}
	all := parents(newRoot())
	if len(all) < 6 {
		t.Fatalf("parents: %v", all)
	}
	for _, path := range all {
		if out, err := saidBy(append(path, "foo")...); err == nil || !strings.Contains(err.Error(), `unknown command of bench`) || !strings.Contains(err.Error(), "known: ") {
			t.Errorf("%v: %v\n%s", path, err, out)
		}
		if out, err := saidBy(path...); err != nil || !strings.Contains(out, "Available Commands") || strings.Contains(out, "[=true|false]") {
			t.Errorf("%v alone: %v\n%s", path, err, out)
		}
	}
	if _, err := saidBy("audit", "foo"); err == nil || !strings.Contains(err.Error(), "rce") {
		t.Errorf("audit foo: %v", err)
	}
}

// Numbers that a flag does not take are refused before anything is done.
func TestNumbersOutsideLimits(t *testing.T) {
	for line, says := range map[string]string{
		"audit rce --gradient-trajectories=-2":      "--gradient-trajectories: -2, want -1 or more",
		"audit rce --html-trajectories=-1":          "--html-trajectories: -1, want 0 or more",
		"audit masks --gradient-trajectories=-2":    "want -1 or more",
		"audit updates --gradient-trajectories=-2":  "want -1 or more",
		"audit rce --tolerance=NaN":                 "not a finite number",
		"index --documents-per-shard=0 x":           "--documents-per-shard: 0, want 1 or more",
		"index --documents-per-shard=-5 x":          "want 1 or more",
		"index --epsilon=5 x":                       "--epsilon: 5, want 0 to 1",
		"index --epsilon=-1 x":                      "want 0 to 1",
		"search --k=0 x":                            "--k: 0, want 1 or more",
		"recall --k=1,0":                            "--k: 0, want 1 or more",
		"recall --k=3,1 --source a=b":               "ascending",
		"watch --every=-1s x":                       "--every: -1s",
		"serve retriever --timeout-seconds=0":       "timeout-seconds 0",
		"audit rce --controls persistent":           "--controls=persistent",
		"audit rce --temperature=0":                 "want more than 0: fresh rollouts are sampled",
		"audit rce --model mini/foo":                "mini/student",
		"audit rce --ledger F --update foo":         `"foo"`,
		"audit rce --ledger F --update full":        "is for fresh rollouts",
		"audit rce --layout aligned --tolerance -1": "--tolerance: -1, want 0 or more",
	} {
		if out, err := saidBy(strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q\n%.200s", line, err, says, out)
		}
	}
}

// No command's own defaults lie outside the limits.
func TestDefaultsWithinLimits(t *testing.T) {
	var c struct {
		A float64 `flag:"a" min:"-1" max:"1"`
		B []int   `flag:"b"`
	}
	for _, x := range []float64{-1.1, 1.1, math.NaN()} {
		if c.A = x; checkLimits(&c) == nil {
			t.Errorf("%g was taken", x)
		}
	}
	if c.A, c.B = -1, []int{3, -3}; checkLimits(&c) == nil {
		t.Error("-3 in a list was taken")
	}
	if c.B = nil; checkLimits(&c) != nil {
		t.Error(checkLimits(&c))
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.HasPrefix(f.DefValue, "-") && f.Name != "gradient-trajectories" {
				t.Errorf("%s --%s: the default is %s", cmd.CommandPath(), f.Name, f.DefValue)
			}
		})
	}
	walk(newRoot())
}

// Texts are shown as a terminal can show them, long ones in short.
func TestShown(t *testing.T) {
	for text, want := range map[string]string{"é 日 b": "é 日 b", "\x1b[2J\xff\n": `\x1b[2J\xff\n`, "a\u202eb": `a\u202eb`, `"q"`: `"q"`} {
		if got := shown(text, 0); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	if got := shown(strings.Repeat("é", 90), 80); got != strings.Repeat("é", 80)+"…" {
		t.Errorf("long: %s", got)
	}
}
