package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A checkpoint is a folder DIR/checkpoints/step-NNNNNN. It is written under a
// temporary name, flushed to disk and renamed: a folder with the final name is whole.
//
//	actor/                 the trained decoder in Hugging Face's layout
//	critic.safetensors     the critic's weights (PPO)
//	optimizer*.safetensors the moments of AdamW
//	state.json             counters, and the configuration that they belong to

// CheckpointsFolder is the folder of a run that holds its checkpoints.
const CheckpointsFolder = "checkpoints"

// checkpointSchema is written into state.json; it changes with the layout.
const checkpointSchema = 1

const (
	checkpointPrefix = "step-"
	temporaryPrefix  = ".tmp-"
)

// ErrNoCheckpoint says that a folder holds nothing to resume from.
var ErrNoCheckpoint = errors.New("no checkpoint")

// CheckpointPath is the folder of a step's checkpoint within a run's folder.
func CheckpointPath(run string, step int) string {
	return filepath.Join(run, CheckpointsFolder, fmt.Sprintf("%s%06d", checkpointPrefix, step))
}

// LatestCheckpoint finds the checkpoint of the highest step in a run's folder.
// The error wraps ErrNoCheckpoint when there is none.
func LatestCheckpoint(run string) (path string, step int, err error) {
	steps, err := checkpointSteps(run)
	if err != nil {
		return "", 0, err
	}
	if len(steps) == 0 {
		return "", 0, fmt.Errorf("%s: %w", filepath.Join(run, CheckpointsFolder), ErrNoCheckpoint)
	}
	step = steps[len(steps)-1]
	return CheckpointPath(run, step), step, nil
}

// checkpointSteps lists the steps with a checkpoint, in rising order.
func checkpointSteps(run string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Join(run, CheckpointsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var steps []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), checkpointPrefix)
		if step, err := strconv.Atoi(digits); ok && err == nil && e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// writeFolder makes a folder: fill writes the files into the temporary folder that
// it is given, which takes the final name once all is on disk. A folder of that
// name is replaced. Unless everything succeeds, the final name stays as it was.
func writeFolder(final string, fill func(dir string) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", final, err)
		}
	}()
	parent := filepath.Dir(final)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(parent, temporaryPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	if err := fill(temporary); err != nil {
		return err
	}
	if err := syncTree(temporary); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	if err := os.Rename(temporary, final); err != nil {
		return err
	}
	return syncPath(parent)
}

// pruneCheckpoints removes all checkpoints but the latest and those of every
// keepEvery-th step, and what an interrupted write left behind.
func pruneCheckpoints(run string, keepEvery int) error {
	steps, err := checkpointSteps(run)
	if err != nil {
		return err
	}
	for i, step := range steps {
		if i == len(steps)-1 || keepEvery > 0 && step%keepEvery == 0 {
			continue
		}
		if err := os.RemoveAll(CheckpointPath(run, step)); err != nil {
			return fmt.Errorf("remove old checkpoint: %w", err)
		}
	}
	left, err := filepath.Glob(filepath.Join(run, CheckpointsFolder, temporaryPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove unfinished checkpoint: %w", err)
		}
	}
	return nil
}

// writeFileAtomic writes a file under a temporary name, flushes and renames it.
func writeFileAtomic(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), temporaryPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFileAtomic(path, append(data, '\n'))
}

func readJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// syncTree flushes every file and folder below root to disk.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sameConfig compares the configuration of a checkpoint with that of the run
// that resumes it. Fields named in free may differ: they do not change what was
// done so far.
func sameConfig(saved, current any, free ...string) error {
	a, err := fields(saved)
	if err != nil {
		return err
	}
	b, err := fields(current)
	if err != nil {
		return err
	}
	var differ []string
	for name, value := range b {
		if !slices.Contains(free, name) && string(a[name]) != string(value) {
			differ = append(differ, fmt.Sprintf("%s was %s, is %s", name, a[name], value))
		}
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return fmt.Errorf("resume with other settings: %s", strings.Join(differ, "; "))
}

func fields(config any) (map[string]json.RawMessage, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	return m, json.Unmarshal(data, &m)
}
