package train

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Straight runs with one seed are bit-identical, and a run that was stopped and
// resumed is identical to them: weights and metrics.
func TestPPORerunAndResumeAreIdentical(t *testing.T) {
	for _, teacher := range []string{TeacherNone, TeacherPersistent, TeacherAligned} {
		for _, kind := range []string{CriticHead, CriticDecoder} {
			if teacher != TeacherAligned && kind == CriticDecoder {
				continue
			}
			t.Run(teacher+"/"+kind, func(t *testing.T) {
				c := tinyPPO(teacher)
				c.Critic, c.EpochsPerStep = kind, 2
				straight, again, resumed := t.TempDir(), t.TempDir(), t.TempDir()
				ctx := context.Background()
				a, err := runPPO(t, ctx, c, straight, false)
				if err != nil {
					t.Fatal(err)
				}
				b, err := runPPO(t, ctx, c, again, false)
				if err != nil {
					t.Fatal(err)
				}
				half := c
				half.Steps = 2
				if _, err := runPPO(t, ctx, half, resumed, false); err != nil {
					t.Fatal(err)
				}
				r, err := runPPO(t, ctx, c, resumed, true)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Equal(weights(a), weights(tinyModel(t, 1))) {
					t.Error("training left the weights as they were")
				}
				if !slices.Equal(weights(a), weights(b)) {
					t.Error("a rerun ends with other weights")
				}
				if !slices.Equal(weights(a), weights(r)) {
					t.Error("a resumed run ends with other weights")
				}
				want := timeless(t, straight)
				if len(want) != c.Steps {
					t.Fatalf("%d records, want %d", len(want), c.Steps)
				}
				if got := timeless(t, again); asJSON(t, got) != asJSON(t, want) {
					t.Errorf("a rerun has other metrics:\n%s\n%s", asJSON(t, got), asJSON(t, want))
				}
				if got := timeless(t, resumed); asJSON(t, got) != asJSON(t, want) {
					t.Errorf("a resumed run has other metrics:\n%s\n%s", asJSON(t, got), asJSON(t, want))
				}
			})
		}
	}
}

// Every metric of a record is in the package documentation.
func TestMetricsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	ppo, sft := t.TempDir(), t.TempDir()
	c := tinyPPO(TeacherAligned)
	c.Steps = 1
	if _, err := runPPO(t, context.Background(), c, ppo, false); err != nil {
		t.Fatal(err)
	}
	if _, err := runSFT(t, context.Background(), tinySFT(), sft, false); err != nil {
		t.Fatal(err)
	}
	open := map[string]string{"ends/": "ends/END", "align/rejected/": "align/rejected/REASON", "timing_s/": "timing_s/PHASE"}
	for _, dir := range []string{ppo, sft} {
		records, err := ReadRecords(filepath.Join(dir, MetricsFile))
		if err != nil || len(records) == 0 {
			t.Fatalf("%d records, %v", len(records), err)
		}
		for _, m := range records[0] {
			name := m.Name
			for group, pattern := range open {
				if strings.HasPrefix(name, group) {
					name = pattern
				}
			}
			stem := strings.TrimSuffix(strings.TrimSuffix(name, "_p99"), "_max")
			if !strings.Contains(string(doc), name) && !strings.Contains(string(doc), stem) {
				t.Errorf("metric %s is not documented", m.Name)
			}
		}
	}
}

// A run that was killed after its last checkpoint has records of steps that it
// will do again: they are dropped.
func TestPPOResumeDropsLaterRecords(t *testing.T) {
	c := tinyPPO(TeacherNone)
	dir := t.TempDir()
	c.Steps = 2
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	if err := appendRecord(filepath.Join(dir, MetricsFile), Record{{StepMetric, 3}, {"losses/policy_loss", 9}}); err != nil {
		t.Fatal(err)
	}
	if err := appendEvents(newEvents(true, dir, 3), Record{{StepMetric, 3}, {"losses/policy_loss", 9}}); err != nil {
		t.Fatal(err)
	}
	c.Steps = 4
	if _, err := runPPO(t, context.Background(), c, dir, true); err != nil {
		t.Fatal(err)
	}
	checkEvents(t, dir)
	var steps []float64
	for _, r := range timeless(t, dir) {
		step, _ := r.Get(StepMetric)
		steps = append(steps, step)
	}
	if !slices.Equal(steps, []float64{1, 2, 3, 4}) {
		t.Errorf("records of steps %v, want 1 to 4", steps)
	}
}

