package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/results"
)

// planReproduction makes the parts of a reproduction in a folder of its own.
func planReproduction(t *testing.T, change func(*reproduceOptions)) *reproduction {
	t.Helper()
	o, err := reproduceDefaults(presetMini)
	if err != nil {
		t.Fatal(err)
	}
	o.Out, o.Jobs = t.TempDir(), 2
	if change != nil {
		change(&o)
	}
	parts, err := o.parts()
	if err != nil {
		t.Fatal(err)
	}
	r := &reproduction{o: o, parts: parts, store: partStore{filepath.Join(o.folder(), "parts")}}
	if err := r.read(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reproduction) part(t *testing.T, name string) part {
	t.Helper()
	i := slices.IndexFunc(r.parts, func(p part) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("no part %s", name)
	}
	return r.parts[i]
}

// Five seeds of three variants, each trained, evaluated and timed once, with what each
// hangs on before it.
func TestReproductionParts(t *testing.T) {
	r := planReproduction(t, nil)
	count := map[string]int{}
	seen := map[string]bool{}
	for _, p := range r.parts {
		kind, _, _ := strings.Cut(p.name, "/")
		count[kind]++
		if seen[p.name] {
			t.Errorf("%s stands twice", p.name)
		}
		seen[p.name] = true
		for _, before := range p.after {
			if !seen[before] {
				t.Errorf("%s stands before %s, which it hangs on", p.name, before)
			}
		}
		if p.alone != (kind == "time" || p.name == "audit/speed") {
			t.Errorf("%s: alone is %v", p.name, p.alone)
		}
	}
	if count["train"] != 15 || count["eval"] != 17 || count["time"] != 17 || count["audit"] != 8 || len(r.parts) != 57 {
		t.Errorf("parts %v, %d in all", count, len(r.parts))
	}
	for name, want := range map[string]string{
		"train/memopd/seed-3":    "",
		"eval/memopd/seed-3":     "train/memopd/seed-3",
		"time/memopd/seed-3":     "train/memopd/seed-3",
		"eval/sft/seed-0":        "",
		"audit/teacher.q8":       "audit/rce.q8",
		"audit/masks.q2":         "audit/rce.q2",
		"audit/updates.q2":       "",
		"time/persistent/seed-0": "train/persistent/seed-0",
	} {
		if got := strings.Join(r.part(t, name).after, ","); got != want {
			t.Errorf("%s hangs on %q, want %q", name, got, want)
		}
	}
	want := "eval --preset mini --variants memopd --horizon q2,q8,q16,wikirag --seeds 3 --tasks 0 --timed-tasks 0 --ledger jsonl"
	if got := strings.Join(r.part(t, "eval/memopd/seed-3").args, " "); !strings.HasPrefix(got, want) {
		t.Errorf("command %s, want %s", got, want)
	}
	scratch := planReproduction(t, func(o *reproduceOptions) { o.FromScratch, o.Sweep, o.Seeds = true, true, "0,0" })
	for _, name := range []string{"train/ppo/seed-0", "eval/sft/seed-0", "audit/rce.q2", "train/memopd-topk/seed-0", "train/ppo-mem1/seed-0"} {
		if p := scratch.part(t, name); !slices.Contains(p.after, "pretrain") {
			t.Errorf("%s hangs on %v, not on pretrain", name, p.after)
		}
	}
	swept := planReproduction(t, func(o *reproduceOptions) { o.Shares, o.ShareSeeds = []float64{0, 0.4}, "0-2" })
	if n := len(swept.parts); n != 57+2+2*2*3*3+2 {
		t.Errorf("%d parts with two shares", n)
	}
	if p := swept.part(t, "train/persistent-share-0.4/seed-2"); strings.Join(p.after, ",") != "pretrain/share-0.4" || !strings.Contains(strings.Join(p.args, " "), "--name persistent-share-0.4 --teacher-model "+swept.o.Out+"/mini/reproduce/share-0.4/mini/pretrain/seed-0/teacher") {
		t.Errorf("%+v", p)
	}
	if p := swept.part(t, "audit/teacher.q2.share-0"); strings.Join(p.after, ",") != "audit/rce.q2,pretrain/share-0" || p.guess == guessStart {
		t.Errorf("%+v", p)
	}
	if few := planReproduction(t, func(o *reproduceOptions) { o.Audits = []string{"masks"} }); len(few.parts) != 57-8+4 {
		t.Errorf("%d parts with the audit of masks, which needs the ledgers of rce, alone", len(few.parts))
	}
}

// Every command line of the plan is one that bench knows.
func TestReproductionCommandsParse(t *testing.T) {
	r := planReproduction(t, func(o *reproduceOptions) {
		o.FromScratch, o.Sweep, o.Seeds, o.Train, o.Shares = true, true, "0", []string{"learning-rate=1e-4"}, []float64{0.25}
	})
	for _, p := range append(r.parts, planReproduction(t, func(o *reproduceOptions) { o.Preset = presetSmoke }).parts...) {
		root := newRoot()
		cmd, rest, err := root.Find(p.args)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || len(cmd.Flags().Args()) > 0 {
			t.Errorf("%s: bench %s: %v, left over %q", p.name, strings.Join(p.args, " "), err, cmd.Flags().Args())
		}
	}
}

func TestReproductionRefuses(t *testing.T) {
	w := newWorkplace(t)
	if err := os.MkdirAll(filepath.Join(w.dir, "made/mini/pretrain/seed-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.write("made/mini/pretrain/seed-0/pretrain.json", "{}")
	for _, c := range []struct{ line, want string }{
		{"reproduce --preset small", "known: mini, smoke"},
		{"reproduce --variants nosuch", "known: ppo, persistent, memopd"},
		{"reproduce --horizon x", "unknown horizon"},
		{"reproduce --steps -1", "--steps: -1"},
		{"reproduce --train nosuch=1", "critic-learning-rate"},
		{"reproduce --train seed=1", `"seed"`},
		{"reproduce --train learning-rate=x", "not a finite number"},
		{"reproduce --shares 2", "shares has 2"},
		{"reproduce --audits nosuch", "known: rce, teacher"},
		{"reproduce --only nosuch", "unknown part"},
		{"reproduce --only eval/ppo/seed-0", "train/ppo/seed-0 has to be finished before"},
		{"reproduce --out made", "--from-scratch"},
	} {
		if _, stderr, status := w.bench(c.line); status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("bench %s: exit %d, want %q in\n%s", c.line, status, c.want, stderr)
		}
	}
}

// The time left is that of a schedule: what hangs on another waits for it, what runs
// alone comes last, and finished parts say how long their kind takes.
func TestReproductionTimeLeft(t *testing.T) {
	r := &reproduction{o: reproduceOptions{Jobs: 2}, states: map[string]*partState{}, parts: []part{
		{name: "a", kind: "x", guess: 10}, {name: "b", kind: "x", guess: 10}, {name: "c", kind: "x", guess: 10},
		{name: "d", kind: "y", guess: 4, after: []string{"c"}}, {name: "e", kind: "z", guess: 3, alone: true},
	}}
	for _, p := range r.parts {
		r.states[p.name] = &partState{}
	}
	now := time.Now()
	check := func(want float64) {
		t.Helper()
		if got := r.left(r.parts, now).Seconds(); got < want-1e-6 || got > want+1e-6 {
			t.Errorf("%g seconds left, want %g", got, want)
		}
	}
	check(10 + 10 + 4 + 3) // a and b, then c, then d; e alone
	r.states["a"].record = &results.Part{Seconds: 20}
	check(20 + 20 + 2*3 - 20 + 2*4) // b and c take 20 as a did, d and e twice their guess
	r.states["b"].began = now.Add(-15 * time.Second)
	check(20 + 8 + 6)
	r.states["c"].err = os.ErrInvalid
	r.states["d"].blocked = "c"
	check(5 + 6)
	r.states["b"].began = now.Add(-100 * time.Second)
	check(2 + 6)
}

// A list's lines are commands for a shell, each after what it hangs on.
func TestReproductionList(t *testing.T) {
	r := planReproduction(t, func(o *reproduceOptions) { o.Seeds, o.FromScratch, o.Out = "0", true, "it's here" })
	var b bytes.Buffer
	if err := r.list(&b); err != nil {
		t.Fatal(err)
	}
	stage := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n")[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			t.Fatalf("line %q", line)
		}
		stage[f[2]] = f[0]
		for _, before := range strings.Split(f[3], ",") {
			if before != "-" && !(stage[before] != "" && stage[before] < f[0]) {
				t.Errorf("%s, stage %s, hangs on %s, stage %s", f[2], f[0], before, stage[before])
			}
		}
		if alone := f[1] == "alone"; alone != (f[0] == "4") {
			t.Errorf("stage %s has %s, %s", f[0], f[2], f[1])
		}
		out, err := exec.Command("sh", "-c", "printf '%s\n' "+f[4]).Output()
		args := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err != nil || len(args) < 6 || args[2] != "--preset=mini" || args[3] != "--out=it's here" || args[4] != "--seeds=0" || args[5] != "--from-scratch=true" {
			t.Errorf("a shell reads %q of %s, %v", args, f[4], err)
		}
		if last := args[len(args)-1]; last != "--only="+f[2] && last != "--collect" {
			t.Errorf("%s: the command ends in %s", f[2], last)
		}
	}
	if stage["pretrain"] != "1" || stage["train/ppo/seed-0"] != "2" || stage["eval/ppo/seed-0"] != "3" || stage["audit/speed"] != "4" || stage["collect"] != "5" {
		t.Errorf("stages %v", stage)
	}
}

