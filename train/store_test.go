package train

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
)

func TestRecordKeepsOrder(t *testing.T) {
	var r Record
	r.Set("b", 1.5)
	r.Set("a/x", math.NaN())
	r.Set("b", 2)
	if got := asJSON(t, r); got != `{"b":2,"a/x":null}` {
		t.Errorf("record is %s", got)
	}
	path := filepath.Join(t.TempDir(), MetricsFile)
	for step := 1; step <= 3; step++ {
		if err := appendRecord(path, Record{{StepMetric, float64(step)}, {"z", 0.1}, {"a", 1e-30}}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"training/glo`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	kept, err := rewindRecords(path, 2)
	if err != nil || len(kept) != 2 {
		t.Fatalf("kept %v (%v), want the first 2", kept, err)
	}
	if line := (Record{{"rce/p99", 0.25}, {"x/y", math.NaN()}, {"timing_s/step", 2}}).Line("rce/p99", "x/y", "timing_s/step"); line != "rce/p99 0.25  timing_s/step 2" {
		t.Errorf("line is %q", line)
	}
	read, err := ReadRecords(path)
	if err != nil || asJSON(t, read) != `[{"training/global_step":1,"z":0.1,"a":1e-30},{"training/global_step":2,"z":0.1,"a":1e-30}]` {
		t.Errorf("read %s (%v)", asJSON(t, read), err)
	}
	if line := (Record{{"a/b", 1}, {"c", 2}}).Line(); line != "b 1  c 2" {
		t.Errorf("line of all metrics %q", line)
	}
	if line := read[1].Line("z", "absent", StepMetric); line != "z 0.1  global_step 2" {
		t.Errorf("line is %q", line)
	}
	if err := os.WriteFile(path, []byte("{\"a\":\"x\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRecords(path); err == nil || !strings.Contains(err.Error(), MetricsFile+":1") {
		t.Errorf("a text as a metric: %v", err)
	}
}

func TestWriteFolderIsWholeOrAbsent(t *testing.T) {
	run := t.TempDir()
	failed := errors.New("disk full")
	err := writeFolder(CheckpointPath(run, 1), func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error is %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(run, CheckpointsFolder)); len(entries) != 0 {
		t.Errorf("a failed write left %v", entries)
	}
	if _, _, err := LatestCheckpoint(run); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("latest checkpoint: %v", err)
	}
	for _, step := range []int{5, 10, 1000005} {
		if err := writeFolder(CheckpointPath(run, step), func(string) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	// What a killed process leaves is neither taken for a checkpoint nor kept.
	if err := os.Mkdir(filepath.Join(run, CheckpointsFolder, temporaryPrefix+"123"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, step, err := LatestCheckpoint(run); err != nil || step != 1000005 || path != CheckpointPath(run, step) {
		t.Errorf("latest checkpoint is %s of step %d (%v)", path, step, err)
	}
	if err := pruneCheckpoints(run, 10); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(filepath.Join(run, CheckpointsFolder))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"step-000010", "step-1000005"}) {
		t.Errorf("after pruning: %v", names)
	}
}

func TestPresetsAreValid(t *testing.T) {
	for name, err := range map[string]error{
		"mini sft": MiniSFT().Validate(), "smoke sft": SmokeSFT().Validate(), "small sft": SmallSFT().Validate(), "paper sft": PaperSFT().Validate(),
		"mini ppo": MiniPPO().Validate(), "smoke ppo": SmokePPO().Validate(), "small ppo": SmallPPO().Validate(), "paper ppo": PaperPPO().Validate(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := MiniPPO()
	p.Teacher, p.Steps, p.Gamma = "memory", 0, 2
	for _, want := range []string{`teacher is "memory"`, "steps is 0", "gamma is 2"} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	s := MiniSFT()
	s.FlattenedShare, s.DrillLengths = 2, nil
	for _, want := range []string{"flattened_share is 2", "drill_lengths is empty"} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// samplesOf makes samples of given packed lengths.
func samplesOf(lengths ...int) []*sample {
	var all []*sample
	for _, n := range lengths {
		all = append(all, &sample{packed: &align.Packed{IDs: make([]int32, n)}})
	}
	return all
}

func TestMinibatchesAreEvenAndWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		lengths := make([]int, 1+rng.IntN(40))
		total := 0
		for i := range lengths {
			lengths[i] = 50 + rng.IntN(60)
			total += lengths[i]
		}
		samples := samplesOf(lengths...)
		tokens := 60 + rng.IntN(1500)
		cuts := minibatches(PPOConfig{TokensPerMinibatch: tokens}, samples, rng)
		want := min(len(samples), max(1, (total+tokens/2)/tokens))
		if len(cuts) != want {
			t.Fatalf("%d tokens at %d a mini-batch are %d mini-batches, want %d", total, tokens, len(cuts), want)
		}
		seen := map[*sample]bool{}
		for _, cut := range cuts {
			held := 0
			for _, s := range cut {
				seen[s] = true
				held += packedLength(s)
			}
			if len(cut) == 0 || math.Abs(float64(held)-float64(total)/float64(want)) > 2*110 {
				t.Errorf("a mini-batch of %d tokens among %d of %d", held, want, total)
			}
		}
		if len(seen) != len(samples) {
			t.Errorf("%d of %d trajectories are in a mini-batch", len(seen), len(samples))
		}
	}
}

func TestMicrobatches(t *testing.T) {
	cuts := microbatches(samplesOf(5, 5, 12, 1, 1, 9), 10, packedLength)
	var got []int
	for _, c := range cuts {
		got = append(got, len(c))
	}
	if !slices.Equal(got, []int{2, 1, 2, 1}) {
		t.Errorf("runs of %v, want 2 1 2 1", got)
	}
}

// Streams of one seed are unlike each other, and the same whenever asked.
func TestStreams(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(3) {
		for s := streamSource; s <= streamCriticInit; s++ {
			for i := range uint64(50) {
				for j := range uint64(4) {
					seen[deriveSeed(seed, s, i, j)] = true
				}
			}
		}
	}
	if len(seen) != 3*8*50*4 {
		t.Errorf("%d different seeds of %d", len(seen), 3*8*50*4)
	}
	if a, b := deriveSeed(1, streamDrill, 2), deriveSeed(1, streamDrill, 2); a != b {
		t.Error("a derived seed changes")
	}
}
