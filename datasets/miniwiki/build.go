package miniwiki

import (
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/memopd/memopd-bench/datasets"
)

// BuildOptions says which files [Build] makes.
type BuildOptions struct {
	Config   Config `json:"config"`
	Horizons []int  `json:"questions_per_task"`

	// TasksPerFile is the number of tasks in each file; 0 takes [DefaultTasks].
	TasksPerFile int `json:"tasks_per_file"`

	Prompt func(datasets.Task) string `json:"-"` // of the prompt column; nil: [datasets.DefaultPrompt]
}

// Build writes a wiki into dir: the documents of all worlds
// ([datasets.DocumentsName]), a file of tasks a split and horizon
// ([datasets.TasksName]), and the manifest, last. Training draws its tasks from
// a [Sampler] and needs none of the train files; they are there for others.
func Build(dir string, o BuildOptions) (*datasets.Manifest, error) {
	if len(o.Horizons) == 0 {
		return nil, errors.New("miniwiki: no number of questions a task")
	}
	wiki, err := New(o.Config)
	if err != nil {
		return nil, err
	}
	if err := datasets.Begin(dir); err != nil {
		return nil, err
	}
	settings, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	m := &datasets.Manifest{Schema: datasets.ManifestSchema, Kind: "miniwiki", Seed: o.Config.Seed, Settings: settings}
	sum, err := wiki.WriteDocuments(filepath.Join(dir, datasets.DocumentsName))
	if err != nil {
		return nil, err
	}
	m.AddDocuments(sum)
	for _, split := range datasets.Splits {
		for _, n := range o.Horizons {
			count := o.TasksPerFile
			if count == 0 {
				count = DefaultTasks(n)
			}
			tasks, err := wiki.Compose(split, n, count)
			if err != nil {
				return nil, err
			}
			sum, err := datasets.WriteTasks(filepath.Join(dir, datasets.TasksName(split, n)), split, tasks, o.Prompt)
			if err != nil {
				return nil, err
			}
			m.AddTasks(sum, split, n)
		}
	}
	return m, m.Write(dir)
}

// WriteDocuments writes the documents of all worlds as JSONL, gzipped when the
// name ends in ".gz".
func (k *Wiki) WriteDocuments(path string) (datasets.FileSum, error) {
	w, err := datasets.NewDocumentWriter(path)
	if err != nil {
		return datasets.FileSum{}, err
	}
	for d := range k.Documents() {
		if err := w.Write(d); err != nil {
			w.Abort()
			return datasets.FileSum{}, err
		}
	}
	return w.Close()
}
