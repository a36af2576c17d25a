package results

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// evidenceFolder holds invented task rows and real audit records, in the form of
// a reproduction's outcome.
const evidenceFolder = "testdata/evidence"

// inventedEvidence is what -update writes there: values by formula, nothing measured.
func inventedEvidence(t *testing.T) *Evidence {
	e := &Evidence{Manifest: Reproduction{
		Schema: ManifestSchema, Preset: "invented", Commit: "0000000", Libtorch: "none", Machine: Machine{CPU: "none", Cores: 1},
		Seeds: []int64{0, 1, 2, 3, 4}, Settings: json.RawMessage(`{}`),
		Parts: []Part{{"invented", []string{"none"}, "0000000", time.Unix(0, 0).UTC(), time.Unix(1, 0).UTC(), 1, nil}},
	}}
	for h, horizon := range []string{"wikirag", "q2", "q8", "q16"} {
		for v, variant := range []string{"memopd-topk", "memopd", "persistent", "ppo", "sft", "ppo-mem1", "teacher"} {
			for seed := range int64(5) {
				if (variant == "sft" || variant == "teacher") && seed > 0 || variant == "memopd-topk" && seed > 2 || variant == "ppo-mem1" && horizon != "q2" {
					continue
				}
				e.Rows = append(e.Rows, inventedRows(h, v, horizon, variant, seed)...)
			}
		}
	}
	for step := range 3 {
		x, y := float64(step), math.Round(1000/(1+float64(step)))/1000
		e.Curves = append(e.Curves, Curve{"ppo", 0, map[string]*float64{"training/global_step": &x, "dev/f1": &y, "rce/p99": nil}})
	}
	return e
}

func inventedRows(h, v int, horizon, variant string, seed int64) []TaskRow {
	var rows []TaskRow
	for task := range 6 {
		mix := float64((7*h+11*v+13*int(seed)+17*task)%9) / 8
		score := math.Round(1000*(0.2+0.04*float64(7-v)+0.3*mix-0.04*float64(h))) / 1000
		r := taskRow(variant, seed, horizon, fmt.Sprintf("%s/%d", horizon, task), max(0, score-0.1), score, float64(100*(1+h))+10*mix+float64(v), 1+0.25*mix)
		if task > 3 { // as where only some tasks are timed
			r.InferenceSeconds = nil
		}
		rows = append(rows, r)
	}
	return rows
}

// Tables that stand in the repository are made of the records beside them, to the byte.
func TestCommittedTables(t *testing.T) {
	if *update {
		updateEvidence(t)
	}
	manifests, err := filepath.Glob(filepath.Join("*", ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, m := range append(manifests, filepath.Join(evidenceFolder, ManifestFile)) {
		dir := filepath.Dir(m)
		if _, err := os.Stat(filepath.Join(dir, TablesFolder)); os.IsNotExist(err) {
			continue
		}
		tested++
		e, err := LoadEvidence(dir)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		tables, err := PaperTables(e)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		different, err := DifferentTables(filepath.Join(dir, TablesFolder), tables)
		if err != nil || len(different) > 0 {
			t.Errorf("%s: %s are not what the records give: bench tables %s (%v)", dir, strings.Join(different, ", "), dir, err)
		}
	}
	if tested == 0 {
		t.Error("no folder has tables")
	}
}

// updateEvidence writes the invented evidence and its tables anew.
func updateEvidence(t *testing.T) {
	e := inventedEvidence(t)
	err := e.Write(evidenceFolder)
	if err == nil {
		err = os.MkdirAll(filepath.Join(evidenceFolder, AuditFolder), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{
		"rce.q2.json": "mini.q2.rce.json", "teacher.q2.json": "mini.q2.teacher.json", "masks.q2.json": "mini.q2.masks.json",
		"updates.q2.json": "mini.q2.updates.json", "speed.json": "speed.t8.libtorch-2.15.json",
	} {
		copyAudit(t, filepath.Join(AuditFolder, from), filepath.Join(evidenceFolder, AuditFolder, name))
	}
	if e, err = LoadEvidence(evidenceFolder); err != nil {
		t.Fatal(err)
	}
	tables, err := PaperTables(e)
	if err == nil {
		err = WriteTables(filepath.Join(evidenceFolder, TablesFolder), tables)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyAudit copies a record without its manifest and its examples of failures.
func copyAudit(t *testing.T, from, to string) {
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]json.RawMessage
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	delete(record, "manifest")
	if layouts := record["layouts"]; layouts != nil {
		var list []map[string]json.RawMessage
		if err := json.Unmarshal(layouts, &list); err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			delete(l, "failures")
			delete(l, "reasons")
		}
		if record["layouts"], err = json.Marshal(list); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteJSON(to, record); err != nil {
		t.Fatal(err)
	}
}