func TestPPOCancelEndsAfterTheStepWithACheckpoint(t *testing.T) {
	c := tinyPPO(TeacherAligned)
	c.CheckpointEvery = 100
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	inner := fakeRollout(c.PromptsPerStep)
	d, err := PPO(ctx, c, PPOParts{
		Initial: tinyModel(t, 1), Teacher: tinyModel(t, 2), Dir: dir,
		Rollout: func(ctx context.Context, step int, policy *model.Decoder, seed uint64) ([]*trace.Trajectory, error) {
			if step == 2 {
				cancel() // as Ctrl-C in the middle of step 3
			}
			if ctx.Err() != nil {
				t.Error("the rollout's context was cancelled in the middle of a step")
			}
			return inner(ctx, step, policy, seed)
		},
	})
	if d == nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled run returned %v, %v", d, err)
	}
	t.Cleanup(d.Free)
	if _, step, err := LatestCheckpoint(dir); err != nil || step != 3 {
		t.Errorf("latest checkpoint is of step %d (%v), want 3", step, err)
	}
	if _, err := runPPO(t, context.Background(), c, dir, true); err != nil {
		t.Error(err)
	}
}

func TestPPOResumeRefusesOtherSettings(t *testing.T) {
	c := tinyPPO(TeacherNone)
	c.Steps = 2
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	if _, err := runPPO(t, context.Background(), c, dir, false); err == nil {
		t.Error("a new run was started over an old one")
	}
	c.LearningRate = 1
	if _, err := runPPO(t, context.Background(), c, dir, true); err == nil || !strings.Contains(err.Error(), "learning_rate was 0.003, is 1") {
		t.Errorf("resume with another learning rate: %v", err)
	}
	c.LearningRate = 3e-3
	if _, err := PPO(context.Background(), c, PPOParts{Initial: tinyModel(t, 9), Rollout: fakeRollout(4), Dir: dir, Resume: true}); err == nil {
		t.Error("resume with other initial weights was accepted")
	}
}

// A checkpoint's actor is a decoder that loads.
func TestCheckpointHoldsTheActor(t *testing.T) {
	c := tinyPPO(TeacherNone)
	c.CheckpointEvery, c.CheckpointKeepEvery = 1, 2
	dir := t.TempDir()
	d, err := runPPO(t, context.Background(), c, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := checkpointSteps(dir)
	if err != nil || !slices.Equal(steps, []int{2, 4}) {
		t.Errorf("checkpoints of steps %v (%v), want 2 and 4", steps, err)
	}
	loaded, err := model.Load(filepath.Join(CheckpointPath(dir, 4), "actor"), model.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Free()
	if !slices.Equal(weights(loaded), weights(d)) {
		t.Error("the checkpoint's actor has other weights than the policy")
	}
	if entries, err := os.ReadDir(filepath.Join(dir, CheckpointsFolder)); err != nil || len(entries) != 2 {
		t.Errorf("the checkpoints folder holds %v (%v)", entries, err)
	}
}

func TestPPOLeavesNoTensors(t *testing.T) {
	c := tinyPPO(TeacherPersistent)
	c.Steps, c.Critic = 2, CriticDecoder
	initial, teacher := tinyModel(t, 1), tinyModel(t, 2)
	before := torch.Live()
	d, err := PPO(context.Background(), c, PPOParts{Initial: initial, Teacher: teacher, Rollout: fakeRollout(4), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	d.Free()
	if n := torch.Live() - before; n != 0 {
		t.Errorf("%d tensors outlive the run", n)
	}
}
