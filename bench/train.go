package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// trainOptions holds the settings of bench train.
type trainOptions struct {
	Variant string `flag:"variant" help:"ppo (no teacher), persistent (the teacher reads the flattened history), memopd (the teacher sees each call's own state), memopd-sampled or memopd-topk (the same by other estimators of the teacher term) or ppo-mem1 (no teacher, trained under MEM1's mask)"`
	Name    string `flag:"name" help:"folder of the runs in the variant's place, to keep apart what was trained with other settings or another teacher; bench eval --variants knows it; empty: the variant's name"`
	Preset  string `flag:"preset" help:"defaults: mini, smoke, small or paper"`
	common
	Seeds       string `flag:"seeds" help:"several runs, such as 0-4 or 1,3; goes before --seed"`
	Resume      bool   `flag:"resume" help:"go on from the latest checkpoint of runs that were stopped"`
	FromScratch bool   `flag:"from-scratch" help:"make student and teacher anew with bench pretrain's defaults, instead of those in the build"`
	Student     string `flag:"student" help:"model to start from: a folder in Hugging Face's layout, on real questions also a GGUF file or a fetched model's name; empty: the preset's, as bench pretrain makes it"`
	TeacherFrom string `flag:"teacher-model" help:"the teacher, likewise"`
	Horizon     string `flag:"horizon" help:"questions a training task: q1, q2, ..."`
	Reward      string `flag:"reward" help:"task reward: f1 or em, the squad scorer's"`
	DevTasks    int    `flag:"dev-tasks" help:"dev tasks of real questions that an evaluation takes; the mini-wiki has its own set"`
	TensorBoard bool   `flag:"tensorboard" help:"write event files for TensorBoard beside metrics.jsonl; --tensorboard=false: none"`
	JSON        bool   `flag:"json" help:"print the last step's metrics of each run as JSON on standard output"`
	speaking
	train.PPOConfig
}

func newTrain() *cobra.Command {
	o := trainOptions{Preset: presetMini}
	defaults := func() (err error) {
		o, err = trainDefaults(o.Preset)
		return err
	}
	cmd := command(&cobra.Command{
		Use:   "train",
		Short: "Train an agent with PPO and, by variant, a teacher",
		Long: `Trains a student with PPO from the preset's SFT weights on q2 tasks: of the
mini-wiki, or with --preset small or paper on real questions. The variants differ in what the teacher sees: nothing (ppo), the
flattened history (persistent), or the very state that each action was sampled in
(memopd). memopd-sampled and memopd-topk estimate the teacher term from the sampled
token or from the student's most probable ids (--teacher-estimator); ppo-mem1
trains as ppo does but in wrong states, those of MEM1's published mask (--layout).
Runs are kept under OUT/PRESET/VARIANT/seed-N, or OUT/PRESET/NAME/seed-N with --name.
Ctrl-C ends after the step with a checkpoint; --resume goes on as if nothing had
happened.`,
		Example: `  bench train --variant memopd
  bench train --variant ppo --seeds 0-4
  bench train --variant persistent --steps 100 --learning-rate 2e-4
  bench train --variant memopd --preset smoke
  bench train --variant memopd --preset small --steps 3
  bench train --variant memopd --layout visibility --name memopd-visibility
  bench train --variant persistent --teacher-model DIR --name persistent-other-teacher`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error { return runTrain(cmd.Context(), o) })
	// The variant says what the teacher sees.
	_ = cmd.Flags().MarkHidden("teacher")
	return cmd
}

// trainDefaults are a preset's settings of bench train.
func trainDefaults(preset string) (o trainOptions, err error) {
	o = trainOptions{
		Preset: preset, Variant: "memopd", common: defaultCommon(preset), speaking: speakingPreset(preset),
		Horizon: "q2", Reward: "f1", DevTasks: 16, TensorBoard: true,
	}
	o.PPOConfig, err = ppoPreset(preset)
	return o, err
}

// modelFolder is where a finished run keeps the trained model.
const modelFolder = "model"

func runTrain(ctx context.Context, o trainOptions) error {
	var err error
	if err = o.applyVariant(); err != nil {
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
	if err := o.checkName(); err != nil {
		return err
	}
	if _, err := o.update(); err != nil {
		return err
	}
	return o.PPOConfig.Validate()
}

func trainSeed(ctx context.Context, o trainOptions) error {
	dir := o.folder()
	if done, err := o.existing(dir); err != nil || done {
		return o.doneAlready(dir, err)
	}
	at, err := o.startingPlaces(ctx)
	if err != nil {
		return err
	}
	questions, err := datasets.ParseHorizon(o.Horizon)
	if err != nil {
		return err
	}
	e, err := openEnvironment(ctx, work{
		preset: o.Preset, data: o.Data, seed: o.Seed, speaking: o.speaking, model: at.student, dev: devSet{questions, o.DevTasks},
	})
	if err != nil {
		return err
	}
	defer e.Close()
	student, teacher, err := o.startingModels(at, e)
	if err != nil {
		return err
	}
	defer student.Free()
	if teacher != nil {
		defer teacher.Free()
	}
	run := &trainRun{Schema: 1, Variant: o.Variant, Name: o.Name, Seed: o.Seed, Preset: o.Preset}
	run.Manifest = results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	if err := run.Manifest.AddFile("data", e.dataFile); err != nil {
		return err
	}
	unlock, err := lockFolder(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	if done, err := o.existing(dir); err != nil || done { // by the process that had the lock
		return o.doneAlready(dir, err)
	}
	if err := results.WriteJSON(filepath.Join(dir, runFile), run); err != nil {
		return err
	}
	if err := o.ppo(ctx, e, student, teacher, dir); err != nil {
		return run.failed(dir, err)
	}
	if err := run.finish(dir); err != nil {
		return err
	}
	note("trained: %s", filepath.Join(dir, modelFolder))
	return o.printLast(dir)
}

// doneAlready says that a finished run needs nothing.
func (o trainOptions) doneAlready(dir string, err error) error {
	if err != nil {
		return err
	}
	note("%s: trained already", dir)
	return o.printLast(dir)
}

// ppo runs the training and leaves the model in dir/model.
func (o trainOptions) ppo(ctx context.Context, e *environment, student, teacher *model.Decoder, dir string) error {
	questions, err := datasets.ParseHorizon(o.Horizon)
	if err != nil {
		return err
	}
	note("student of %d parameters, run folder %s", student.NumParameters(), dir)
	if o.Layout != train.LayoutAligned {
		note("layout %s: the states trained in are not those of the rollouts; what RCE finds is recorded (rce/p99) and stops nothing", o.Layout)
	}
	bar := newProgress("ppo steps", int64(o.Steps))
	trained, err := train.PPO(ctx, o.PPOConfig, train.PPOParts{
		Initial: student, Teacher: teacher, Dir: dir, Resume: o.Resume, Threads: threadCount(o.Threads),
		TensorBoard: o.TensorBoard,
		Rollout:     e.rollout(o, questions),
		Save:        e.saveModel,
		Eval:        e.devScores, ThinkLength: thinkLength(e.tokenizer),
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
	return e.saveModel(filepath.Join(dir, modelFolder), trained)
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
