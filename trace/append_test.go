package trace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// A ledger grows over several runs, whatever the last one left at its end.
func TestAppend(t *testing.T) {
	for name, rest := range map[string][]byte{
		"nothing": nil, "half a line": []byte(`{"schema":1,"id":"ha`), "a long half line": bytes.Repeat([]byte("x"), 200_000),
	} {
		path := filepath.Join(t.TempDir(), "l.jsonl")
		var want []*Trajectory
		for run := range 3 {
			a, torn, err := Append(path)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if expect := int64(len(rest)); run == 0 && torn != 0 || run > 0 && torn != expect {
				t.Errorf("%s, run %d: %d bytes taken off, want %d", name, run, torn, expect)
			}
			for k := range 2 {
				tr := sample(uint64(10*run + k))
				tr.ID = string(rune('a'+run)) + string(rune('0'+k))
				want = append(want, tr)
				if err := a.Write(tr); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := ReadAll(path); err != nil || len(got) != len(want) {
				t.Errorf("%s, run %d: %d of %d trajectories before Close, %v", name, run, len(got), len(want), err)
			}
			if _, _, err := Append(path); err == nil {
				t.Errorf("%s: opened twice", name)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.Write(rest)
			f.Close()
		}
		a, _, err := Append(path)
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		if got, err := ReadAll(path); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d trajectories, %v", name, len(got), err)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Append(filepath.Join(dir, "l.parquet")); err == nil {
		t.Error("a Parquet ledger is added to")
	}
	if _, _, err := Append(filepath.Join(dir, "no", "l.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	// A first line without end leaves nothing.
	path := filepath.Join(dir, "l.jsonl")
	os.WriteFile(path, []byte("{"), 0o644)
	a, torn, err := Append(path)
	if err != nil || torn != 1 {
		t.Fatal(torn, err)
	}
	defer a.Close()
	bad := sample(1)
	bad.ID = ""
	if err := a.Write(bad); err == nil {
		t.Error("an invalid trajectory is written")
	}
	if err := a.Write(sample(1)); err != nil {
		t.Errorf("after a refused one: %v", err)
	}
	if got, err := ReadAll(path); err != nil || len(got) != 1 {
		t.Errorf("%d trajectories, %v", len(got), err)
	}
}
