package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/results"
)

// bench report writes the page and its pictures, and says what is lacking.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{results.RecordsFile, results.TasksFile, results.CurvesFile, results.ManifestFile, "audit/rce.q2.json"} {
		data, err := os.ReadFile(filepath.Join("..", "results", "testdata", "evidence", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, "outcome", name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "outcome", name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tr, r, words := scriptedRun(t, "mem1")
	v := trajectoryView(tr, r, words.Decode)
	v.Variant, v.Horizon = "memopd", "q2"
	if err := results.WriteJSONL(filepath.Join(dir, "outcome", results.TrajectoriesFile), v); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"report"}, args...))
		err := root.Execute()
		return out.String(), err
	}
	page := filepath.Join(dir, "new", "page.html")
	out, err := run("--results", filepath.Join(dir, "outcome"), "--out", page)
	if err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"noge employer founder", `id="horizons-0-t"`, `id="position-0-t"`, "<b>T1</b>", "audit/updates.q2.json"} {
		if !bytes.Contains(html, []byte(want)) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, want := range []string{page, "missing: context lengths by update", "bench audit speed"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what is printed:\n%s", want, out)
		}
	}
	for _, name := range []string{"horizons.svg", "horizons.png", "horizons.dark.png", "position.svg"} {
		if info, err := os.Stat(filepath.Join(dir, "new", "figures", name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new", "figures", "speed.svg")); err == nil {
		t.Error("a picture of nothing")
	}
	if _, err := run("--results", filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "bench reproduce") {
		t.Errorf("without results: %v", err)
	}
}
