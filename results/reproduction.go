package results

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Reproduction is the manifest of an outcome: what made it, where and how long
// each part took.
type Reproduction struct {
	Schema   int             `json:"schema"`
	Preset   string          `json:"preset"`
	Commit   string          `json:"commit"` // of the program that put the outcome together
	Dirty    bool            `json:"dirty"`
	Libtorch string          `json:"libtorch"`
	Machine  Machine         `json:"machine"`
	Seeds    []int64         `json:"seeds"`
	Settings json.RawMessage `json:"settings,omitempty"` // of the command
	// FlattenedShare is that of the SFT which made the teacher.
	FlattenedShare *float64 `json:"flattened_share,omitempty"`
	Parts          []Part   `json:"parts"`
}

// Part is one command line of a reproduction that has ended well.
type Part struct {
	Name    string    `json:"name"`
	Command []string  `json:"command"`
	Commit  string    `json:"commit"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Seconds float64   `json:"seconds"` // by the clock, of all tries together
	// EarlierCommits are other commits whose stopped tries it went on from.
	EarlierCommits []string `json:"earlier_commits,omitempty"`
}

// Validate refuses a part without name, command or commit, or of negative length.
func (p Part) Validate() error {
	if p.Name == "" || len(p.Command) == 0 || p.Commit == "" || p.Seconds < 0 || p.Ended.Before(p.Started) {
		return fmt.Errorf("part %q: command %q, commit %q, %v seconds from %v to %v", p.Name, p.Command, p.Commit, p.Seconds, p.Started, p.Ended)
	}
	return nil
}

func readReproduction(path string) (Reproduction, error) {
	var r Reproduction
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err = decode(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if r.Schema != ManifestSchema {
		return r, fmt.Errorf("%s: schema %d, this program knows %d", path, r.Schema, ManifestSchema)
	}
	for _, p := range r.Parts {
		if err := p.Validate(); err != nil {
			return r, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, nil
}
