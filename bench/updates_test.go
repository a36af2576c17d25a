package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/datasets/miniwiki"
	"github.com/memopd/memopd-bench/trace"
)

// smokeUpdates are the context updates that smoke runs train with.
var smokeUpdates = []string{"full-response", "suffix:8", "summary", "window:2", "refresh", "full"}

// Training with each context update shows the model the states of its rollouts, the
// run's folder says which update it was, and evaluation goes by that.
func TestTrainingWithEachUpdateIsAtTheFloor(t *testing.T) {
	w := newWorkplace(t)
	for _, update := range smokeUpdates {
		out := strings.ReplaceAll(update, ":", "-")
		w.mustBench("train --preset smoke --variant memopd --steps 2 --prompts-per-step 4 --update " + update + " --out " + out)
		records := w.records(out + "/smoke/memopd/seed-0")
		if len(records) != 2 {
			t.Errorf("%s: %d records", update, len(records))
		}
		for _, r := range records {
			if p99, ok := r.Get("rce/p99"); !ok || !(p99 <= 1e-4) {
				t.Errorf("%s: rce/p99 is %g", update, p99)
			}
		}
		if got := recordedUpdate(filepath.Join(w.dir, out, "smoke/memopd/seed-0")); got != update {
			t.Errorf("%s: the run recorded %q", update, got)
		}
	}

	const eval = "eval --preset smoke --tasks 3 --timed-tasks 0 --ledger jsonl --json --variants sft,memopd --runs window-2 --out evaluated"
	for _, c := range []struct{ given, sft, memopd string }{
		{"", "mem1", "window:2"},
		{" --update refresh", "refresh", "refresh"},
	} {
		w.mustBench(eval + c.given)
		for variant, want := range map[string]string{"sft": c.sft, "memopd": c.memopd} {
			dir := filepath.Join(w.dir, "evaluated/smoke/eval/q2", variant, "seed-0")
			all, err := trace.ReadAll(filepath.Join(dir, "ledger.jsonl"))
			if err != nil || len(all) != 3 {
				t.Fatalf("%v, %d trajectories", err, len(all))
			}
			for _, tr := range all {
				if tr.Agent != want {
					t.Errorf("eval%s: %s was evaluated with %s, want %s", c.given, variant, tr.Agent, want)
				}
			}
			var manifest struct {
				Config struct{ Update string }
			}
			data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
			if err == nil {
				err = json.Unmarshal(data, &manifest)
			}
			if err != nil || manifest.Config.Update != want {
				t.Errorf("eval%s: the manifest of %s says %q, %v", c.given, variant, manifest.Config.Update, err)
			}
		}
	}

	// A run does not go on with another update, nor does one from before runs recorded it.
	const again = "train --preset smoke --variant memopd --steps 2 --prompts-per-step 4 --resume --out window-2 --update "
	if _, stderr, status := w.bench(again + "refresh"); status == 0 || !strings.Contains(stderr, `update was "window:2", is "refresh"`) {
		t.Errorf("exit %d: %s", status, stderr)
	}
	w.withoutSetting("window-2/smoke/memopd/seed-0", "update")
	if _, stderr, status := w.bench(again + "window:2"); status == 0 || !strings.Contains(stderr, `update was "mem1", is "window:2"`) {
		t.Errorf("exit %d: %s", status, stderr)
	}
}

// withoutSetting takes a setting out of a run's record.
func (w workplace) withoutSetting(run, name string) {
	w.t.Helper()
	run = filepath.Join(w.dir, run, runFile)
	data, err := os.ReadFile(run)
	if err != nil {
		w.t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		w.t.Fatal(err)
	}
	delete(object["manifest"].(map[string]any)["config"].(map[string]any), name)
	if data, err = json.Marshal(object); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(run, data, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// Pretraining teaches the contexts of the update that it is given.
func TestPretrainingWithAnUpdate(t *testing.T) {
	speak := speakingPreset(presetMini)
	speak.Update = "summary"
	e, err := openWiki(t.Context(), t.TempDir(), miniwiki.DefaultConfig(), 0, speak)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	got, err := e.oracleSource(t.Context(), []horizonShare{{2, 1}})(7)
	if err != nil {
		t.Fatal(err)
	}
	if got.Agent != "summary" || len(got.Calls) < 2 {
		t.Fatalf("%s, %d calls", got.Agent, len(got.Calls))
	}
	for _, c := range got.Calls[1:] {
		text := e.tokenizer.Decode(c.Context[len(got.Prefix):])
		if !strings.HasPrefix(text, "<think>") || strings.Contains(text, "<search>") {
			t.Errorf("call %d sees %q", c.Index, text)
		}
	}
}
