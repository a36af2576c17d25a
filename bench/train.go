package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// variants are the paper's, each one value of what the teacher sees.
var variants = []struct{ name, teacher string }{
	{"ppo", train.TeacherNone},
	{"persistent", train.TeacherPersistent},
	{"memopd", train.TeacherAligned},
}

func teacherOf(variant string) (string, error) {
	var known []string
	for _, v := range variants {
		if v.name == variant {
			return v.teacher, nil
		}
		known = append(known, v.name)
	}
	return "", unknownName("variant", variant, known)
}

// trainOptions holds the settings of bench train.
type trainOptions struct {
	Variant string `flag:"variant" help:"ppo (no teacher), persistent (the teacher reads the flattened history) or memopd (the teacher sees each call's own state)"`
	Preset  string `flag:"preset" help:"defaults: mini or smoke"`
	common
	Seeds       string `flag:"seeds" help:"several runs, such as 0-4 or 1,3; goes before --seed"`
	Resume      bool   `flag:"resume" help:"go on from the latest checkpoint of runs that were stopped"`
	FromScratch bool   `flag:"from-scratch" help:"make student and teacher anew with bench pretrain's defaults, instead of those in the build"`
	Student     string `flag:"student" help:"folder of the model to start from, in Hugging Face's layout; empty: the preset's"`
	TeacherFrom string `flag:"teacher-model" help:"folder of the teacher, in Hugging Face's layout; empty: the preset's"`
	Horizon     string `flag:"horizon" help:"questions a training task: q1, q2, ..."`
	Reward      string `flag:"reward" help:"task reward: f1 or em, the squad scorer's"`
	JSON        bool   `flag:"json" help:"print the last step's metrics of each run as JSON on standard output"`
	train.PPOConfig
}

