package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/train"
)

// replayOptions holds the settings of bench replay.
type replayOptions struct {
	Run         string  `flag:"run" help:"folder of the training run whose step is named by its number"`
	Micro       int     `flag:"micro" help:"microbatch of the step that is run again, from 0"`
	Tolerance   float64 `flag:"tolerance" help:"absolute difference of computed numbers that passes; 0: the same bits"`
	Student     string  `flag:"student" help:"the model that the run started from; empty: as its settings name it"`
	TeacherFrom string  `flag:"teacher-model" help:"the run's teacher, likewise"`
	Threads     int     `flag:"threads" help:"threads of libtorch; 0: as many as the step had"`
	JSON        bool    `flag:"json" help:"print the report as JSON"`
}

func newReplay() *cobra.Command {
	o := replayOptions{Run: filepath.Join("runs", presetMini, "memopd", "seed-0")}
	return command(&cobra.Command{
		Use:   "replay [STEP | FOLDER]",
		Short: "Run a microbatch of a training step again and say where it first differs",
		Long: `Runs one microbatch of a step that bench train kept a bundle of (--bundle-every)
on the CPU, from the weights before the step, and compares it with the bundle
stage by stage: machine (libtorch, BLAS kernels, threads), settings, hashes of weights, ids, layout, recorded log-probs,
order, old and reference log-probs, values, advantages, loss terms, gradient.
What is called equal is equal bit for bit. The exit status is 0 only when nothing
differs, or nothing computed by more than --tolerance.

The step is a number in the run's folder, or a bundle's folder; a run's folder, or
nothing, stands for its last step that can be replayed: the first one, those after
a checkpoint that is still there, and bundles with weights (--bundle-weights).`,
		Example: `  bench replay 1
  bench replay 26 --run runs/mini/ppo/seed-3 --micro 2
  bench replay runs/mini/memopd/seed-0/bundles/step-000001`,
		Args: cobra.MaximumNArgs(1),
	}, &o, nil, func() error { return nil }, func(cmd *cobra.Command, args []string) error {
		return runReplay(cmd.Context(), cmd.OutOrStdout(), o, args)
	})
}

func runReplay(ctx context.Context, out io.Writer, o replayOptions, args []string) error {
	step := ""
	if len(args) == 1 {
		step = args[0]
	}
	run, bundle, err := findBundle(o.Run, step)
	if err != nil {
		return err
	}
	r, err := replay(ctx, o, run, bundle)
	if err != nil {
		return err
	}
	if o.JSON {
		if err := json.NewEncoder(out).Encode(r); err != nil {
			return err
		}
	} else if err := printReplay(out, r); err != nil {
		return err
	}
	if !r.Passed() {
		return fmt.Errorf("step %d, microbatch %d: differs first in the stage %q", r.Step, r.Micro, r.First)
	}
	return nil
}

// findBundle finds a bundle and its run: by a step's number in the run given, by a
// folder, or the last that can be replayed.
func findBundle(run, step string) (runDir, bundle string, err error) {
	if _, err := strconv.Atoi(step); step != "" && err != nil {
		if _, err := os.Stat(filepath.Join(step, "bundle.json")); err == nil {
			folder, err := filepath.Abs(step)
			if err != nil {
				return "", "", err
			}
			own := filepath.Dir(filepath.Dir(folder))
			if _, err := os.Stat(filepath.Join(own, runFile)); err == nil {
				run = own // else it was copied out of its run, which --run names
			}
			return run, step, nil
		}
		if _, err := os.Stat(filepath.Join(step, runFile)); err != nil {
			return "", "", fmt.Errorf("%s is neither a step's number nor the folder of a bundle or a run", step)
		}
		run, step = step, ""
	}
	all, can, err := train.Bundles(run)
	switch {
	case err != nil:
		return "", "", err
	case len(all) == 0:
		return "", "", fmt.Errorf("%s holds no bundles: bench train writes them with --bundle-every", run)
	case step == "" && len(can) == 0:
		return "", "", fmt.Errorf("none of the steps %v in %s can be replayed: no checkpoint before one of them is left, and no bundle has weights (--bundle-weights)", all, run)
	case step == "":
		return run, train.BundlePath(run, can[len(can)-1]), nil
	}
	n, _ := strconv.Atoi(step)
	bundle = train.BundlePath(run, n)
	if _, err := os.Stat(bundle); err != nil {
		return "", "", fmt.Errorf("%s has no bundle of step %d; steps with one: %v, of which %v can be replayed", run, n, all, can)
	}
	return run, bundle, nil
}

