package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// auditRows runs an audit with --json and returns its exit status and rows by name.
func (w workplace) auditRows(line string) (status int, rows map[string]map[string]any, stderr string) {
	w.t.Helper()
	out, stderr, status := w.bench("audit rce --json " + line)
	var list []map[string]any
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		w.t.Fatalf("bench audit rce %s: exit %d, %v in %q\n%s", line, status, err, out, stderr)
	}
	rows = map[string]map[string]any{}
	for _, r := range list {
		rows[r["name"].(string)] = r
	}
	return status, rows, stderr
}

// On the mini agent's rollouts the aligned layout passes and every control fails, for
// the reason that it was made for.
func TestAuditOfMini(t *testing.T) {
	w := newWorkplace(t)
	status, rows, stderr := w.auditRows("--trajectories 8 --controls --save-ledger l.jsonl --certificate c.json")
	if status != 0 {
		t.Fatalf("exit %d\n%s", status, stderr)
	}
	for _, name := range []string{"aligned", "calls", "recorded"} {
		if r := rows[name]; r["pass"] != true || r["p99"].(float64) > 2e-5 || r["false_clips"] != 0.0 {
			t.Errorf("%s: %v", name, r)
		}
	}
	for _, name := range []string{"persistent", "visibility", "positions", "both", "mem1"} {
		if r := rows[name]; r["pass"] != false || r["p99"].(float64) < 0.1 || r["flips"].(float64) < 5 || r["false_clips"].(float64) < 5 || r["grad_error"].(float64) < 0.1 {
			t.Errorf("%s: %v", name, r)
		}
	}
	for _, name := range []string{"trajectory-mask", "response-mask"} {
		if r := rows[name]; r["pass"] != false || r["p99"].(float64) > 2e-5 {
			t.Errorf("%s: %v", name, r)
		}
	}
	w.checkCertificate("c.json", "l.jsonl")

	// The ledger audited again gives the same numbers; a layout that fails decides.
	status, again, _ := w.auditRows("--ledger l.jsonl --trajectories 0 --layout aligned,recorded,persistent --gradient-trajectories 0 --certificate again.json")
	if status != 1 || again["aligned"]["p99"] != rows["aligned"]["p99"] || again["persistent"]["p99"] != rows["persistent"]["p99"] || again["aligned"]["grad_error"] != nil {
		t.Errorf("again: exit %d, %v", status, again)
	}
	var c audit.Certificate
	w.readJSON("again.json", &c)
	if c.Pass || !slices.Equal(c.Audited, []string{"aligned", "recorded", "persistent"}) {
		t.Errorf("certificate of a layout that fails: pass %v, audited %v", c.Pass, c.Audited)
	}
	if _, stderr, status := w.bench("audit rce --ledger l.jsonl --model mini/teacher --layout recorded --gradient-trajectories 0"); status != 1 || !strings.Contains(stderr, "not certified: recorded: p99") {
		t.Errorf("log-probs of another model: exit %d\n%s", status, stderr)
	}
	status, bf16, stderr := w.auditRows("--ledger l.jsonl --dtype bf16 --gradient-trajectories 1 --certificate bf16.json")
	if status != 1 || bf16["aligned"]["pass"] != false || bf16["calls"]["pass"] != false || bf16["calls"]["p99"].(float64) < 1e-3 || !strings.Contains(stderr, "no certificate in bf16") {
		t.Errorf("bf16: exit %d, %v\n%s", status, bf16, stderr)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "bf16.json")); err == nil {
		t.Error("bf16 has a certificate")
	}
	w.auditTable()
	w.auditOthers()
	w.auditSources()
}

// checkCertificate holds a certificate to the ledger and to a passing audit.
func (w workplace) checkCertificate(file, ledger string) {
	w.t.Helper()
	var c struct {
		Pass      bool
		DType     string
		Tolerance float64
		Model     string
		Tokenizer string
		Config    string
		Ledgers   []audit.Ledger
		Layouts   []struct {
			Name, Role string
			Pass       bool
			Spurious   int
			Failures   []struct{ Parts []string }
		}
		Manifest *results.Manifest
	}
	w.readJSON(file, &c)
	sum, err := results.HashFile(filepath.Join(w.dir, ledger))
	if err != nil {
		w.t.Fatal(err)
	}
	if !c.Pass || c.DType != "f32" || c.Tolerance != 1e-4 || len(c.Ledgers) != 1 || c.Ledgers[0].SHA256 != sum || c.Manifest == nil || c.Manifest.Libtorch == "" {
		w.t.Errorf("certificate %+v, the ledger's hash is %s", c, sum)
	}
	for name, hash := range map[string]string{"model": c.Model, "tokenizer": c.Tokenizer, "config": c.Config} {
		if len(hash) != 64 {
			w.t.Errorf("hash of the %s: %q", name, hash)
		}
	}
	parts := map[string][]string{
		"persistent": {"positions", "visibility"}, "visibility": {"visibility"}, "positions": {"positions"}, "both": {"positions", "visibility"},
		"trajectory-mask": {"mask"}, "response-mask": {"mask"},
	}
	for _, l := range c.Layouts {
		if want, ok := parts[l.Name]; ok && (len(l.Failures) == 0 || !slices.Equal(l.Failures[0].Parts, want) || l.Role != "control") {
			w.t.Errorf("%s (%s): failures %v, want %v", l.Name, l.Role, l.Failures, want)
		}
	}
}

