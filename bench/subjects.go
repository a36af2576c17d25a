package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/train"
)

// The variants that no training run makes.
const (
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
func subjectNames() []string {
	names := []string{variantSFT, variantTeacher}
	for _, v := range variants {
		names = append(names, v.name)
	}
	return names
}

// findSubjects lists what is to be evaluated: what the options name, or the SFT
// start and every run under --out.
func findSubjects(o evalOptions) ([]subject, error) {
	wanted := o.Variants
	if len(wanted) == 0 {
		wanted = []string{variantSFT}
		for _, v := range variants {
			wanted = append(wanted, v.name)
		}
	}
	var subjects []subject
	for _, variant := range wanted {
		found, err := subjectsOf(o, variant)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && len(o.Variants) > 0 {
			return nil, fmt.Errorf("no run of %s under %s: train it with bench train --variant %s --preset %s",
				variant, filepath.Join(o.runs(), o.Preset), variant, o.Preset)
		}
		subjects = append(subjects, found...)
	}
	trained := slices.ContainsFunc(subjects, func(s subject) bool { return s.variant != variantSFT && s.variant != variantTeacher })
	if asked := o.Seeds != "" || o.Runs != ""; asked && !trained {
		return nil, fmt.Errorf("no run under %s with seeds %q (empty: any)", filepath.Join(o.runs(), o.Preset), o.Seeds)
	}
	return subjects, nil
}

func subjectsOf(o evalOptions, variant string) ([]subject, error) {
	switch variant {
	case variantSFT:
		return []subject{presetSubject(o, variant, presets.Student)}, nil
	case variantTeacher:
		return []subject{presetSubject(o, variant, presets.Teacher)}, nil
	}
	if _, err := teacherOf(variant); err != nil {
		return nil, unknownName("variant", variant, subjectNames())
	}
	return trainedSubjects(o, variant)
}

// presetSubject is a checkpoint of the preset: the one made anew under --out if
// there is one, else the build's.
func presetSubject(o evalOptions, variant, role string) subject {
	fresh := pretrainFolder(o.runs(), o.Preset, 0)
	from := "builtin " + o.Preset + "/" + role
	if _, err := os.Stat(filepath.Join(fresh, pretrainFile)); err != nil {
		fresh = ""
	} else {
		from = filepath.Join(fresh, role)
	}
	return subject{variant: variant, from: from, load: func() (*model.Decoder, error) {
		return loadRole(o.Preset, role, fresh, "")
	}}
}

// trainedSubjects finds a variant's runs by their folders. A run that is not
// finished is evaluated at its latest checkpoint, and the user is told.
func trainedSubjects(o evalOptions, variant string) ([]subject, error) {
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
			found = append(found, subject{variant, int64(seed), from, func() (*model.Decoder, error) { return model.Load(from, model.Placement{}) }})
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
