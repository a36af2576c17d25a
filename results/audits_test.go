package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed records of bench audit are read as they stand.
func TestLoadAudits(t *testing.T) {
	a, err := LoadAudits("audit")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.RCE) != 3 || len(a.Teacher) != 3 || len(a.Masks) != 3 || len(a.Updates) != 2 || len(a.Speed) != 4 {
		t.Fatalf("%d rce, %d teacher, %d masks, %d updates, %d speed", len(a.RCE), len(a.Teacher), len(a.Masks), len(a.Updates), len(a.Speed))
	}
	r := a.RCE[0]
	if r.Set != "mini.q2" || r.Calls != 277 || len(r.Layouts) != 10 || r.Layouts[2].Name != "persistent" || *r.Layouts[2].Flips != 101 || r.Layouts[2].ByCall[5].Tokens != 75 {
		t.Errorf("rce %+v", r)
	}
	if last := r.Layouts[9]; last.Name != "recorded" || last.Flips != nil || last.GradError != nil {
		t.Errorf("what was not measured is there: %+v", last)
	}
	if s := a.Speed[2]; s.Set != "t8.libtorch-1.13" || s.Config.Shape != "memory" || s.Rows[0].Calls != 4 {
		t.Errorf("speed %+v", s)
	}
	if a, err := LoadAudits(filepath.Join(t.TempDir(), "absent")); err != nil || a.RCE != nil {
		t.Errorf("no folder: %+v, %v", a, err)
	}
}

func TestLoadAuditsRefuses(t *testing.T) {
	part := `{"calls":"all","tokens":1,"agreement":null,"p50":0,"p99":0,"max":0,"mean_kl":0,"flips":0,"more":1}`
	for text, want := range map[string]string{
		`{"result":[` + part + `]}`: "",
		`{}`:                        "result is missing",
		`{"result":[` + strings.Replace(part, `"flips":0,`, "", 1) + `]}`:            "result[0].flips is missing",
		`{"result":[` + strings.Replace(part, `"flips":0`, `"flips":null`, 1) + `]}`: "result[0].flips is null",
		`{"result":[` + strings.Replace(part, `"flips":0`, `"flips":"0"`, 1) + `]}`:  "flips",
		`{"result":null}`: "result is null",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "teacher.q2.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := LoadAudits(dir)
		if (want == "") != (err == nil) || err != nil && !(strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "teacher.q2.json")) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other.q2.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadAudits(dir); err == nil || !strings.Contains(err.Error(), "known are masks, rce") {
		t.Errorf("a file of no known kind: %v", err)
	}
}
