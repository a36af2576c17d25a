package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// pretrainOptions holds the settings of bench pretrain.
type pretrainOptions struct {
	Preset string `flag:"preset" help:"defaults: mini, smoke, small or paper"`
	common
	Resume       bool     `flag:"resume" help:"go on from the run's latest checkpoint"`
	Model        string   `flag:"model" help:"model that SFT on real questions begins with: a folder in Hugging Face's layout, a GGUF file, or the name of a fetched model; empty: the preset's"`
	Examples     []string `flag:"examples" help:"ledgers of a teacher's trajectories (bench data sft) that are learned instead of the oracle's"`
	Mix          string   `flag:"horizon-mix" help:"shares of the horizons that are trained on"`
	StudentF1    float64  `flag:"student-f1" help:"the student is the first snapshot with at least this F1 on the dev worlds, the mean of q2, q8 and q16"`
	StudentShare float64  `flag:"student-share" max:"1" help:"the student is the model after this share of the steps; 0: by --student-f1"`
	DevTasks     int      `flag:"dev-tasks" help:"dev tasks of real questions that an evaluation takes; the mini-wiki has its own set"`
	TensorBoard  bool     `flag:"tensorboard" help:"write event files for TensorBoard beside metrics.jsonl; --tensorboard=false: none"`
	speaking
	modelShape
	train.SFTConfig
}