func newTrain() *cobra.Command {
	o := trainOptions{Preset: presetMini}
	defaults := func() (err error) {
		preset := o.Preset
		o = trainOptions{Preset: preset, Variant: "memopd", common: defaultCommon(), Horizon: "q2", Reward: "f1"}
		o.PPOConfig, err = ppoPreset(preset)
		return err
	}
	cmd := command(&cobra.Command{
		Use:   "train",
		Short: "Train an agent with PPO and, by variant, a teacher",
		Long: `Trains a student with PPO from the preset's SFT weights on q2 tasks of the
mini-wiki. The variants differ in what the teacher sees: nothing (ppo), the
flattened history (persistent), or the very state that each action was sampled in
(memopd). Runs are kept under OUT/PRESET/VARIANT/seed-N. Ctrl-C ends after the
step with a checkpoint; --resume goes on as if nothing had happened.`,
		Example: `  bench train --variant memopd
  bench train --variant ppo --seeds 0-4
  bench train --variant persistent --steps 100 --learning-rate 2e-4
  bench train --variant memopd --preset smoke`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error { return runTrain(cmd.Context(), o) })
	// The variant says what the teacher sees.
	_ = cmd.Flags().MarkHidden("teacher")
	return cmd
}

// trainRun is run.json: what a run's folder holds, and how it came about.
type trainRun struct {
	Schema   int               `json:"schema"`
	Variant  string            `json:"variant"`
	Seed     uint64            `json:"seed"`
	Preset   string            `json:"preset"`
	Finished bool              `json:"finished"`
	Manifest *results.Manifest `json:"manifest"`
}

const runFile = "run.json"

// modelFolder is where a finished run keeps the trained model.
const modelFolder = "model"

func runTrain(ctx context.Context, o trainOptions) error {
	var err error
	if o.Teacher, err = teacherOf(o.Variant); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	seeds := []int{int(o.Seed)}
	if o.Seeds != "" {
		if seeds, err = parseSeeds(o.Seeds); err != nil {
			return err
		}
	}
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	for _, seed := range seeds {
		o.Seed = uint64(seed)
		if err := trainSeed(ctx, o); err != nil {
			return fmt.Errorf("%s, seed %d: %w", o.Variant, seed, err)
		}
	}
	return nil
}

// check reports wrong settings before anything is written.
func (o trainOptions) check() error {
	if _, err := datasets.ParseHorizon(o.Horizon); err != nil {
		return err
	}
	if !slices.Contains(rewards, o.Reward) {
		return unknownName("reward", o.Reward, rewards)
	}
	return o.PPOConfig.Validate()
}

func trainSeed(ctx context.Context, o trainOptions) error {
	dir := filepath.Join(o.Out, o.Preset, o.Variant, fmt.Sprintf("seed-%d", o.Seed))
	done, err := o.existing(dir)
	if err != nil {
		return err
	}
	if done {
		note("%s: trained already", dir)
		return o.printLast(dir)
	}
	w, err := openWiki(ctx, o.Data, miniwiki.DefaultConfig(), o.Seed)
	if err != nil {
		return err
	}
	defer w.Close()
	student, teacher, err := o.startingModels(ctx)
	if err != nil {
		return err
	}
	defer student.Free()
	if teacher != nil {
		defer teacher.Free()
	}
	run := &trainRun{Schema: 1, Variant: o.Variant, Seed: o.Seed, Preset: o.Preset}
	run.Manifest = results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	if err := run.Manifest.AddFile("data", filepath.Join(o.Data, datasets.ManifestName)); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := results.WriteJSON(filepath.Join(dir, runFile), run); err != nil {
		return err
	}
	if err := o.ppo(ctx, w, student, teacher, dir); err != nil {
		return err
	}
	run.Finished, run.Manifest.Ended = true, time.Now().UTC()
	if err := results.WriteJSON(filepath.Join(dir, runFile), run); err != nil {
		return err
	}
	note("trained: %s", filepath.Join(dir, modelFolder))
	return o.printLast(dir)
}

// ppo runs the training and leaves the model in dir/model.
func (o trainOptions) ppo(ctx context.Context, w *wikiWorkplace, student, teacher *model.Decoder, dir string) error {
	questions, err := datasets.ParseHorizon(o.Horizon)
	if err != nil {
		return err
	}
	note("student of %d parameters, run folder %s", student.NumParameters(), dir)
	bar := newProgress("ppo steps", int64(o.Steps))
	trained, err := train.PPO(ctx, o.PPOConfig, train.PPOParts{
		Initial: student, Teacher: teacher, Dir: dir, Resume: o.Resume, Threads: threadCount(o.Threads),
		Rollout: w.rollout(o, questions),
		Save:    w.saveModel,
		Eval:    w.devScores,
		Log: func(r train.Record) {
			if step, ok := r.Get(train.StepMetric); ok {
				bar.set(int64(step))
			}
			bar.say(train.PPOLine(r))
		},
	})
	bar.done()
	if trained != nil {
		defer trained.Free()
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w (go on with --resume)", err)
	}
	if err != nil {
		return err
	}
	return w.saveModel(filepath.Join(dir, modelFolder), trained)
}

// startingModels loads the student and, unless the variant has none, the teacher.
func (o trainOptions) startingModels(ctx context.Context) (student, teacher *model.Decoder, err error) {
	fresh := ""
	if o.FromScratch {
		if fresh, err = pretrainOnce(ctx, o); err != nil {
			return nil, nil, err
		}
	}
	if student, err = loadRole(o.Preset, presets.Student, fresh, o.Student); err != nil {
		return nil, nil, err
	}
	if o.Teacher == train.TeacherNone {
		return student, nil, nil
	}
	if teacher, err = loadRole(o.Preset, presets.Teacher, fresh, o.TeacherFrom); err != nil {
		student.Free()
		return nil, nil, err
	}
	return student, teacher, nil
}

// pretrainOnce makes the preset's checkpoints under --out unless they are there.
func pretrainOnce(ctx context.Context, o trainOptions) (string, error) {
	p, err := pretrainDefaults(o.Preset)
	if err != nil {
		return "", err
	}
	p.common, p.Resume = o.common, true
	dir := pretrainFolder(o.Out, o.Preset, p.Seed)
	if _, err := os.Stat(filepath.Join(dir, pretrainFile)); err == nil {
		return dir, nil
	}
	_, err = pretrain(ctx, p, dir)
	return dir, err
}

// loadRole loads a model from the folder given, else from fresh/role, else from
// the build's checkpoints.
func loadRole(preset, role, fresh, given string) (*model.Decoder, error) {
	switch {
	case given != "":
		return model.Load(given, model.Placement{})
	case fresh != "":
		return model.Load(filepath.Join(fresh, role), model.Placement{})
	}
	if preset == presetSmoke { // the same models, fewer steps
		preset = presetMini
	}
	files, err := presets.Checkpoint(preset, role)
	if err != nil {
		return nil, err
	}
	return model.LoadFS(files, model.Placement{})
}

// printLast prints the last training metrics of a run as JSON.
func (o trainOptions) printLast(dir string) error {
	if !o.JSON {
		return nil
	}
	records, err := train.ReadRecords(filepath.Join(dir, train.MetricsFile))
	if err != nil {
		return err
	}
	slices.Reverse(records)
	for _, r := range records {
		if _, ok := r.Get("losses/policy_loss"); ok {
			line, err := json.Marshal(struct {
				Variant string       `json:"variant"`
				Seed    uint64       `json:"seed"`
				Metrics train.Record `json:"metrics"`
			}{o.Variant, o.Seed, r})
			fmt.Println(string(line))
			return err
		}
	}
	return fmt.Errorf("%s has no metrics of training", dir)
}

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
