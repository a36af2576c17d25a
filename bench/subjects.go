package main

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

	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/train"
)

// The variants that no training run makes.
const (
	variantBase    = "base"    // the published model that SFT began with
	variantSFT     = "sft"     // the start of all runs
	variantTeacher = "teacher" // the preset's teacher
)

// runs is the folder of the training runs.
func (o evalOptions) runs() string {
	if o.Runs != "" {
		return o.Runs
	}
	return o.Out
}

// subjectNames lists all variants that can be evaluated.
func subjectNames(preset string) []string {
	names := []string{variantSFT, variantTeacher}
	if !onWiki(preset) {
		names = append([]string{variantBase}, names...)
	}
	return append(names, variantNames()...)
}

// known lists all that can be evaluated: variants, and runs under names of their own.
func (o evalOptions) known() []string {
	return append(subjectNames(o.Preset), namedRuns(filepath.Join(o.runs(), o.Preset))...)
}

// findSubjects lists what is to be evaluated: what the options name, or the
// start and every run under --out; on real questions also the model that SFT
// begins with.
func findSubjects(o evalOptions, loads loader) ([]subject, error) {
	wanted := o.Variants
	if len(wanted) == 0 {
		for _, name := range o.known() {
			if name != variantTeacher {
				wanted = append(wanted, name)
			}
		}
	}
	var subjects []subject
	for _, variant := range wanted {
		found, err := subjectsOf(o, variant, loads)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && len(o.Variants) > 0 {
			return nil, fmt.Errorf("no run of %s under %s: train it with bench train --variant %s --preset %s",
				variant, filepath.Join(o.runs(), o.Preset), variant, o.Preset)
		}
		subjects = append(subjects, found...)
	}
	trained := slices.ContainsFunc(subjects, func(s subject) bool {
		return !slices.Contains([]string{variantBase, variantSFT, variantTeacher}, s.variant)
	})
	if asked := o.Seeds != "" || o.Runs != ""; asked && !trained && len(o.Variants) == 0 {
		return nil, fmt.Errorf("no run under %s with seeds %q (empty: any)", filepath.Join(o.runs(), o.Preset), o.Seeds)
	}
	return subjects, nil
}

func subjectsOf(o evalOptions, variant string, loads loader) ([]subject, error) {
	switch {
	case variant == variantBase && !onWiki(o.Preset):
		path, err := locateModel(baseModel(o.Preset))
		if err != nil {
			return nil, o.absent(err)
		}
		return []subject{{variant: variant, from: path, open: o.sampled(path, loads.at(path))}}, nil
	case variant == variantSFT:
		return presetSubject(o, variant, presets.Student, loads)
	case variant == variantTeacher:
		return presetSubject(o, variant, presets.Teacher, loads)
	}
	if known := o.known(); !slices.Contains(known, variant) {
		return nil, unknownName("variant", variant, known)
	}
	return trainedSubjects(o, variant, loads)
}

// absent is what becomes of a model that is not there: an error if it was asked
// for, else a note.
func (o evalOptions) absent(err error) error {
	if len(o.Variants) > 0 {
		return err
	}
	note("left out: %v", err)
	return nil
}

// presetSubject is a checkpoint of the preset: the one made anew under --out if
// there is one, else the build's.
func presetSubject(o evalOptions, variant, role string, loads loader) ([]subject, error) {
	fresh := pretrainFolder(o.runs(), o.Preset, 0)
	if _, err := os.Stat(filepath.Join(fresh, pretrainFile)); err == nil {
		path := filepath.Join(fresh, role)
		return []subject{{variant: variant, from: path, update: recordedUpdate(fresh), open: o.sampled(path, loads.at(path))}}, nil
	}
	if !onWiki(o.Preset) {
		return nil, o.absent(fmt.Errorf("no %s of preset %s under %s: make it with bench pretrain --preset %s", role, o.Preset, fresh, o.Preset))
	}
	from := "builtin " + o.Preset + "/" + role
	return []subject{{variant: variant, from: from, open: o.sampled(from, loads.builtin(role))}}, nil
}

// trainedSubjects finds a variant's runs by their folders. A run that is not
// finished is evaluated at its latest checkpoint, and the user is told.
func trainedSubjects(o evalOptions, variant string, loads loader) ([]subject, error) {
	var seeds []int
	if o.Seeds != "" {
		var err error
		if seeds, err = parseSeeds(o.Seeds); err != nil {
			return nil, err
		}
	}
	parent := filepath.Join(o.runs(), o.Preset, variant)
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var found []subject
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "seed-")
		seed, err := strconv.Atoi(digits)
		if !ok || err != nil || seeds != nil && !slices.Contains(seeds, seed) {
			continue
		}
		from, err := trainedModel(filepath.Join(parent, e.Name()))
		if err != nil {
			return nil, err
		}
		if from != "" {
			found = append(found, subject{
				variant: variant, seed: int64(seed), from: from, open: o.sampled(from, loads.at(from)),
				update: recordedUpdate(filepath.Join(parent, e.Name())),
			})
		}
	}
	slices.SortFunc(found, func(a, b subject) int { return int(a.seed - b.seed) })
	return found, nil
}

// trainedModel is the folder of a run's model, "" when it has none yet.
func trainedModel(dir string) (string, error) {
	run, err := readRun(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if run.Finished {
		return filepath.Join(dir, modelFolder), nil
	}
	checkpoint, step, err := train.LatestCheckpoint(dir)
	if errors.Is(err, train.ErrNoCheckpoint) {
		note("%s: not finished, no checkpoint yet; left out", dir)
		return "", nil
	}
	if err != nil {
		return "", err
	}
	note("%s: not finished; evaluated as it is after step %d", dir, step)
	return filepath.Join(checkpoint, "actor"), nil
}

// recordedUpdate is the context update that the run or the pretraining in a folder
// was made with; "" where none is recorded.
func recordedUpdate(dir string) string {
	for _, name := range []string{runFile, pretrainFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		var made struct {
			Manifest struct {
				Config struct {
					Update string `json:"update"`
				} `json:"config"`
			} `json:"manifest"`
		}
		if json.Unmarshal(data, &made) == nil {
			return made.Manifest.Config.Update
		}
	}
	return ""
}
