package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/train"
)

// freeSettings are those that a run can be taken up with another value of: they
// say where and how, not what.
var freeSettings = []string{
	"out", "data", "threads", "seeds", "resume", "json", "eval-every", "checkpoint-every", "checkpoint-keep-every",
	"bundle-every", "bundle-weights", "retriever-attempts", "tensorboard",
}

// existing looks at what a run's folder holds and reports whether it is
// finished. It is an error when there is something that --resume has not been
// given for, or that other settings have made.
func (o trainOptions) existing(dir string) (done bool, err error) {
	run, err := readRun(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w; remove the folder, or choose another with --out", err)
	}
	_, step, err := train.LatestCheckpoint(dir)
	if errors.Is(err, train.ErrNoCheckpoint) && !run.Finished {
		return false, nil // stopped before there was anything to lose
	}
	if err != nil && !run.Finished {
		return false, err
	}
	if err := o.sameSettings(run); err != nil {
		return false, fmt.Errorf("%s holds a run with other settings: %w; choose another folder with --out", dir, err)
	}
	if run.Finished {
		_, err := os.Stat(filepath.Join(dir, modelFolder, "config.json"))
		if err == nil {
			return true, nil
		}
		if !o.Resume {
			return false, fmt.Errorf("%s is finished, but its model is gone: --resume makes it again from the last checkpoint", dir)
		}
		return false, nil
	}
	if !o.Resume {
		return false, fmt.Errorf("%s holds an unfinished run: --resume goes on with it, or choose another folder with --out", dir)
	}
	if step > o.Steps {
		return false, fmt.Errorf("%s has %d steps done, more than --steps %d", dir, step, o.Steps)
	}
	return false, nil
}

// sameSettings compares the settings with those that a run was begun with. An
// unfinished run may be taken further than it was meant to go.
func (o trainOptions) sameSettings(run *trainRun) error {
	differences, err := changedSettings(run.Manifest.Config, &o, func(name string) bool {
		return slices.Contains(freeSettings, name) || name == "steps" && !run.Finished
	})
	if err == nil && differences != "" {
		err = errors.New(differences)
	}
	return err
}

// settingsSince are settings that were not there at first, with what runs then did.
var settingsSince = map[string]string{
	"update": `"` + defaultUpdate + `"`, "retriever": `""`,
	"teacher-estimator": `"` + train.EstimatorFull + `"`, "layout": `"` + train.LayoutAligned + `"`,
}

// changedSettings lists how options differ from an earlier run's, but for those
// that are free to; "" where they do not. A setting that was not there then is
// passed over, unless it is known what it would have been.
func changedSettings(earlier, options any, free func(name string) bool) (string, error) {
	before, err := settings(earlier)
	if err != nil {
		return "", err
	}
	now, err := settings(json.RawMessage(mustConfigJSON(options)))
	if err != nil {
		return "", err
	}
	var differences []string
	for name, value := range settingsSince {
		if _, ok := before[name]; !ok {
			before[name] = value
		}
	}
	for _, f := range fields(options) {
		if was, ok := before[f.name]; ok && was != now[f.name] && !free(f.name) {
			differences = append(differences, fmt.Sprintf("%s was %s, is %s", f.name, was, now[f.name]))
		}
	}
	return strings.Join(differences, "; "), nil
}

// settings are a configuration's values as JSON text, by name.
func settings(config any) (map[string]string, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("the run's settings: %w", err)
	}
	out := make(map[string]string, len(object))
	for name, value := range object {
		out[name] = string(value)
	}
	return out, nil
}
