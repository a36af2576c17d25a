package results

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestJSONL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	rows := evaluation()
	for _, part := range [][]TaskRow{rows[:3], nil, rows[3:]} {
		if err := AppendJSONL(path, part...); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadJSONL[TaskRow](path)
	if err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("read %+v, %v", got, err)
	}

	bad := rows[0]
	bad.F1 = math.NaN()
	if err := AppendJSONL(path, rows[1], bad); err == nil || !strings.Contains(err.Error(), "row 1") {
		t.Errorf("appending NaN: %v", err)
	}
	if got, err := ReadJSONL[TaskRow](path); err != nil || len(got) != len(rows) {
		t.Errorf("after a refused row %d rows, %v", len(got), err)
	}
}

func TestReadJSONLErrors(t *testing.T) {
	good := `{"variant":"ppo","horizon":"q2","task_id":"a"}` + "\n"
	for text, want := range map[string]string{
		good + good[:20]:   ":2: the line is unfinished",
		good + "\n" + good: ":2: ",
		good + "{]\n":      ":2: ",
		`{"variant":"ppo","horizon":"q2","task_id":"a","typo":1}` + "\n": "typo",
		`{"variant":"ppo","horizon":"q2"}` + "\n":                        ":1: task row",
		strings.TrimSpace(good) + good:                                   ":1: more than one value",
	} {
		path := filepath.Join(t.TempDir(), "rows.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if rows, err := ReadJSONL[TaskRow](path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d rows, %v; want %s", text, len(rows), err, want)
		}
	}
	if _, err := ReadJSONL[TaskRow](filepath.Join(t.TempDir(), "absent")); !os.IsNotExist(err) {
		t.Errorf("absent file: %v", err)
	}
}

func TestRepairJSONL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if n, err := RepairJSONL(path); n != 0 || err != nil {
		t.Errorf("absent file: %d, %v", n, err)
	}
	rows := evaluation()
	if err := AppendJSONL(path, rows[0]); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(path)
	if err := os.WriteFile(path, append(whole, `{"var`...), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := AppendJSONL(path, rows[1]); err == nil || !strings.Contains(err.Error(), "unfinished") {
		t.Errorf("appending to an unfinished line: %v", err)
	}
	if n, err := RepairJSONL(path); n != 5 || err != nil {
		t.Errorf("repair cut %d, %v; want 5", n, err)
	}
	if err := AppendJSONL(path, rows[1]); err != nil {
		t.Error(err)
	}
	if got, err := ReadJSONL[TaskRow](path); err != nil || !reflect.DeepEqual(got, rows[:2]) {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestWriteJSON(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "x.json")
	for _, v := range []any{map[string]int{"a<b": 1}, []int{2}} {
		if err := WriteJSON(path, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteJSON(path, math.NaN()); err == nil {
		t.Error("NaN is written")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "[\n  2\n]\n" {
		t.Errorf("file holds %q, %v", data, err)
	}
	// A rename onto a folder fails: the folder stays, and no temporary file does.
	if err := os.MkdirAll(filepath.Join(folder, "taken", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(folder, "taken"), nil); err == nil {
		t.Error("a folder was replaced")
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 2 {
		t.Errorf("folder holds %v, %v", entries, err)
	}
}
