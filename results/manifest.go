package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"
)

// ManifestSchema is the version of Manifest's fields.
const ManifestSchema = 1

// Manifest says how results came about.
type Manifest struct {
	Schema   int               `json:"schema"`
	Command  []string          `json:"command"`
	Config   any               `json:"config"`
	Commit   string            `json:"commit"` // "" when neither the binary nor git says it
	Dirty    bool              `json:"dirty"`  // uncommitted changes
	Data     map[string]string `json:"data"`   // name of an input -> its sha256
	Libtorch string            `json:"libtorch"`
	Machine  Machine           `json:"machine"`
	Started  time.Time         `json:"started"`
	Ended    time.Time         `json:"ended,omitzero"`
}

// NewManifest starts a manifest now: this process's command, its commit and its
// machine. libtorch is the version string, "" if none is used.
func NewManifest(config any, libtorch string) *Manifest {
	m := &Manifest{
		Schema: ManifestSchema, Command: os.Args, Config: config, Data: map[string]string{},
		Libtorch: libtorch, Machine: ThisMachine(), Started: time.Now().UTC(),
	}
	m.Commit, m.Dirty = commit()
	return m
}

// AddFile adds an input file under a name with its sha256.
func (m *Manifest) AddFile(name, path string) error {
	sum, err := HashFile(path)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	m.Data[name] = sum
	return nil
}

// Write notes the end and writes the manifest, whole or not at all.
func (m *Manifest) Write(path string) error {
	m.Ended = time.Now().UTC()
	return WriteJSON(path, m)
}

// HashFile is the sha256 of a file in hexadecimal.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// commit is what go build wrote into the binary, else what git says of the
// working folder (go run and go test write nothing).
func commit() (revision string, dirty bool) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				dirty = s.Value == "true"
			}
		}
	}
	if revision != "" {
		return revision, dirty
	}
	revision, err := git("rev-parse", "HEAD")
	if err != nil {
		return "", false
	}
	// An outcome folder is what the commit makes, not a change of it.
	changes, err := git("status", "--porcelain", "--", ":/", ":(exclude,top,glob)results/*/**")
	return revision, err != nil || changes != ""
}

func git(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(out)), err
}
