package results

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func someEvidence() *Evidence {
	one := 1.0
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Evidence{
		Rows:   evaluation(),
		Curves: []Curve{{"ppo", 1, map[string]*float64{"training/global_step": &one, "rce/p99": nil}}},
		Manifest: Reproduction{
			Schema: ManifestSchema, Preset: "mini", Commit: "abc", Seeds: []int64{0, 1}, Settings: json.RawMessage(`{}`),
			Parts: []Part{{"train/ppo/seed-0", []string{"train", "--seed", "0"}, "abc", at, at.Add(time.Minute), 60, []string{"aba"}}},
		},
	}
}

func TestEvidence(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	e := someEvidence()
	if err := e.Write(dir); err != nil {
		t.Fatal(err)
	}
	back, err := LoadEvidence(dir)
	if err != nil || !reflect.DeepEqual(back, e) {
		t.Fatalf("read %+v, %v\nwrote %+v", back, err, e)
	}
	before, _ := os.ReadFile(filepath.Join(dir, TasksFile))
	if err := e.Write(dir); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, TasksFile)); string(after) != string(before) || len(after) == 0 {
		t.Error("the same rows give other bytes")
	}
}

func TestLoadEvidenceRefuses(t *testing.T) {
	for _, c := range []struct {
		file, old, new, want string
	}{
		{RecordsFile, `"em":0.25`, `"em":0.26`, ":1: ppo, seed 0, on q2 is not the mean of its task rows"},
		{ManifestFile, `"schema": 1`, `"schema": 2`, "schema 2"},
		{ManifestFile, `"preset"`, `"present"`, "present"},
		{ManifestFile, `"commit": "abc",` + "\n      \"started\"", `"commit": "",` + "\n      \"started\"", `part "train/ppo/seed-0"`},
		{CurvesFile, `"ppo"`, `""`, ":1: curve"},
	} {
		dir := t.TempDir()
		if err := someEvidence().Write(dir); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, c.file)
		data, _ := os.ReadFile(path)
		changed := strings.Replace(string(data), c.old, c.new, 1)
		if changed == string(data) {
			t.Fatalf("%s holds no %s:\n%s", c.file, c.old, data)
		}
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadEvidence(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %s", c.file, c.new, err, c.want)
		}
	}
	for file, optional := range map[string]bool{RecordsFile: false, TasksFile: false, ManifestFile: false, CurvesFile: true} {
		dir := t.TempDir()
		if err := someEvidence().Write(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadEvidence(dir); (err == nil) != optional {
			t.Errorf("without %s: %v", file, err)
		}
	}
}
