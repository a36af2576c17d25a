package datasets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseInput(t *testing.T) {
	for arg, want := range map[string]Input{
		"a.json":                       {Path: "a.json"},
		"dir:x/a.json":                 {Path: "dir:x/a.json"},
		"source=nq:a.json":             {Path: "a.json", Source: "nq"},
		"split=test,format=mem1:C:a=b": {Path: "C:a=b", Split: Test, Format: MEM1},
	} {
		if got, err := ParseInput(arg); err != nil || got != want {
			t.Errorf("ParseInput(%q) = %+v, %v", arg, got, err)
		}
	}
	for arg, says := range map[string]string{"split=x:a": "train, dev, test", "format=x:a": "known are", "color=x:a": "source, format, split", "source=x:": "no path"} {
		if _, err := ParseInput(arg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseInput(%q): %v", arg, err)
		}
	}
}

func madeUpPlan() *Plan {
	return &Plan{
		Inputs: []Input{
			{Path: "testdata/hotpotqa.json", Split: Test},
			{Path: "testdata/nq.jsonl", Split: Train},
			{Path: "testdata/nq_bad.jsonl", Split: Test},
			{Path: "testdata/hotpotqa_hf.jsonl", Split: Train},
		},
		Horizons: []int{1, 2}, Seed: 3, SkipBad: true, Documents: true,
	}
}

func TestPlanRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	m, err := madeUpPlan().Run(dir)
	if err != nil {
		t.Fatal(err)
	}
	// Train loses a question without usable gold (A+) and three that test has.
	want := Refused{Separator: 1, NoGold: 1, OtherSplit: 3, GoldsSeparator: 1, GoldsEmpty: 2}
	if *m.Refused != want {
		t.Errorf("refused %+v, want %+v", *m.Refused, want)
	}
	if in := m.Inputs[2]; in.Questions != 2 || in.Skipped != 6 || in.Records != 2 || in.Format != NQOpen || len(in.SHA256) != 64 {
		t.Errorf("third input is %+v", in)
	}
	counts := map[string]int{DocumentsName: 2, "train-q1.parquet": 2, "train-q2.parquet": 1, "test-q1.parquet": 4, "test-q2.parquet": 2}
	if len(m.Outputs) != len(counts) {
		t.Errorf("outputs are %+v", m.Outputs)
	}
	for _, o := range m.Outputs {
		if counts[o.Path] != o.Records {
			t.Errorf("%s has %d records, want %d", o.Path, o.Records, counts[o.Path])
		}
	}
	asked := map[string]bool{}
	for _, name := range []string{"train-q2.parquet", "test-q2.parquet"} {
		for _, task := range collectTasks(t, filepath.Join(dir, name)) {
			for _, q := range task.Questions {
				if asked[Key(q)] {
					t.Errorf("%q is asked twice", q.Question)
				}
				asked[Key(q)] = true
			}
		}
	}
	checkManifest(t, dir, m)
}

func checkManifest(t *testing.T, dir string, m *Manifest) {
	t.Helper()
	read, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Verify(dir); err != nil {
		t.Error(err)
	}
	first, _ := os.ReadFile(filepath.Join(dir, ManifestName))
	if _, err := madeUpPlan().Run(dir); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(filepath.Join(dir, ManifestName)); string(second) != string(first) {
		t.Error("running again gives another manifest")
	}
	if err := os.WriteFile(filepath.Join(dir, "test-q2.parquet"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(dir); err == nil || !strings.Contains(err.Error(), "test-q2.parquet") {
		t.Errorf("a changed file: %v", err)
	}
}

func TestPlanFails(t *testing.T) {
	dir := t.TempDir()
	run := func(change func(*Plan)) error {
		p := madeUpPlan()
		change(p)
		_, err := p.Run(dir)
		return err
	}
	for says, change := range map[string]func(*Plan){
		"no input files":                func(p *Plan) { p.Inputs = nil },
		"no number of questions":        func(p *Plan) { p.Horizons = nil },
		"0 questions a task":            func(p *Plan) { p.Horizons = []int{0} },
		"shares of train, dev and test": func(p *Plan) { p.Inputs[0].Split = "" },
		"line 2: field answer":          func(p *Plan) { p.SkipBad = false },
		"too few for a task of 9":       func(p *Plan) { p.Horizons = []int{9} },
	} {
		if err := run(change); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
	if _, err := ReadManifest(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder of a failed run has a manifest: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left over: %q", left)
	}
}

// The real files together: HotpotQA and NQ mixed, with a corpus.
func TestSharedCompose(t *testing.T) {
	p := &Plan{
		Inputs: []Input{
			{Path: sharedFile(t, "nq/nq-open-oracle.jsonl.gz"), Split: Test},
			{Path: sharedFile(t, "nq/NQ-open.dev.jsonl"), Split: Test},
			{Path: sharedFile(t, "hotpotqa/hotpot_dev_official500.jsonl"), Split: Test},
			{Path: sharedFile(t, "hotpotqa/hotpotqa_train_sample.json")},
			{Path: sharedFile(t, "hotpotqa/hotpot_dev_v1_simplified.json"), Split: Test},
		},
		Shares: Shares{Train: 1}, Horizons: []int{2, 16}, Seed: 1, Documents: true,
	}
	dir := t.TempDir()
	m, err := p.Run(dir)
	if err != nil {
		t.Fatal(err)
	}
	// Counted apart in Python, with SQuAD's own normalisation. 3,155 are the
	// questions of nq-open-oracle and of the official 500 that stand in the whole dev sets too.
	want := Refused{Separator: 6, NoGold: 5, Duplicate: 3155, GoldsSeparator: 1, GoldsEmpty: 7}
	if *m.Refused != want {
		t.Errorf("refused %+v, want %+v", *m.Refused, want)
	}
	counts := map[string][2]int{"train-q2.parquet": {49, 1}, "train-q16.parquet": {6, 3}, "test-q2.parquet": {5502, 1}, "test-q16.parquet": {687, 13}}
	for _, o := range m.Outputs {
		if c, ok := counts[o.Path]; ok && c != [2]int{o.Records, o.LeftOver} {
			t.Errorf("%s: %d tasks, %d questions left over, want %v", o.Path, o.Records, o.LeftOver, c)
		}
	}
}