// A record of other settings is not taken for the part's, wherever the folder lies.
func TestPartRecords(t *testing.T) {
	s := partStore{t.TempDir()}
	p := part{name: "train/ppo/seed-0", args: []string{"train", "--steps=2", "--out", "runs"}}
	if r, err := s.finished(p); r != nil || err != nil {
		t.Fatalf("%v, %v of a part that was never begun", r, err)
	}
	var tries []try
	for _, commit := range []string{"a", "b", "a", "c"} {
		var err error
		if tries, err = s.begin(p.name, commit); err != nil {
			t.Fatal(err)
		}
		at := tries[len(tries)-1].Started.Add(10 * time.Second) // when it last wrote to its log
		if err := os.WriteFile(s.path(p.name, "log"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(s.path(p.name, "log"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.finish(p, tries); err != nil {
		t.Fatal(err)
	}
	p.args = []string{"train", "--steps=2", "--out", "/elsewhere/runs"}
	r, err := s.finished(p)
	if err != nil || r.Commit != "c" || strings.Join(r.EarlierCommits, " ") != "a b" || r.Seconds < 30 || r.Seconds > 31 {
		t.Errorf("%+v, %v", r, err)
	}
	p.args[1] = "--steps=3"
	if _, err := s.finished(p); err == nil || !strings.Contains(err.Error(), "--steps=3") {
		t.Errorf("other settings: %v", err)
	}
}

func TestPartLocks(t *testing.T) {
	s := partStore{t.TempDir()}
	a, err := s.lock("train/ppo/seed-0")
	if a == nil || err != nil {
		t.Fatal(a, err)
	}
	if b, err := s.lock("train/ppo/seed-0"); b != nil || err != nil {
		t.Errorf("taken twice: %v, %v", b, err)
	}
	shared, _ := s.gate(false)
	other, _ := s.gate(false)
	if alone, err := s.gate(true); shared == nil || other == nil || alone != nil || err != nil {
		t.Errorf("gate %v, %v; alone beside them %v, %v", shared, other, alone, err)
	}
	shared.Close()
	other.Close()
	alone, err := s.gate(true)
	if alone == nil || err != nil {
		t.Fatal(alone, err)
	}
	if shared, err := s.gate(false); shared != nil || err != nil {
		t.Errorf("beside one that runs alone: %v, %v", shared, err)
	}
}
