package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runTablesWith runs bench tables and returns what it prints.
func runTablesWith(args ...string) (string, error) {
	cmd := newTables()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestTables(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "results", "testdata", "evidence"))); err != nil {
		t.Fatal(err)
	}
	if out, err := runTablesWith(dir, "--check"); err != nil || out != "" {
		t.Errorf("the committed tables: %v, %q", err, out)
	}
	tables := filepath.Join(dir, "tables")
	want, err := os.ReadFile(filepath.Join(tables, "t5.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"t5.md": "typed in by hand\n", "t12.csv": "a\n", "notes.md": "mine\n"} {
		if err := os.WriteFile(filepath.Join(tables, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(tables, "t1.csv")); err != nil {
		t.Fatal(err)
	}
	if _, err := runTablesWith(dir, "--check"); err == nil || !strings.Contains(err.Error(), "t1.csv, t12.csv, t5.md;") {
		t.Errorf("changed tables: %v", err)
	}
	out, err := runTablesWith(dir, "--table", "t5", "--format", "markdown")
	if err != nil || out != string(want) {
		t.Errorf("%v, printed\n%s\nwant\n%s", err, out, want)
	}
	if _, err := runTablesWith(dir, "--check"); err != nil {
		t.Errorf("tables made anew: %v", err)
	}
	if _, err := runTablesWith(dir, "--check", "--table", "zz"); err == nil || !strings.Contains(err.Error(), "unknown table") {
		t.Errorf("a check of an unknown table: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(tables, "notes.md")); err != nil || string(data) != "mine\n" {
		t.Errorf("another file: %q, %v", data, err)
	}
	var list []struct {
		Table string
		Parts []struct{ Rows []map[string]any }
	}
	out, err = runTablesWith(dir, "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 10 || list[0].Table != "t1" || list[0].Parts[0].Rows[0]["variant"] != "sft" {
		t.Errorf("JSON: %v, %d tables", err, len(list))
	}
}

func TestTablesRefuses(t *testing.T) {
	dir := filepath.Join("..", "results", "testdata", "evidence")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{dir, "--format", "html"}, "latex"},
		{[]string{dir, "--table", "t10"}, "t3b"},
		{[]string{t.TempDir()}, "manifest.json"},
	} {
		if _, err := runTablesWith(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		}
	}
}
