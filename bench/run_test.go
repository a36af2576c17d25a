package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// The test binary is bench itself when this variable is set, so that tests run
// whole commands in processes of their own.
const asBench = "MEMOPD_TEST_AS_BENCH"

func TestMain(m *testing.M) {
	if os.Getenv(asBench) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// workplace is a folder in which commands run.
type workplace struct {
	t   *testing.T
	dir string
}

func newWorkplace(t *testing.T) workplace { return workplace{t, t.TempDir()} }

// bench runs a command line and returns what it printed and its exit status.
func (w workplace) bench(line string) (stdout, stderr string, status int) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(self, strings.Fields(line)...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), asBench+"=1")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// mustBench is bench for a command that has to succeed.
func (w workplace) mustBench(line string) (stdout string) {
	w.t.Helper()
	stdout, stderr, status := w.bench(line)
	if status != 0 {
		w.t.Fatalf("bench %s: exit %d\n%s", line, status, stderr)
	}
	return stdout
}

func (w workplace) records(run string) []train.Record {
	w.t.Helper()
	records, err := train.ReadRecords(filepath.Join(w.dir, run, train.MetricsFile))
	if err != nil {
		w.t.Fatal(err)
	}
	return records
}

// All three variants train from the build's checkpoints, and the table has them.
func TestSmokeTrainingAndEvaluation(t *testing.T) {
	w := newWorkplace(t)
	w.mustBench("train --preset smoke --variant memopd")
	w.mustBench("train --preset smoke --variant ppo --steps 3")
	w.mustBench("train --preset smoke --variant persistent --steps 3")

	records := w.records("runs/smoke/memopd/seed-0")
	if len(records) != 25 {
		t.Fatalf("%d records, want 25", len(records))
	}
	first, last := meanOf(t, records[:5], "actor/teacher_kl"), meanOf(t, records[20:], "actor/teacher_kl")
	if !(first > 0.05 && last < 0.6*first) {
		t.Errorf("teacher KL went from %.3f to %.3f, want it to fall by 40 %%", first, last)
	}
	before, after := meanOf(t, records[:5], "score/f1"), meanOf(t, records[20:], "score/f1")
	if !(after > before+0.1) {
		t.Errorf("F1 went from %.3f to %.3f, want 0.1 more", before, after)
	}
	for _, r := range records {
		if p99, _ := r.Get("rce/p99"); !(p99 <= 1e-4) {
			t.Errorf("rce/p99 is %g, want 1e-4 at most", p99)
		}
	}

	var rows []results.Record
	out := w.mustBench("eval --preset smoke --horizon q2,q8 --tasks 8 --timed-tasks 1 --json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Horizon+" "+r.Variant)
		if r.Tasks != 8 || r.PeakContext <= 0 || r.Dependency <= 0 || r.InferenceSeconds == nil || *r.InferenceSeconds <= 0 {
			t.Errorf("row %+v", r)
		}
	}
	want := "q2 sft, q2 ppo, q2 persistent, q2 memopd, q8 sft, q8 ppo, q8 persistent, q8 memopd"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("rows %s, want %s", text, want)
	}
	table := w.mustBench("eval --preset smoke --horizon q2 --tasks 8 --timed-tasks 0")
	for _, part := range []string{"EM (squad)", "F1 (mem1)", "peak context", "Change against ppo in %", "memopd"} {
		if !strings.Contains(table, part) {
			t.Errorf("the table lacks %q:\n%s", part, table)
		}
	}
}

func meanOf(t *testing.T, records []train.Record, name string) float64 {
	t.Helper()
	sum := 0.0
	for _, r := range records {
		v, ok := r.Get(name)
		if !ok {
			t.Fatalf("no %s in a record", name)
		}
		sum += v
	}
	return sum / float64(len(records))
}

