package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// pretrainOptions holds the settings of bench pretrain.
type pretrainOptions struct {
	Preset string `flag:"preset" help:"defaults: mini or smoke"`
	common
	Resume    bool    `flag:"resume" help:"go on from the run's latest checkpoint"`
	Mix       string  `flag:"horizon-mix" help:"shares of the horizons that are trained on"`
	StudentF1 float64 `flag:"student-f1" help:"the student is the first snapshot with at least this F1 on the dev worlds, the mean of q2, q8 and q16"`
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
		Short: "Make a preset's SFT student and teacher on the mini-wiki",
		Long: `Teaches a new decoder the protocol and the skill by supervised fine-tuning on
oracle trajectories, call by call, with loss on the outputs alone. The end of the
run is the teacher; the student is the first snapshot that reaches --student-f1 on
the dev worlds, the mean of q2, q8 and q16: part of each skill is there, and room
to grow. A share of the trajectories is trained as one flattened transcript, so
that the teacher of the persistent variant can read its histories.`,
		Example: "  bench pretrain --preset mini            some 25 minutes on one core\n  bench pretrain --preset smoke           a minute, to see it work",
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error { return runPretrain(cmd.Context(), o) })
}

// pretrainDefaults are a preset's settings of bench pretrain.
func pretrainDefaults(preset string) (o pretrainOptions, err error) {
	o = pretrainOptions{Preset: preset, common: defaultCommon(), Mix: "q1:.1,q2:.2,q4:.2,q8:.25,q16:.25", StudentF1: 0.4}
	o.SFTConfig, o.modelShape, err = sftPreset(preset)
	if preset == presetSmoke {
		o.StudentF1 = 0
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

// pretrain trains, picks the student and leaves dir/student, dir/teacher and
// dir/pretrain.json.
func pretrain(ctx context.Context, o pretrainOptions, dir string) (*pretrainReport, error) {
	begin := time.Now()
	mix, err := parseMix(o.Mix)
	if err != nil {
		return nil, err
	}
	if err := startTorch(o.Threads); err != nil {
		return nil, err
	}
	w, err := openWiki(ctx, o.Data, miniwiki.DefaultConfig(), o.Seed)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	if err := manifest.AddFile("data", filepath.Join(o.Data, datasets.ManifestName)); err != nil {
		return nil, err
	}
	trained, err := runSFT(ctx, o, w, mix, dir)
	if err != nil {
		return nil, err
	}
	trained.Free()
	report := &pretrainReport{Command: commandLine(), Preset: o.Preset, Manifest: manifest}
	if err := report.choose(ctx, w, o, dir); err != nil {
		return nil, err
	}
	report.Seconds = time.Since(begin).Seconds()
	return report, results.WriteJSON(filepath.Join(dir, pretrainFile), report)
}

func runSFT(ctx context.Context, o pretrainOptions, w *wikiWorkplace, mix []horizonShare, dir string) (*model.Decoder, error) {
	config, err := o.config(w.tokenizer)
	if err != nil {
		return nil, err
	}
	initial, err := model.New(config, o.Seed)
	if err != nil {
		return nil, err
	}
	note("decoder of %d parameters, vocabulary of %d; run folder %s", initial.NumParameters(), config.VocabSize, dir)
	bar := newProgress("sft steps", int64(o.Steps))
	defer bar.done()
	return train.SFT(ctx, o.SFTConfig, train.SFTParts{
		Model: initial, Source: w.oracleSource(ctx, mix), Dir: dir, Resume: o.Resume, Threads: threadCount(o.Threads),
		Save: w.saveModel,
		Eval: w.devScores,
		Log: func(r train.Record) {
			if step, ok := r.Get(train.StepMetric); ok {
				bar.set(int64(step))
			}
			bar.say(train.SFTLine(r))
		},
	})
}

// choose scores the snapshots and names the student and the teacher.
func (p *pretrainReport) choose(ctx context.Context, w *wikiWorkplace, o pretrainOptions, dir string) error {
	steps := append(append([]int(nil), o.SnapshotSteps...), o.Steps)
	student := -1
	for _, step := range steps {
		if step > o.Steps || len(p.Scores) > 0 && step == p.Scores[len(p.Scores)-1].Step {
			continue
		}
		d, err := model.Load(train.SnapshotPath(dir, step), model.Placement{})
		if err != nil {
			return err
		}
		scores, err := w.devScores(ctx, step, d)
		d.Free()
		if err != nil {
			return err
		}
		p.Scores = append(p.Scores, snapshotScore{step, scores})
		note("snapshot %d: %s", step, scores.Line())
		if student < 0 && studentScore(scores) >= o.StudentF1 {
			student = len(p.Scores) - 1
		}
	}
	p.Teacher = p.Scores[len(p.Scores)-1]
	if student < 0 {
		return fmt.Errorf("no snapshot reaches an F1 of %g: train longer (--steps) or lower --student-f1", o.StudentF1)
	}
	p.Student = p.Scores[student]
	return errors.Join(
		copyFolder(filepath.Join(dir, presets.Student), train.SnapshotPath(dir, p.Student.Step)),
		copyFolder(filepath.Join(dir, presets.Teacher), train.SnapshotPath(dir, p.Teacher.Step)),
	)
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

// saveModel writes a decoder with the wiki's tokenizer.
func (w *wikiWorkplace) saveModel(dir string, d *model.Decoder) error {
	if err := d.Save(dir); err != nil {
		return err
	}
	return w.tokenizer.Save(dir)
}

func commandLine() string {
	return strings.Join(append([]string{"bench"}, os.Args[1:]...), " ")
}