// auditTable: without --json there are tables with the paper's numbers, and what failed.
func (w workplace) auditTable() {
	w.t.Helper()
	table := w.mustBench("audit rce --ledger l.jsonl --trajectories 3 --controls=positions,aligned --gradient-trajectories 1")
	for _, part := range []string{"aligned     audited", "positions   control", "published T3", "3.43e-05", "13.29%", "positions fails in", "(positions): sees", "By call"} {
		if !strings.Contains(table, part) {
			w.t.Errorf("the table lacks %q:\n%s", part, table)
		}
	}
	if strings.Contains(table, "mem1") {
		w.t.Errorf("a control that was not asked for:\n%s", table)
	}
}

// auditOthers runs the audits of teachers and masks.
func (w workplace) auditOthers() {
	w.t.Helper()
	var parts []audit.TeacherPart
	if err := json.Unmarshal([]byte(w.mustBench("audit teacher --ledger l.jsonl --json")), &parts); err != nil {
		w.t.Fatal(err)
	}
	if len(parts) != 3 || parts[1].Calls != "before" || parts[1].Flips != 0 || parts[1].Max > 1e-4 || parts[2].P99 < 0.1 || parts[2].MeanKL < 1e-3 ||
		parts[0].Tokens != parts[1].Tokens+parts[2].Tokens {
		w.t.Errorf("teacher: %+v", parts)
	}
	var domains []audit.MaskRow
	if err := json.Unmarshal([]byte(w.mustBench("audit masks --ledger l.jsonl --gradient-trajectories 2 --json")), &domains); err != nil {
		w.t.Fatal(err)
	}
	if len(domains) != 3 || domains[0].Spurious != 0 || domains[1].Spurious == 0 || domains[2].Spurious != domains[1].Spurious+domains[2].Copies ||
		domains[0].Gradients[0].Cosine < 0.9999 || domains[2].Gradients[0].Cosine > 0.9 || len(domains[2].Gradients) != 3 {
		w.t.Errorf("masks: %+v", domains)
	}
}

// auditSources audits an evaluation's folder and a Parquet ledger, and says what
// is wrong with others.
func (w workplace) auditSources() {
	w.t.Helper()
	w.mustBench("eval --preset mini --horizon q2 --variants sft,teacher --tasks 2 --timed-tasks 0 --ledger parquet")
	if status, rows, _ := w.auditRows("--runs runs/mini/eval/q2/sft/seed-0 --layout aligned,recorded --gradient-trajectories 0"); status != 0 || rows["recorded"]["tokens"].(float64) < 20 {
		w.t.Errorf("an evaluation's folder: exit %d, %v", status, rows)
	}
	all, err := trace.ReadAll(filepath.Join(w.dir, "l.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	t := *all[0]
	t.Calls = slices.Clone(t.Calls)
	last := &t.Calls[len(t.Calls)-1]
	last.Output = slices.Clone(last.Output)
	last.Output[0] = 49_000
	if err := trace.WriteAll(filepath.Join(w.dir, "other.jsonl"), []*trace.Trajectory{&t}); err != nil {
		w.t.Fatal(err)
	}
	spoken := *all[0]
	spoken.Model = "elsewhere"
	err = os.Mkdir(filepath.Join(w.dir, "elsewhere"), 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, "elsewhere", "tokenizer.json"), tinyBPE(w.t, "who wrote the book", 4), 0o644)
	}
	if err == nil {
		err = trace.WriteAll(filepath.Join(w.dir, "spoken.jsonl"), []*trace.Trajectory{&spoken})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"--ledger spoken.jsonl --model mini/student", "builtin mini/student cannot score what elsewhere sampled: its tokenizer is another one"},
		{"--runs runs/mini/eval/q2", "sampled by several models (builtin mini/student, builtin mini/teacher)"},
		{"--runs data", "no ledger.jsonl or ledger.parquet below data"},
		{"--ledger other.jsonl", "id 49000, the model has"},
		{"--ledger nosuch.jsonl", "nosuch.jsonl"},
		{"--ledger l.jsonl --model nosuch", "nosuch"},
		{"--layout flat", "known: aligned, calls, persistent"},
		{"--controls=flat", "known: aligned, calls, persistent"},
		{"--layout=", "no --layout"},
		{"--preset paper", "known: mini, small"},
		{"--trajectories -1", "--trajectories: -1"},
		{"--ledger l.jsonl --dtype f8", "known: f32, bf16"},
		{"--preset small", "runs/small/pretrain"},
	} {
		stdout, stderr, status := w.bench("audit rce " + c.line)
		if status != 1 || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "goroutine") {
			w.t.Errorf("audit rce %s: exit %d, want an error with %q, got\n%s%s", c.line, status, c.want, stdout, stderr)
		}
	}
}