// Composed tasks over an index of passages, answered by a script.
func TestEvaluationOnComposedTasks(t *testing.T) {
	w := newWorkplace(t)
	w.write("q.jsonl", `{"id": "a", "question": "who sailed the Blue Heron", "golden_answers": ["Ada Voss"]}
{"id": "b", "question": "where is the Old Mill of Tarn", "golden_answers": ["Tarn", "Tarn Valley"]}
`)
	w.write("passages.jsonl", `{"id": "0", "contents": "\"Blue Heron\"\nThe Blue Heron was sailed by Ada Voss."}
{"id": "1", "contents": "\"Bread\"\nBread is baked."}
`)
	w.mustBench("data compose --dir real --horizon q2 split=test:q.jsonl")
	w.mustBench("index --dir real/index passages.jsonl")
	var rows []results.Record
	out := w.mustBench("eval --data real --horizon q2 --scripted search-each --json --ledger jsonl")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 1 || rows[0].Variant != "search-each" || rows[0].Tasks != 1 {
		t.Fatalf("%v, rows %+v", err, rows)
	}
	data, err := os.ReadFile(filepath.Join(w.dir, "runs/eval/test-q2/search-each/seed-0/tasks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Recall float64 `json:"retrieval_recall"`
		Calls  int     `json:"calls"`
		End    string  `json:"end"`
	}
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	if record.Recall != 0.5 || record.Calls != 3 || record.End != "answered" {
		t.Errorf("%+v, want half of the golds found in 3 calls", record)
	}
	all, err := trace.ReadAll(filepath.Join(w.dir, "runs/eval/test-q2/search-each/seed-0/ledger.jsonl"))
	if err != nil || len(all) != 1 || all[0].Validate() != nil {
		t.Errorf("ledger: %v, %d trajectories", err, len(all))
	}
}

func (w workplace) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// The same seed gives the same bits, and a stopped run goes on to the same end.
func TestRerunAndResumeAreBitIdentical(t *testing.T) {
	w := newWorkplace(t)
	const line = "train --preset smoke --variant memopd --prompts-per-step 4 --seed 3 "
	w.mustBench(line + "--steps 4 --out a")
	w.mustBench(line + "--steps 4 --out b")
	a, b := w.weights("a"), w.weights("b")
	if !bytes.Equal(a, b) {
		t.Error("two runs of one seed differ in their weights")
	}
	compareMetrics(t, w.records("a/smoke/memopd/seed-3"), w.records("b/smoke/memopd/seed-3"))

	w.stopped(line+"--steps 4 --checkpoint-every 2 --out c", "c/smoke/memopd/seed-3")
	w.mustBench(line + "--steps 4 --checkpoint-every 2 --out c --resume")
	if !bytes.Equal(a, w.weights("c")) {
		t.Error("a resumed run ends with other weights")
	}
	compareMetrics(t, w.records("a/smoke/memopd/seed-3"), w.records("c/smoke/memopd/seed-3"))
}

func (w workplace) weights(out string) []byte {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, out, "smoke/memopd/seed-3/model/model.safetensors"))
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// stopped runs a command and kills it once it has a checkpoint.
func (w workplace) stopped(line, run string) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(self, strings.Fields(line)...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), asBench+"=1")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-ended: // it was quicker than this loop; then its end is compared
			return
		default:
		}
		if _, _, err := train.LatestCheckpoint(filepath.Join(w.dir, run)); err == nil {
			if err := cmd.Process.Kill(); err != nil && !strings.Contains(err.Error(), "finished") {
				w.t.Fatal(err)
			}
			<-ended
			return
		}
	}
}

// compareMetrics compares all metrics but those that a clock gives.
func compareMetrics(t *testing.T, a, b []train.Record) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d records and %d", len(a), len(b))
	}
	for i := range a {
		x, y := untimed(a[i]), untimed(b[i])
		if !maps.Equal(x, y) {
			t.Errorf("record %d differs:\n%v\n%v", i, x, y)
		}
	}
}

func untimed(r train.Record) map[string]float64 {
	m := map[string]float64{}
	for _, metric := range r {
		timed := strings.HasPrefix(metric.Name, "timing_s/") || metric.Name == "perf/throughput"
		if !timed && metric.Value == metric.Value { // NaN equals nothing
			m[metric.Name] = metric.Value
		}
	}
	return m
}

