package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
)

// reproduceOptions holds the settings of bench reproduce.
type reproduceOptions struct {
	Preset string `flag:"preset" help:"what is reproduced: mini, or smoke, the same in minutes"`
	common
	Seeds        string    `flag:"seeds" help:"the training runs of each variant, such as 0-4"`
	Variants     []string  `flag:"variants" help:"what is trained"`
	Sweep        bool      `flag:"sweep" help:"train every other variant that bench train knows too"`
	Shares       []float64 `flag:"shares" help:"also make teachers whose SFT had these shares of flattened transcripts, and train persistent and memopd with each: runs named persistent-share-S and memopd-share-S"`
	ShareSeeds   string    `flag:"share-seeds" help:"the training runs of --shares"`
	Horizon      []string  `flag:"horizon" help:"what is evaluated: q2, q8, q16, any qN, or wikirag; several separated by commas"`
	FromScratch  bool      `flag:"from-scratch" help:"make student and teacher with bench pretrain first, instead of those in the build"`
	Steps        int       `flag:"steps" help:"steps of each training run; 0: the preset's"`
	Train        []string  `flag:"train" help:"other settings of bench train for all runs, such as learning-rate=2e-4,teacher-weight=1"`
	Tasks        int       `flag:"tasks" help:"tasks a horizon; 0: all, in the mini-wiki 400 of q2, 200 of q8, 100 of q16"`
	TimedTasks   int       `flag:"timed-tasks" help:"tasks a horizon that the inference time is measured on"`
	Trajectories int       `flag:"trajectories" help:"trajectories that an audit takes"`
	Audits       []string  `flag:"audits" help:"what is audited: rce, teacher, masks, updates, speed; empty: nothing"`
	Results      string    `flag:"results" help:"folder of the outcome; empty: results/PRESET"`
	Jobs         int       `flag:"jobs" help:"parts at a time; 0: one a core"`
	Plan         bool      `flag:"plan" help:"print the parts, how they stand and the time that they are expected to take, and end"`
	List         bool      `flag:"list" help:"print one command a part, in stages, for other schedulers (scripts/slurm), and end"`
	Only         []string  `flag:"only" help:"run these parts alone, and collect nothing"`
	Collect      bool      `flag:"collect" help:"run nothing: make the outcome of the parts that are finished"`
}

func newReproduce() *cobra.Command {
	o := reproduceOptions{Preset: presetMini}
	defaults := func() (err error) {
		o, err = reproduceDefaults(o.Preset)
		return err
	}
	return command(&cobra.Command{
		Use:   "reproduce",
		Short: "Run what is missing of the paper's tables over several seeds, and make them",
		Long: `Trains every variant with every seed, evaluates the runs, the SFT start and the teacher
at every horizon, audits the states, and makes the paper's tables of it.

The work is cut into parts, each one bench command in a process of its own; --plan shows
them. A finished part leaves a record under OUT/PRESET/reproduce/parts and is never done
again, so that the command can be killed at any moment and given again: training goes on
from its latest checkpoint. Several of these commands may work on one folder at a time;
none takes a part that another is at. A part that fails is reported with the end of its
log, what does not hang on it goes on, and the exit status is not 0.

Inference time is measured by parts of their own, time/..., which run while no other
part of the folder does, one after another, the variants of a seed side by side in the
order. So do the audits of speed. Evaluations that run side by side are not timed.
Programs outside of this command still disturb the clock.

The outcome is a folder of records and tables. Runs whose settings differ between the
seeds of a variant are refused; commits that differ are stated in its manifest.`,
		Example: `  bench reproduce --preset mini --plan
  bench reproduce --preset mini --jobs 2
  bench reproduce --preset smoke --seeds 0-1
  bench reproduce --preset mini --list > parts.tsv      see scripts/slurm`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error {
		return runReproduce(cmd.Context(), cmd.OutOrStdout(), o)
	})
}

// paperVariants are the variants of the paper's tables.
var paperVariants = []string{"ppo", "persistent", "memopd"}

// reproducePresets are those with models and audits in the build.
var reproducePresets = []string{presetMini, presetSmoke}

func reproduceDefaults(preset string) (reproduceOptions, error) {
	if !slices.Contains(reproducePresets, preset) {
		return reproduceOptions{}, unknownName("preset", preset, reproducePresets)
	}
	o := reproduceOptions{
		Preset: preset, common: defaultCommon(preset), Seeds: "0-4", ShareSeeds: "0-1", Variants: slices.Clone(paperVariants),
		Horizon: []string{"q2", "q8", "q16", "wikirag"}, TimedTasks: 8, Trajectories: 64, Audits: slices.Clone(auditNames),
	}
	if preset == presetSmoke {
		o.Seeds, o.ShareSeeds, o.Tasks, o.TimedTasks, o.Trajectories = "0-1", "0", 16, 2, 4
	}
	return o, nil
}

// folder is where the reproduction keeps what is its own.
func (o reproduceOptions) folder() string { return filepath.Join(o.Out, o.Preset, "reproduce") }

// outcome is the folder of the outcome.
func (o reproduceOptions) outcome() string {
	if o.Results != "" {
		return o.Results
	}
	return filepath.Join("results", o.Preset)
}

// check reports wrong settings before anything is written.
func (o reproduceOptions) check() error {
	for _, f := range []struct {
		name  string
		value int
		least int
	}{{"steps", o.Steps, 0}, {"tasks", o.Tasks, 0}, {"timed-tasks", o.TimedTasks, 1}, {"trajectories", o.Trajectories, 1}, {"jobs", o.Jobs, 0}, {"threads", o.Threads, 0}} {
		if f.value < f.least {
			return fmt.Errorf("%s is %d, want %d or more", f.name, f.value, f.least)
		}
	}
	if len(o.Horizon) == 0 || len(o.Variants) == 0 {
		return fmt.Errorf("%d horizons, %d variants: want at least one of each", len(o.Horizon), len(o.Variants))
	}
	for _, h := range o.Horizon {
		if _, err := datasets.ParseHorizon(h); err != nil {
			return err
		}
	}
	for _, v := range o.Variants {
		if !slices.Contains(variantNames(), v) {
			return unknownName("variant", v, variantNames())
		}
	}
	for _, share := range o.Shares {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("shares has %g, want 0 to 1", share)
		}
	}
	for _, a := range o.Audits {
		if !slices.Contains(auditNames, a) {
			return unknownName("audit", a, auditNames)
		}
	}
	return o.onePretraining()
}

// onePretraining refuses a folder whose models evaluation would take for the start,
// while training takes the build's.
func (o reproduceOptions) onePretraining() error {
	made := filepath.Join(pretrainFolder(o.Out, o.Preset, 0), pretrainFile)
	if _, err := os.Stat(made); err == nil && !o.FromScratch {
		return fmt.Errorf("%s stands for models made anew: give --from-scratch to train from them, or another --out", made)
	}
	return nil
}

func runReproduce(ctx context.Context, w io.Writer, o reproduceOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Jobs == 0 {
		o.Jobs = runtime.NumCPU()
	}
	parts, err := o.parts()
	if err != nil {
		return err
	}
	r := &reproduction{o: o, parts: parts, store: partStore{filepath.Join(o.folder(), "parts")}}
	switch {
	case o.List:
		return r.list(w)
	case o.Plan:
		return r.plan(w)
	case o.Collect:
		return r.collect(ctx, w)
	}
	if err := r.run(ctx); err != nil || len(o.Only) > 0 {
		return err
	}
	return r.collect(ctx, w)
}