// replay loads what the run was made of and runs the microbatch again.
func replay(ctx context.Context, o replayOptions, run, bundle string) (*train.ReplayReport, error) {
	t, err := settingsOfRun(run)
	if err != nil {
		return nil, err
	}
	if o.Student != "" {
		t.Student, t.FromScratch = o.Student, false
	}
	if o.TeacherFrom != "" {
		t.TeacherFrom, t.FromScratch = o.TeacherFrom, false
	}
	t.Device = "cpu"
	b, err := train.ReadBundle(bundle)
	if err != nil {
		return nil, err
	}
	threads := o.Threads
	if threads == 0 {
		threads = b.Machine.Threads
	}
	if err := startTorch(threads); err != nil {
		return nil, err
	}
	student, teacher, tok, err := t.modelsAgain(ctx)
	if err != nil {
		return nil, err
	}
	defer student.Free()
	if teacher != nil {
		defer teacher.Free()
	}
	return train.Replay(t.PPOConfig, train.PPOParts{Initial: student, Teacher: teacher, Dir: run, Threads: threads, ThinkLength: thinkLength(tok)},
		train.ReplayOptions{Bundle: bundle, Micro: o.Micro, Tolerance: o.Tolerance})
}

// settingsOfRun reads the settings that a training run was begun with.
func settingsOfRun(dir string) (trainOptions, error) {
	run, err := readRun(dir)
	if err != nil {
		return trainOptions{}, err
	}
	o, err := trainDefaults(run.Preset)
	if err != nil {
		return o, err
	}
	config, err := json.Marshal(run.Manifest.Config)
	if err != nil {
		return o, err
	}
	if err := applyJSON(&o, config); err != nil {
		return o, fmt.Errorf("%s: settings: %w", filepath.Join(dir, runFile), err)
	}
	return o, nil
}

// modelsAgain loads the models that a run started from, which are made anew under no
// circumstances, and their tokenizer.
func (o trainOptions) modelsAgain(ctx context.Context) (student, teacher *model.Decoder, tok *tokenizer.Tokenizer, err error) {
	if o.FromScratch {
		made := pretrainFolder(o.Out, o.Preset, 0)
		if _, err := os.Stat(filepath.Join(made, pretrainFile)); err != nil {
			return nil, nil, nil, errors.New("the run made its models from scratch, and they are not there: name them with --student and --teacher-model")
		}
	}
	at, err := o.startingPlaces(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	e := &environment{}
	if onWiki(o.Preset) {
		tok, err = wikiTokenizer()
	} else if e.dialect, err = modelDialect(o.speaking, at.student); err == nil {
		tok = e.tokenizer
	}
	if err != nil {
		return nil, nil, nil, err
	}
	student, teacher, err = o.startingModels(at, e)
	return student, teacher, tok, err
}

// printReplay prints the stages and what is to be said of them.
func printReplay(out io.Writer, r *train.ReplayReport) error {
	from := r.Weights
	if from == "" {
		from = "the models that the run began with"
	}
	fmt.Fprintf(out, "step %d, microbatch %d of %d (%s)\nweights before it: %s\n", r.Step, r.Micro, r.Micros, r.Bundle, from)
	for _, n := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "stage\tvalues\tresult")
	for _, s := range r.Stages {
		fmt.Fprintf(t, "%s\t%d\t%s\n", s.Name, s.Values, replayVerdict(s))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	switch {
	case r.First == "":
		fmt.Fprintln(out, "all that was compared is equal, bit for bit")
	case r.Passed():
		fmt.Fprintf(out, "first difference: %s; all within the tolerance\n", r.First)
	default:
		fmt.Fprintf(out, "first difference: %s\n", r.First)
	}
	return nil
}

// replayVerdict is a stage's line.
func replayVerdict(s *train.Stage) string {
	note := ""
	if s.Note != "" {
		note = " (" + s.Note + ")"
	}
	switch {
	case s.Values == 0:
		return "not compared" + note
	case s.Differences == 0:
		return "equal" + note
	}
	text := fmt.Sprintf("%d differ", s.Differences)
	if s.Largest > 0 {
		text += fmt.Sprintf(", by %.3g at most", float64(s.Largest))
	}
	if s.Passed() && s.Name != train.StageMachine {
		text += ", within the tolerance"
	}
	return fmt.Sprintf("%s; first: %s: was %s, is %s%s", text, s.Where, s.Recorded, s.Replayed, note)
}
