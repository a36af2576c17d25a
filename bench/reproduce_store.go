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
	"syscall"
	"time"

	"github.com/memopd/memopd-bench/results"
)

// partStore is the folder that keeps the parts' records, logs and locks.
type partStore struct{ dir string }

// path is a part's file with an ending: json is the record of a finished part, log
// what it printed, lock is held while it runs, tries.jsonl says when it was begun.
func (s partStore) path(name, ending string) string {
	return filepath.Join(s.dir, strings.ReplaceAll(name, "/", ".")+"."+ending)
}

// finished is a part's record, nil while it is not finished. A record that another
// command line made is an error.
func (s partStore) finished(p part) (*results.Part, error) {
	path := s.path(p.name, "json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r results.Part
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to do the part again", path, err)
	}
	if r.Name != p.name || !slices.Equal(withoutPlaces(r.Command), withoutPlaces(p.args)) {
		return nil, fmt.Errorf("%s was made by other settings:\n  bench %s\nnot\n  bench %s\ngive the same again, or another --out",
			path, strings.Join(r.Command, " "), strings.Join(p.args, " "))
	}
	return &r, nil
}

// placeFlags have a path as their value: it says where, not what.
var placeFlags = []string{"--out", "--data", "--runs", "--model", "--teacher", "--teacher-model", "--ledger", "--save-ledger", "--record", "--certificate"}

// withoutPlaces is a command line without the paths in it, so that a folder may be
// moved or named in another way.
func withoutPlaces(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range args {
		if i+1 < len(args) && slices.Contains(placeFlags, arg) {
			out[i+1] = ""
		}
	}
	return out
}

// try is a line of tries.jsonl: one begin of a part.
type try struct {
	Started time.Time `json:"started"`
	Commit  string    `json:"commit"`
	Spent   float64   `json:"spent"` // seconds of the tries before
}

// begin notes a new try. Whoever calls it holds the part's lock. A try that was
// killed lasted until it last wrote to its log.
func (s partStore) begin(name, commit string) (tries []try, err error) {
	path := s.path(name, "tries.jsonl")
	if _, err := results.RepairJSONL(path); err != nil {
		return nil, err
	}
	if tries, err = results.ReadJSONL[try](path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	now := try{Started: time.Now().UTC(), Commit: commit}
	if len(tries) > 0 {
		before := tries[len(tries)-1]
		now.Spent = before.Spent
		if info, err := os.Stat(s.path(name, "log")); err == nil {
			now.Spent += max(0, info.ModTime().Sub(before.Started).Seconds())
		}
	}
	return append(tries, now), results.AppendJSONL(path, now)
}

// finish writes the record of a part that has ended well.
func (s partStore) finish(p part, tries []try) error {
	last := tries[len(tries)-1]
	r := results.Part{
		Name: p.name, Command: p.args, Commit: last.Commit, Started: tries[0].Started, Ended: time.Now().UTC(),
		Seconds: last.Spent + time.Since(last.Started).Seconds(),
	}
	for _, t := range tries {
		if t.Commit != last.Commit && !slices.Contains(r.EarlierCommits, t.Commit) {
			r.EarlierCommits = append(r.EarlierCommits, t.Commit)
		}
	}
	return results.WriteJSON(s.path(p.name, "json"), r)
}

// begun says whether a part was ever begun.
func (s partStore) begun(name string) bool {
	_, err := os.Stat(s.path(name, "tries.jsonl"))
	return err == nil
}

// lock takes a part's lock; nil without an error when another process has it.
func (s partStore) lock(name string) (*os.File, error) {
	return flock(s.path(name, "lock"), syscall.LOCK_EX)
}

// gate takes the lock that parts which run alone hold against all others.
func (s partStore) gate(alone bool) (*os.File, error) {
	if alone {
		return flock(filepath.Join(s.dir, ".gate"), syscall.LOCK_EX)
	}
	return flock(filepath.Join(s.dir, ".gate"), syscall.LOCK_SH)
}