// A folder never comes to hold a mixture of two settings, nor a claim without a model.
func TestRunsKeepTheirSettings(t *testing.T) {
	w := newWorkplace(t)
	const line = "train --preset smoke --prompts-per-step 4 --steps 2 "
	w.mustBench(line)
	refused := func(arguments, want string) {
		t.Helper()
		if _, stderr, status := w.bench(line + arguments); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, want an error with %q, got\n%s", arguments, status, want, stderr)
		}
	}
	w.mustBench(line) // trained already
	w.mustBench(line + "--eval-every 7")
	refused("--reward em", `reward was "f1", is "em"`)
	refused("--learning-rate 0.1", "learning-rate was 0.0008, is 0.1")
	refused("--critic foo", "critic")
	refused("--steps 3 --resume", "steps was 2, is 3")

	run := filepath.Join(w.dir, "runs/smoke/memopd/seed-0")
	if err := os.RemoveAll(filepath.Join(run, modelFolder)); err != nil {
		t.Fatal(err)
	}
	refused("", "model is gone")
	w.mustBench(line + "--resume")
	if _, err := os.Stat(filepath.Join(run, modelFolder, "model.safetensors")); err != nil {
		t.Error(err)
	}

	w.setFinished(run, false)
	refused("", "unfinished run")
	refused("--resume --reward em", "reward was")
	refused("--resume --steps 1", "2 steps done")
	if err := os.RemoveAll(filepath.Join(run, train.CheckpointsFolder)); err != nil {
		t.Fatal(err)
	}
	w.mustBench(line + "--steps 1") // nothing to lose: begun anew
	w.write("runs/smoke/memopd/seed-0/"+runFile, `{"finished": true}`)
	refused("", "no manifest")
}

func (w workplace) setFinished(run string, finished bool) {
	w.t.Helper()
	r, err := readRun(run)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Finished = finished
	if err := results.WriteJSON(filepath.Join(run, runFile), r); err != nil {
		w.t.Fatal(err)
	}
}

// What a user can get wrong ends with one clear line and a status that is not 0.
func TestWrongUseIsExplained(t *testing.T) {
	w := newWorkplace(t)
	for _, c := range []struct{ line, want string }{
		{"train --variant mempod", "known: ppo, persistent, memopd"},
		{"train --preset mega", "known: mini, smoke"},
		{"train --steps none", "whole number"},
		{"train --learning-rate -1", "--learning-rate: -1"},
		{"train --nosuch", "unknown flag"},
		{"train --config nosuch.json", "nosuch.json"},
		{"train --reward f2 --steps 1 --preset smoke", "known: em, f1"},
		{"train --student nosuch --out other", "nosuch"},
		{"train --steps 0", "steps is 0"},
		{"train --horizon 2", "unknown horizon"},
		{"eval --horizon x2", "unknown horizon"},
		{"eval --horizon=", "at least one horizon"},
		{"eval --tasks -1", "--tasks: -1"},
		{"eval --seeds 7", "no run under"},
		{"eval --runs nosuch", "no run under nosuch"},
		{"eval --baseline foo", "known: sft, teacher, ppo"},
		{"eval --data elsewhere --scripted search-each", "composed tasks"},
		{"train --learning-rate NaN", "finite number"},
		{"train --gamma Inf", "finite number"},
		{"train --seeds 1-1000000000000", "more than"},
		{"eval --variants memopd", "train it with bench train --variant memopd"},
		{"eval --policy fast", "known: greedy, sample"},
		{"eval --update none", "mem1, full"},
		{"train --update window:0", "1 or more"},
		{"pretrain --update suffix", "want suffix:N"},
		{"eval --tasks-file nosuch.parquet --index x", "nosuch.parquet"},
		{"index --dir x nosuch.jsonl", "nosuch.jsonl"},
		{"search --index nosuch q", "no index"},
		{"data compose --horizon q2", "no question files"},
		{"eval --runs nosuch --variants ppo", "no run of ppo under nosuch"},
		{"nosuch", "unknown command"},
	} {
		stdout, stderr, status := w.bench(c.line)
		if status == 0 || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "goroutine") {
			t.Errorf("bench %s: exit %d, want an error with %q, got\n%s%s", c.line, status, c.want, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "runs")); err == nil {
		t.Error("a command with wrong settings left a folder of runs behind")
	}
}
