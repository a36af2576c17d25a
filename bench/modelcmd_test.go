package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ownPlaces gives a test a working folder and a cache of its own, with the given
// model of the repository's test data in the cache.
func ownPlaces(t *testing.T, repo, from string) {
	t.Helper()
	source, err := filepath.Abs(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	cache := t.TempDir()
	t.Setenv("HF_HUB_CACHE", cache)
	t.Setenv("HF_HUB_OFFLINE", "1")
	t.Setenv("MEMOPD_ASSETS", "")
	const commit = "0123456789012345678901234567890123456789"
	folder := filepath.Join(cache, "models--"+strings.ReplaceAll(repo, "/", "--"))
	for _, dir := range []string{"refs", "snapshots"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "refs", "main"), []byte(commit), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(source, filepath.Join(folder, "snapshots", commit)); err != nil {
		t.Fatal(err)
	}
}

func runBench(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// TestModelFromCache: fetch and show find what Hugging Face's tools downloaded,
// without network.
func TestModelFromCache(t *testing.T) {
	ownPlaces(t, "Qwen/Qwen2.5-0.5B", filepath.Join("..", "model", "testdata", "transformers", "qwen2_tied"))
	for _, name := range []string{"Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B"} {
		out, err := runBench(t, "model", "fetch", name)
		if err != nil || !strings.HasSuffix(strings.TrimSpace(out), strings.Repeat("0123456789", 4)) {
			t.Errorf("fetch %s: %q, %v", name, out, err)
		}
	}
	out, err := runBench(t, "model", "show", "Qwen2.5-0.5B", "--json", "--length", "100")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ModelType  string `json:"model_type"`
		Parameters int64  `json:"parameters"`
		Problems   []string
		Memory     []trainingMemory `json:"training_memory"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.ModelType != "qwen2" || got.Parameters == 0 || len(got.Problems) != 0 || len(got.Memory) != 2 || got.Memory[0].Length != 100 || got.Memory[0].Bytes < 16*got.Parameters {
		t.Errorf("%+v", got)
	}
	for args, word := range map[string]string{
		"fetch Qwen2.5-3B": "HF_HUB_OFFLINE", "fetch nothing": "known: SmolLM2", "show Qwen2.5-3B": "fetch it with bench model fetch Qwen2.5-3B", "show nothing": "known: SmolLM2",
		"fetch Qwen2.5-3B --revision ../x": "refused",
	} {
		if _, err := runBench(t, append([]string{"model"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("model %s: %v", args, err)
		}
	}
}

// TestModelShowMemory: the memory shown is bench plan's with the same preset and length.
func TestModelShowMemory(t *testing.T) {
	folder := filepath.Join("..", "model", "testdata", "transformers", "qwen2_tied")
	parse := func(v any, args ...string) {
		t.Helper()
		out, err := runBench(t, args...)
		if err == nil {
			err = json.Unmarshal([]byte(out), v)
		}
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	seen := map[int64]bool{}
	for _, preset := range []string{"paper", "small", "mini"} {
		var shown struct {
			Memory []trainingMemory `json:"training_memory"`
		}
		parse(&shown, "model", "show", folder, "--json", "--length", "300", "--preset", preset)
		for i, stage := range []string{"sft", "ppo"} {
			var plan struct {
				Devices []planDevice `json:"devices"`
			}
			parse(&plan, "plan", "--preset", preset, "--stage", stage, "--student", folder, "--teacher-model", "none", "--length", "300", "--json")
			if m := shown.Memory[i]; m.Preset != preset || m.Stage != stage || m.Phase != plan.Devices[0].Phase || m.Bytes != plan.Devices[0].Peak {
				t.Errorf("%s %s: shown %+v, planned %+v", preset, stage, m, plan.Devices[0])
			}
			seen[shown.Memory[i].Bytes] = true
		}
	}
	if len(seen) < 5 {
		t.Errorf("presets hardly differ: %v", seen)
	}
	if _, err := runBench(t, "model", "show", folder, "--preset", "large"); err == nil || !strings.Contains(err.Error(), "known: paper") {
		t.Errorf("unknown preset: %v", err)
	}
}

// TestModelShowUnsupported: the reason is shown, and the rest too.
func TestModelShowUnsupported(t *testing.T) {
	dir := t.TempDir()
	config := `{"model_type": "mamba", "hidden_size": 8, "eos_token_id": 7}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := runBench(t, "model", "show", dir)
	if err == nil || !strings.Contains(err.Error(), `cannot be used: config: model_type "mamba"`) {
		t.Errorf("error %v", err)
	}
	for _, words := range []string{"architecture    mamba", "ends at         7", "not supported   config: ", "no weights in safetensors"} {
		if !strings.Contains(out, words) {
			t.Errorf("%q is not in\n%s", words, out)
		}
	}
	if strings.Contains(out, "memory") {
		t.Errorf("memory of what is not known:\n%s", out)
	}
}

// TestModelShowDamaged: what cannot be loaded is named, and an error.
func TestModelShowDamaged(t *testing.T) {
	parts := filepath.Join("..", "model", "testdata", "transformers", "qwen2_untied_parts")
	single := filepath.Join("..", "model", "testdata", "transformers", "qwen2_tied")
	change := func(name string, f func(data []byte) []byte) func(dir string) error {
		return func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), f(data), 0o644)
		}
	}
	for name, c := range map[string]struct {
		from, says string
		damage     func(dir string) error
	}{
		"missing shard": {parts, "model-00002-of-00003.safetensors", func(dir string) error { return os.Remove(filepath.Join(dir, "model-00002-of-00003.safetensors")) }},
		"cut weights":   {single, "model.safetensors", change("model.safetensors", func(b []byte) []byte { return b[:len(b)/2] })},
		"no header":     {single, "model.safetensors", change("model.safetensors", func(b []byte) []byte { return b[:6] })},
		"other sizes": {single, "has the shape", change("config.json", func(b []byte) []byte {
			return regexp.MustCompile(`"intermediate_size": \d+`).ReplaceAll(b, []byte(`"intermediate_size": 48`))
		})},
	} {
		dir := t.TempDir()
		if err := errors.Join(os.CopyFS(dir, os.DirFS(c.from)), c.damage(dir)); err != nil {
			t.Fatal(err)
		}
		out, err := runBench(t, "model", "show", dir)
		if err == nil || !strings.Contains(err.Error(), "cannot be used: ") || !strings.Contains(err.Error(), c.says) || !strings.Contains(out, "not supported") || !strings.Contains(out, "by the configuration") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestByteSize(t *testing.T) {
	for n, want := range map[int64]string{-1: "?", 0: "0 B", 999: "999 B", 1000: "1 kB", 98_362_432: "98.4 MB", 999_600: "1 MB", 5_123_307_260: "5.12 GB"} {
		if got := byteSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestDataFetchNames(t *testing.T) {
	t.Chdir(t.TempDir())
	out, err := runBench(t, "data", "fetch", "--list")
	if err != nil || !strings.Contains(out, "hotpot_dev_distractor_v1.json") || !strings.Contains(out, "46.3 MB") {
		t.Errorf("%q, %v", out, err)
	}
	for args, word := range map[string]string{"data fetch": "--list", "data fetch squad": "known: hotpotqa-train"} {
		if _, err := runBench(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