func newPretrain() *cobra.Command {
	o := pretrainOptions{Preset: presetMini}
	defaults := func() (err error) {
		o, err = pretrainDefaults(o.Preset)
		return err
	}
	return command(&cobra.Command{
		Use:   "pretrain",
		Short: "Make a preset's SFT student and teacher",
		Long: `Teaches a new decoder the protocol and the skill by supervised fine-tuning on
oracle trajectories, call by call, with loss on the outputs alone. The end of the
run is the teacher; the student is the first snapshot that reaches --student-f1 on
the dev worlds, the mean of q2, q8 and q16: part of each skill is there, and room
to grow. A share of the trajectories is trained as one flattened transcript, so
that the teacher of the persistent variant can read its histories.

On real questions (--preset small, paper) a published model is fine-tuned, on what
an oracle writes that knows the golds and the passages of the evidence, or on a
teacher's recorded trajectories. The student is then the model after
--student-share of the steps, and nothing is evaluated unless --eval-every says so.`,
		Example: `  bench pretrain --preset mini            some 25 minutes on one core
  bench pretrain --preset smoke           a minute, to see it work
  bench pretrain --preset small --model SmolLM2-135M-Instruct --data data/real --steps 200
  bench pretrain --preset small --examples teacher.jsonl`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error { return runPretrain(cmd.Context(), o) })
}

// pretrainDefaults are a preset's settings of bench pretrain.
func pretrainDefaults(preset string) (o pretrainOptions, err error) {
	o = pretrainOptions{
		Preset: preset, common: defaultCommon(preset), speaking: speakingPreset(preset),
		Mix: "q1:.1,q2:.2,q4:.2,q8:.25,q16:.25", StudentF1: 0.4, TensorBoard: true,
	}
	o.SFTConfig, o.modelShape, err = sftPreset(preset)
	if preset == presetSmoke {
		o.StudentF1 = 0
	}
	if !onWiki(preset) {
		o.Mix, o.StudentF1, o.StudentShare, o.DevTasks = "q2:1", 0, 0.5, 16
	}
	return o, err
}

// pretrainFile holds the report in a folder of pretraining.
const pretrainFile = "pretrain.json"

// snapshotScore is a snapshot's F1 by horizon, on the dev worlds.
type snapshotScore struct {
	Step int          `json:"step"`
	F1   train.Record `json:"f1"`
}

// pretrainReport is pretrain.json: how a preset's checkpoints came about.
type pretrainReport struct {
	Command  string            `json:"command"`
	Preset   string            `json:"preset"`
	Student  snapshotScore     `json:"student"`
	Teacher  snapshotScore     `json:"teacher"`
	Scores   []snapshotScore   `json:"snapshots"`
	Seconds  float64           `json:"seconds"`
	Manifest *results.Manifest `json:"manifest"`
}

func runPretrain(ctx context.Context, o pretrainOptions) error {
	dir := pretrainFolder(o.Out, o.Preset, o.Seed)
	report, err := pretrain(ctx, o, dir)
	if err != nil {
		return err
	}
	fmt.Printf("student: %s (step %d)  %s\n", filepath.Join(dir, presets.Student), report.Student.Step, report.Student.F1.Line())
	fmt.Printf("teacher: %s (step %d)  %s\n", filepath.Join(dir, presets.Teacher), report.Teacher.Step, report.Teacher.F1.Line())
	return nil
}

func pretrainFolder(out, preset string, seed uint64) string {
	return filepath.Join(out, preset, "pretrain", fmt.Sprintf("seed-%d", seed))
}

// pretrain is pretrainUnder the folder's lock.
func pretrain(ctx context.Context, o pretrainOptions, dir string) (*pretrainReport, error) {
	return pretrainUnder(ctx, o, dir, lockFolder)
}

// variantPretrain stands for pretraining in its run.json.
const variantPretrain = "pretrain"

// pretrainUnder trains, picks the student and leaves dir/student, dir/teacher and
// dir/pretrain.json. The lock is taken before anything is written.
func pretrainUnder(ctx context.Context, o pretrainOptions, dir string, lock func(context.Context, string) (func(), error)) (*pretrainReport, error) {
	begin := time.Now()
	mix, err := parseMix(o.Mix)
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := startTorch(o.Threads); err != nil {
		return nil, err
	}
	if !onWiki(o.Preset) {
		if o.Model, err = locateModel(cmp.Or(o.Model, baseModel(o.Preset))); err != nil {
			return nil, err
		}
	}
	e, err := openEnvironment(ctx, work{
		preset: o.Preset, data: o.Data, seed: o.Seed, speaking: o.speaking, model: o.Model, dev: devSet{mix[0].Questions, o.DevTasks},
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	if err := manifest.AddFile("data", e.dataFile); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	_, _, err = train.LatestCheckpoint(dir)
	if err == nil && !o.Resume {
		return nil, fmt.Errorf("%s holds a run already: --resume goes on with it, or choose another folder with --out", dir)
	}
	if err != nil && !errors.Is(err, train.ErrNoCheckpoint) {
		return nil, err
	}
	run := &trainRun{Schema: 1, Variant: variantPretrain, Seed: o.Seed, Preset: o.Preset, Manifest: manifest}
	if err := results.WriteJSON(filepath.Join(dir, runFile), run); err != nil {
		return nil, err
	}
	trained, err := runSFT(ctx, o, e, mix, dir)
	if err != nil {
		return nil, run.failed(dir, err)
	}
	trained.Free()
	report := &pretrainReport{Command: commandLine(), Preset: o.Preset, Manifest: manifest}
	if err := report.choose(ctx, e, o, dir); err != nil {
		return nil, run.failed(dir, err)
	}
	report.Seconds = time.Since(begin).Seconds()
	if err := results.WriteJSON(filepath.Join(dir, pretrainFile), report); err != nil {
		return nil, err
	}
	return report, run.finish(dir)
}

// check reports wrong settings before anything is written.
func (o pretrainOptions) check() error {
	if onWiki(o.Preset) && (o.Model != "" || o.Examples != nil) {
		return fmt.Errorf("--model and --examples are for real questions (--preset small or paper): the preset %s makes a decoder of its own", o.Preset)
	}
	if !onWiki(o.Preset) && o.StudentShare == 0 {
		return errors.New("student-share is 0: on real questions the student is chosen by it")
	}
	if _, err := o.update(); err != nil {
		return err
	}
	return o.SFTConfig.Validate()
}

func runSFT(ctx context.Context, o pretrainOptions, e *environment, mix []horizonShare, dir string) (*model.Decoder, error) {
	source, err := o.source(ctx, e, mix)
	if err != nil {
		return nil, err
	}
	initial, err := o.initial(e)
	if err != nil {
		return nil, err
	}
	note("decoder of %d parameters, vocabulary of %d; run folder %s", initial.NumParameters(), initial.Vocab(), dir)
	if step := o.studentStep(); step > 0 {
		o.SnapshotSteps = append(slices.Clone(o.SnapshotSteps), step)
	}
	bar := newProgress("sft steps", int64(o.Steps))
	defer bar.done()
	return train.SFT(ctx, o.SFTConfig, train.SFTParts{
		Model: initial, Source: source, Dir: dir, Resume: o.Resume, Threads: threadCount(o.Threads),
		TensorBoard: o.TensorBoard,
		Save:        e.saveModel,
		Eval:        e.devScores,
		Log: func(r train.Record) {
			if step, ok := r.Get(train.StepMetric); ok {
				bar.set(int64(step))
			}
			bar.say(train.SFTLine(r))
		},
	})
}

// initial is the decoder that SFT begins with: a new one on the mini-wiki, else a
// published one.
func (o pretrainOptions) initial(e *environment) (*model.Decoder, error) {
	if !onWiki(o.Preset) {
		return loadModel(o.Model, o.Compute.Trained(), e.tokenizer)
	}
	config, err := o.config(e.tokenizer)
	if err != nil {
		return nil, err
	}
	return model.New(config, o.Seed)
}

// studentStep is the step that --student-share names, 0 without one.
func (o pretrainOptions) studentStep() int {
	if o.StudentShare == 0 {
		return 0
	}
	return min(o.Steps, max(1, int(math.Round(o.StudentShare*float64(o.Steps)))))
}

// choose names the student and the teacher: by the scores of the snapshots, or
// the one that --student-share means.
func (p *pretrainReport) choose(ctx context.Context, e *environment, o pretrainOptions, dir string) error {
	if step := o.studentStep(); step > 0 {
		p.Student, p.Teacher = snapshotScore{Step: step}, snapshotScore{Step: o.Steps}
		if o.EvalEvery > 0 && len(e.dev) > 0 {
			for _, s := range []*snapshotScore{&p.Student, &p.Teacher} {
				if err := p.score(ctx, e, o, dir, s); err != nil {
					return err
				}
			}
		}
	} else if err := p.chooseByScore(ctx, e, o, dir); err != nil {
		return err
	}
	return errors.Join(
		copyFolder(filepath.Join(dir, presets.Student), train.SnapshotPath(dir, p.Student.Step)),
		copyFolder(filepath.Join(dir, presets.Teacher), train.SnapshotPath(dir, p.Teacher.Step)),
	)
}

// score evaluates a snapshot on the dev tasks.
func (p *pretrainReport) score(ctx context.Context, e *environment, o pretrainOptions, dir string, s *snapshotScore) error {
	d, err := model.Load(train.SnapshotPath(dir, s.Step), o.Compute.Trained())
	if err != nil {
		return err
	}
	defer d.Free()
	if err := limitVocab(d, e.tokenizer); err != nil {
		return err
	}
	if s.F1, err = e.devScores(ctx, s.Step, d); err != nil {
		return err
	}
	p.Scores = append(p.Scores, *s)
	note("snapshot %d: %s", s.Step, s.F1.Line())
	return nil
}

// chooseByScore scores all snapshots.
func (p *pretrainReport) chooseByScore(ctx context.Context, e *environment, o pretrainOptions, dir string) error {
	steps := append(append([]int(nil), o.SnapshotSteps...), o.Steps)
	student := -1
	for _, step := range steps {
		if step > o.Steps || len(p.Scores) > 0 && step == p.Scores[len(p.Scores)-1].Step {
			continue
		}
		s := snapshotScore{Step: step}
		if err := p.score(ctx, e, o, dir, &s); err != nil {
			return err
		}
		if student < 0 && studentScore(s.F1) >= o.StudentF1 {
			student = len(p.Scores) - 1
		}
	}
	p.Teacher = p.Scores[len(p.Scores)-1]
	if student < 0 {
		return fmt.Errorf("no snapshot reaches an F1 of %g: train longer (--steps) or lower --student-f1", o.StudentF1)
	}
	p.Student = p.Scores[student]
	return nil
}

// studentScore is the mean F1 of q2, q8 and q16.
func studentScore(r train.Record) float64 {
	sum := 0.0
	for _, h := range []int{2, 8, 16} {
		f1, _ := r.Get(devMetric(h))
		sum += f1 / 3
	}
	return sum
}

// copyFolder copies a folder's files to another place, replacing what is there.
func copyFolder(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

func commandLine() string {
	return strings.Join(append([]string{"bench"}, os.Args[1:]...), " ")
}
