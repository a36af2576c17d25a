package retriever

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// buildState is what a stopped build leaves for the one that resumes it.
type buildState struct {
	FormatVersion     int         `json:"format_version"`
	Scoring           Scoring     `json:"scoring"`
	Analyser          Analyser    `json:"analyser"`
	FoldASCII         bool        `json:"fold_ascii"`
	DocumentsPerShard int         `json:"documents_per_shard"`
	Files             []stateFile `json:"files"`
	Shards            []Shard     `json:"shards"` // those that are whole
}

// stateFile tells an input file that changed from one that did not.
type stateFile struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Modified int64  `json:"modified"` // Unix nanoseconds
}

const stateName = "build.json"

func newBuildState(o BuildOptions, c *Corpus) buildState {
	return buildState{
		FormatVersion: FormatVersion, Scoring: o.Scoring, Analyser: o.Analyser, FoldASCII: o.FoldASCII,
		DocumentsPerShard: o.DocumentsPerShard, Files: c.files,
	}
}

// readBuildState reads what a stopped build left; nil if nothing.
func readBuildState(dir string) (*buildState, error) {
	raw, err := os.ReadFile(filepath.Join(dir, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s buildState
	if json.Unmarshal(raw, &s) != nil {
		return nil, nil // torn: nothing that could be resumed
	}
	return &s, nil
}

// write replaces the file as a whole.
func (s *buildState) write(dir string) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	part := filepath.Join(dir, stateName+".part")
	if err := errors.Join(remove(part), writeSynced(part, raw)); err != nil {
		return err
	}
	return errors.Join(os.Rename(part, filepath.Join(dir, stateName)), syncDir(dir))
}

// remove removes a file that may be there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sameAs says what a resumed build does otherwise than the one that was stopped.
func (s *buildState) sameAs(now *buildState) error {
	was := *s
	was.Shards = now.Shards
	if reflect.DeepEqual(was, *now) {
		return nil
	}
	what := "other settings"
	if !reflect.DeepEqual(was.Files, now.Files) {
		what = "other input files, or files that were changed"
	}
	return fmt.Errorf("%w: the build that was stopped had %s; replace it instead of resuming", ErrHalfBuilt, what)
}

func (s *buildState) has(name string) bool {
	for _, shard := range s.Shards {
		if shard.Name == name {
			return true
		}
	}
	return false
}

// documents is how many the whole shards hold.
func (s *buildState) documents() int {
	n := 0
	for _, shard := range s.Shards {
		n += shard.Documents
	}
	return n
}
