package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// The files of an outcome's folder.
const (
	RecordsFile  = "records.jsonl"
	TasksFile    = "tasks.jsonl.gz"
	CurvesFile   = "curves.jsonl"
	ManifestFile = "manifest.json"
	AuditFolder  = "audit"
	TablesFolder = "tables"
)

// Evidence is what the paper's tables are made of: the outcome's folder, read.
// Nothing in it was typed in by hand.
type Evidence struct {
	Rows     []TaskRow
	Curves   []Curve
	Audits   Audits
	Manifest Reproduction
}

// LoadEvidence reads an outcome's folder. Curves and audits may be lacking; task
// rows, the records of their means and the manifest may not. Records that are
// not the means of the task rows are an error.
func LoadEvidence(dir string) (*Evidence, error) {
	e := &Evidence{}
	var err error
	if e.Manifest, err = readReproduction(filepath.Join(dir, ManifestFile)); err != nil {
		return nil, err
	}
	if e.Rows, err = ReadJSONL[TaskRow](filepath.Join(dir, TasksFile)); err != nil {
		return nil, err
	}
	if err := e.checkRecords(filepath.Join(dir, RecordsFile)); err != nil {
		return nil, err
	}
	if e.Curves, err = ReadJSONL[Curve](filepath.Join(dir, CurvesFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	e.Audits, err = LoadAudits(filepath.Join(dir, AuditFolder))
	return e, err
}

// checkRecords holds a file of records to the means of the task rows.
func (e *Evidence) checkRecords(path string) error {
	got, err := ReadJSONL[Record](path)
	if err != nil {
		return err
	}
	want, err := Records(e.Rows)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d records, the task rows give %d", path, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			return fmt.Errorf("%s:%d: %s, seed %d, on %s is not the mean of its task rows", path, i+1, got[i].Variant, got[i].Seed, got[i].Horizon)
		}
	}
	return nil
}

// Write writes records, task rows, curves and manifest, each file whole or not
// at all. Audit records are files that the audit commands wrote, and are copied
// by the caller.
func (e *Evidence) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	records, err := Records(e.Rows)
	if err != nil {
		return err
	}
	return errors.Join(
		WriteJSONL(filepath.Join(dir, TasksFile), e.Rows...),
		WriteJSONL(filepath.Join(dir, RecordsFile), records...),
		WriteJSONL(filepath.Join(dir, CurvesFile), e.Curves...),
		WriteJSON(filepath.Join(dir, ManifestFile), e.Manifest),
	)
}

// Curve is one line of a run's metrics.jsonl: a step, or an evaluation.
type Curve struct {
	Variant string              `json:"variant"`
	Seed    int64               `json:"seed"`
	Metrics map[string]*float64 `json:"metrics"` // nil where a value was not finite
}

// Validate refuses a line without a variant or without metrics.
func (c Curve) Validate() error {
	if c.Variant == "" || len(c.Metrics) == 0 {
		return fmt.Errorf("curve: variant %q, %d metrics", c.Variant, len(c.Metrics))
	}
	return nil
}
