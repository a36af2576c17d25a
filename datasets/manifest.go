package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ManifestName is the name of the manifest in a folder of made data.
const ManifestName = "manifest.json"

// ManifestSchema is written into each manifest.
const ManifestSchema = 1

// Manifest says what a folder of data was made from and what it holds. It holds
// no time, so making the same data again gives the same manifest.
type Manifest struct {
	Schema   int             `json:"schema"`
	Kind     string          `json:"kind"` // "miniwiki" or "composed"
	Seed     uint64          `json:"seed"`
	Settings json.RawMessage `json:"settings"`
	Inputs   []InputSum      `json:"inputs"`
	Refused  *Refused        `json:"refused,omitempty"`
	Outputs  []Output        `json:"outputs"`
}

// InputSum says what was read of an input file.
type InputSum struct {
	FileSum
	Format    Format `json:"format"`
	Source    string `json:"source,omitempty"`
	Split     Split  `json:"split,omitempty"`
	Questions int    `json:"questions"`
	Skipped   int    `json:"skipped_bad_records"`
}

// Output says what a file of the folder holds; its path is the name in it.
type Output struct {
	FileSum
	Split    Split `json:"split,omitempty"`
	Horizon  int   `json:"questions_per_task,omitempty"`
	LeftOver int   `json:"questions_left_over,omitempty"` // questions of the split that no task of the file has
}

// TasksName is the name of the file with a split's tasks of n questions.
func TasksName(split Split, n int) string { return fmt.Sprintf("%s-%s.parquet", split, HorizonName(n)) }

// DocumentsName is the name of the corpus in a folder of made data.
const DocumentsName = "documents.jsonl.gz"

// add records a file of the folder.
func (m *Manifest) add(sum FileSum, split Split, horizon, left int) {
	sum.Path = filepath.Base(sum.Path)
	m.Outputs = append(m.Outputs, Output{FileSum: sum, Split: split, Horizon: horizon, LeftOver: left})
}

// AddDocuments records the folder's corpus.
func (m *Manifest) AddDocuments(sum FileSum) { m.add(sum, "", 0, 0) }

// AddTasks records a file of tasks with n questions each.
func (m *Manifest) AddTasks(sum FileSum, split Split, n int) { m.add(sum, split, n, 0) }

// Begin makes a folder ready for new data: it is made if need be, and an old
// manifest goes, so that a folder has one only when it is complete.
func Begin(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, ManifestName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Write puts the manifest into the folder, the last file of it.
func (m *Manifest) Write(dir string) error {
	out, err := createAtomic(filepath.Join(dir, ManifestName))
	if err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		out.abort()
		return fmt.Errorf("%s: %w", out.path, err)
	}
	_, err = out.commit(1)
	return err
}

// ReadManifest reads the manifest of a folder. An error that is
// [fs.ErrNotExist] means that the folder is not there or not complete.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.Schema != ManifestSchema {
		return nil, fmt.Errorf("%s: schema %d, want %d", path, m.Schema, ManifestSchema)
	}
	return m, nil
}

// Verify reads all files of the folder and reports the first that is not what
// the manifest says.
func (m *Manifest) Verify(dir string) error {
	for _, o := range m.Outputs {
		sum, err := SumFile(filepath.Join(dir, o.Path))
		if err != nil {
			return err
		}
		if sum.SHA256 != o.SHA256 {
			return fmt.Errorf("%s: sha256 is %s, the manifest says %s", sum.Path, sum.SHA256, o.SHA256)
		}
	}
	return nil
}
