package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/results"
)

// Runs of one variant may differ in what says where and which seed, and in nothing else;
// no run may have read other data.
func TestSettingsOfRunsAreHeldTogether(t *testing.T) {
	manifest := func(config, data, commit string) *results.Manifest {
		return &results.Manifest{Config: json.RawMessage(config), Data: map[string]string{"data": data}, Libtorch: "1", Commit: commit}
	}
	for _, c := range []struct {
		kind, variant string
		m             *results.Manifest
		want          string
	}{
		{"train", "ppo", manifest(`{"seed":1,"out":"b","steps":2,"checkpoint-every":9}`, "d", "b"), ""},
		{"train", "ppo", manifest(`{"seed":1,"out":"a","steps":3}`, "d", "a"), "train has other settings than seed 0: steps 2 and 3"},
		{"train", "ppo", manifest(`{"seed":1,"steps":2,"more":1}`, "d", "a"), "more none and 1"},
		{"train", "ppo", manifest(`{"seed":1}`, "d", "a"), "steps 2 and none"},
		{"train", "memopd", manifest(`{"seed":1,"steps":3}`, "d", "a"), ""},
		{"train", "memopd", manifest(`{"seed":1,"steps":3}`, "e", "a"), "its data (sha256 e)"},
		{"eval", "ppo", manifest(`{"seed":1,"steps":3}`, "d", "a"), ""},
	} {
		var s settingsCheck
		if err := s.add("train", reproducedRun{name: "ppo"}, manifest(`{"seed":0,"out":"a","steps":2}`, "d", "a")); err != nil {
			t.Fatal(err)
		}
		err := s.add(c.kind, reproducedRun{name: c.variant, seed: 1}, c.m)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s with %s: %v, want %q", c.kind, c.variant, c.m.Config, err, c.want)
		}
		if c.m.Commit == "b" && strings.Join(s.commits, " ") != "a b" {
			t.Errorf("commits %v", s.commits)
		}
	}
}
