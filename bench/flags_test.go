package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

type inner struct {
	Width int `flag:"width" help:"an inner field"`
}

type sample struct {
	Name  string        `flag:"name" help:"a text"`
	Rate  float64       `flag:"rate" help:"a number"`
	Count int           `flag:"count" help:"a whole number"`
	Seed  uint64        `flag:"seed" help:"a seed"`
	On    bool          `flag:"on" help:"a switch"`
	Steps []int         `flag:"steps" help:"a list"`
	Wait  time.Duration `flag:"wait" help:"a time"`
	inner
}

func bound(t *testing.T, args ...string) (*pflag.FlagSet, *sample) {
	t.Helper()
	c := &sample{Name: "a", Count: 1, Steps: []int{1, 2}}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	bind(fs, c)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return fs, c
}

func TestFlagsGoBeforeFileGoBeforeDefaults(t *testing.T) {
	fs, c := bound(t, "--rate=.5", "--steps=7,8", "--on")
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte(`{"rate": 3, "count": 4, "width": 9, "steps": [5]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	defaults := func() error {
		*c = sample{Name: "preset", Count: 2, Wait: time.Second}
		return nil
	}
	if err := resolve(fs, c, file, defaults); err != nil {
		t.Fatal(err)
	}
	want := sample{Name: "preset", Rate: .5, Count: 4, On: true, Steps: []int{7, 8}, Wait: time.Second, inner: inner{9}}
	if c.Name != want.Name || c.Rate != want.Rate || c.Count != want.Count || !c.On || c.Wait != want.Wait ||
		c.Width != 9 || !slices.Equal(c.Steps, want.Steps) {
		t.Errorf("got %+v, want %+v", *c, want)
	}
}

func TestConfigJSONIsReadBack(t *testing.T) {
	_, c := bound(t, "--name=x", "--seed=18446744073709551615", "--steps=", "--rate=1e-7", "--wait=2m")
	data, err := configJSON(c)
	if err != nil {
		t.Fatal(err)
	}
	var back sample
	if err := applyJSON(&back, data); err != nil {
		t.Fatal(err)
	}
	if back.Seed != c.Seed || back.Rate != c.Rate || back.Wait != c.Wait || back.Name != "x" || len(back.Steps) != 0 {
		t.Errorf("read back %+v from %s", back, data)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil || len(object) != 8 {
		t.Errorf("%s: %v, %d keys, want 8", data, err, len(object))
	}
}

func TestUnknownKeysNameTheKnownOnes(t *testing.T) {
	err := applyJSON(&sample{}, []byte(`{"ratte": 1}`))
	if err == nil || !strings.Contains(err.Error(), `"ratte"`) || !strings.Contains(err.Error(), "rate, seed, steps") {
		t.Errorf("error %v", err)
	}
}

func TestBadValuesAreErrors(t *testing.T) {
	for _, arg := range []string{"--rate=fast", "--count=1.5", "--seed=-1", "--on=perhaps", "--steps=1,x", "--wait=3", "--nosuch=1"} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		fs.SetOutput(nil)
		bind(fs, &sample{})
		if err := fs.Parse([]string{arg}); err == nil {
			t.Errorf("%s: no error", arg)
		}
	}
	for _, text := range []string{`{"rate": "x"}`, `{"count": 1.5}`, `[]`, `{`} {
		if err := applyJSON(&sample{}, []byte(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]int{"3": {3}, "0-4": {0, 1, 2, 3, 4}, "1, 5-6": {1, 5, 6}} {
		got, err := parseSeeds(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a", "4-2", "-1", "1-", "1,,2"} {
		if got, err := parseSeeds(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestParseMix(t *testing.T) {
	mix, err := parseMix("q1:1,q16:3")
	if err != nil || !slices.Equal(mix, []horizonShare{{1, .25}, {16, .75}}) {
		t.Errorf("%v, %v", mix, err)
	}
	for _, text := range []string{"", "q1", "q1:x", "x:1", "q1:0", "q1:-1,q2:2"} {
		if got, err := parseMix(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// Each command's settings must have distinct names and a help text.
func TestCommandsDescribeTheirFlags(t *testing.T) {
	for _, o := range []any{&trainOptions{}, &pretrainOptions{}, &evalOptions{}, &composeOptions{}, &miniwikiOptions{}, &indexOptions{}, &searchOptions{}} {
		seen := map[string]bool{}
		for _, f := range fields(o) {
			if seen[f.name] {
				t.Errorf("%T: two fields named %s", o, f.name)
			}
			seen[f.name] = true
			if f.help == "" {
				t.Errorf("%T: %s has no help", o, f.name)
			}
		}
		if len(seen) == 0 {
			t.Errorf("%T has no flags", o)
		}
	}
}
