package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/memopd/memopd-bench/results"
)

// trainRun is run.json: what a run's folder holds, and how it came about.
type trainRun struct {
	Schema   int               `json:"schema"`
	Variant  string            `json:"variant"`
	Name     string            `json:"name,omitempty"` // of the folder, where it is not the variant's
	Seed     uint64            `json:"seed"`
	Preset   string            `json:"preset"`
	Finished bool              `json:"finished"`
	Failure  string            `json:"failure,omitempty"` // the error that the run ended with, where it was no interruption
	Manifest *results.Manifest `json:"manifest"`
}

const runFile = "run.json"

// finish says in run.json that all is done.
func (r *trainRun) finish(dir string) error {
	r.Finished, r.Manifest.Ended = true, time.Now().UTC()
	return results.WriteJSON(filepath.Join(dir, runFile), r)
}

// failed keeps in run.json what a run ended with, unless that is an interruption.
func (r *trainRun) failed(dir string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	r.Failure = err.Error()
	return errors.Join(err, results.WriteJSON(filepath.Join(dir, runFile), r))
}

// readRun reads the run.json of a folder.
func readRun(dir string) (*trainRun, error) {
	data, err := os.ReadFile(filepath.Join(dir, runFile))
	if err != nil {
		return nil, err
	}
	var r trainRun
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, runFile), err)
	}
	if r.Manifest == nil {
		return nil, fmt.Errorf("%s: has no manifest", filepath.Join(dir, runFile))
	}
	return &r, nil
}
