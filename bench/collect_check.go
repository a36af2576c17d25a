package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

// settingsCheck holds the settings of runs to each other: those of one variant may
// differ in the seed alone, and all must have read the same data by the same libtorch.
type settingsCheck struct {
	first    map[string]checkedRun // by kind and variant
	data     string                // hash of the data, of the first run
	libtorch string
	commits  []string
}

type checkedRun struct {
	run      reproducedRun
	settings map[string]string
}

// seedSettings are settings that differ between the runs of a variant, or say where and
// how they ran.
var seedSettings = append([]string{"seed", "runs"}, freeSettings...)

// add compares a run's manifest with those before it.
func (s *settingsCheck) add(kind string, run reproducedRun, m *results.Manifest) error {
	now, err := settings(m.Config)
	if err != nil {
		return err
	}
	for _, name := range seedSettings {
		if kind != "train" && name == "seed" {
			continue // an evaluation's seed of sampling
		}
		delete(now, name)
	}
	if s.first == nil {
		s.first, s.data, s.libtorch = map[string]checkedRun{}, m.Data["data"], m.Libtorch
	}
	if m.Data["data"] != s.data {
		return fmt.Errorf("%s: its data (sha256 %s) are not those of the runs before it (%s)", kind, m.Data["data"], s.data)
	}
	if m.Libtorch != s.libtorch {
		return fmt.Errorf("%s: libtorch %s, the runs before it had %s", kind, m.Libtorch, s.libtorch)
	}
	if commit := commitName(m); !slices.Contains(s.commits, commit) {
		s.commits = append(s.commits, commit)
	}
	key := kind + "/" + run.name
	first, ok := s.first[key]
	if !ok {
		s.first[key] = checkedRun{run, now}
		return nil
	}
	if differences := settingsDiffer(first.settings, now); differences != "" {
		return fmt.Errorf("%s has other settings than seed %d: %s", kind, first.run.seed, differences)
	}
	return nil
}

// settingsDiffer lists how two sets of settings differ, "" where they do not.
func settingsDiffer(a, b map[string]string) string {
	var differences []string
	for name, was := range a {
		if now, ok := b[name]; !ok || now != was {
			differences = append(differences, fmt.Sprintf("%s %s and %s", name, was, orNone(b, name)))
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			differences = append(differences, fmt.Sprintf("%s none and %s", name, b[name]))
		}
	}
	slices.Sort(differences)
	return strings.Join(differences, "; ")
}

func orNone(m map[string]string, name string) string {
	if v, ok := m[name]; ok {
		return v
	}
	return "none"
}

// all are the runs' settings by kind and variant, for the manifest.
func (s *settingsCheck) all() map[string]map[string]json.RawMessage {
	out := map[string]map[string]json.RawMessage{}
	for key, first := range s.first {
		if !strings.HasPrefix(key, "train/") && !strings.HasSuffix(key, "/"+variantSFT) {
			continue // every evaluation is like the start's
		}
		values := map[string]json.RawMessage{}
		for name, value := range first.settings {
			values[name] = json.RawMessage(value)
		}
		out[key] = values
	}
	return out
}
