package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// evalOptions holds the settings of bench eval.
type evalOptions struct {
	Preset string `flag:"preset" help:"whose runs are evaluated: mini, smoke, small or paper"`
	common
	Runs        string   `flag:"runs" help:"folder that holds the training runs; empty: --out"`
	Horizon     []string `flag:"horizon" help:"questions a task: q2, q8, q16, any qN, or wikirag; several separated by commas"`
	Variants    []string `flag:"variants" help:"what is evaluated: sft (the start), teacher, ppo, persistent, memopd, memopd-sampled, memopd-topk, ppo-mem1, names given to bench train --name, on real questions also base (the model before SFT); empty: the start and all that was trained"`
	Seeds       string   `flag:"seeds" help:"runs of these seeds, such as 0-4; empty: all"`
	Split       string   `flag:"split" help:"which tasks: test, dev or train"`
	Tasks       int      `flag:"tasks" help:"tasks a horizon; 0: all, in the mini-wiki 400 of q2, 200 of q8, 100 of q16"`
	TimedTasks  int      `flag:"timed-tasks" help:"tasks that run once more, each alone, for the inference time"`
	Policy      string   `flag:"policy" help:"greedy or sample"`
	Temperature float64  `flag:"temperature" help:"sampling temperature with --policy sample"`
	Seed        uint64   `flag:"seed" help:"seed of sampling"`
	Ledger      string   `flag:"ledger" help:"ending of the trajectories' files, jsonl or parquet; empty: none are kept"`
	Baseline    string   `flag:"baseline" help:"variant that changes are measured against"`
	JSON        bool     `flag:"json" help:"print rows as JSON on standard output instead of tables"`
	real
	speaking
	placing
	serving
}

func newEval() *cobra.Command {
	o := evalOptions{Preset: presetMini}
	defaults := func() error {
		preset := o.Preset
		if !slices.Contains(presetNames, preset) {
			return unknownName("preset", preset, presetNames)
		}
		o = evalOptions{
			Preset: preset, common: defaultCommon(preset), Horizon: []string{"q2"}, Split: "test", TimedTasks: 8,
			Policy: "greedy", Temperature: 1, Baseline: "ppo",
			speaking: speakingPreset(preset), placing: placingPreset(preset), serving: serving{connecting: defaultConnecting()},
		}
		o.Update = ""              // the run's own
		if preset == presetSmall { // a task takes many seconds
			o.Tasks, o.TimedTasks = 16, 2
		}
		return nil
	}
	return command(&cobra.Command{
		Use:   "eval",
		Short: "Evaluate trained agents and print a table",
		Long: `Evaluates every variant trained so far, and the SFT start, on unseen worlds of
the mini-wiki: EM and F1 under two scorers, peak context, dependency, inference
time. Means stand with 95 % intervals: over seeds (Student's t) where a variant has
several, else over tasks (bootstrap). Below them stands the paired change against
ppo, with the paired t-test where both have several seeds.

With --preset small or paper the tasks are those of real questions in --data: the
published model, the SFT start and the runs of the preset, or the models that
--model names. Where --data is such a folder, a scripted agent or --model can be
evaluated on it without a preset.

With --server the weights are those that a vLLM or SGLang server runs, asked with
token ids and answering with token ids; --model is then the same model's folder,
for its tokenizer, chat template and end-of-sequence ids.`,
		Example: `  bench eval --horizon q16
  bench eval --horizon q2,q8,q16 --variants sft,ppo,memopd --json
  bench eval --preset small --horizon q2,q8
  bench eval --preset small --model SmolLM2-135M-Instruct,runs/small/pretrain/seed-0/student
  bench eval --preset paper --server http://localhost:8000 --server-kind vllm --model Qwen2.5-7B-Instruct
  bench eval --data data/real --horizon q2,q8 --scripted search-each`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error { return runEval(cmd.Context(), o) })
}

func runEval(ctx context.Context, o evalOptions) error {
	if len(o.Horizon) == 0 {
		return errors.New("horizons are missing: want at least one horizon")
	}
	if _, err := o.update(); err != nil {
		return err
	}
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	sampling, err := o.sampler()
	if err != nil {
		return err
	}
	real, err := o.onReal()
	if err != nil {
		return err
	}
	if real {
		return o.runReal(ctx, sampling)
	}
	if o.Scripted != "" || len(o.Model) > 0 || o.Index != "" || o.Server != "" {
		return fmt.Errorf("--scripted, --model, --server and --index are for composed tasks, and --data %s holds none (bench data build, or --preset small)", o.Data)
	}
	return o.runWiki(ctx, sampling)
}

// runWiki evaluates the preset's runs on the mini-wiki.
func (o evalOptions) runWiki(ctx context.Context, sampling trace.Sampler) error {
	if known := o.known(); !slices.Contains(known, o.Baseline) {
		return unknownName("baseline", o.Baseline, known)
	}
	e, err := openWiki(ctx, o.Data, miniwiki.DefaultConfig(), o.Seed, o.speaking)
	if err != nil {
		return err
	}
	defer e.Close()
	subjects, err := findSubjects(o, wikiLoader{e.dialect, o})
	if err != nil {
		return err
	}
	split, err := datasets.ParseSplit(o.Split)
	if err != nil {
		return err
	}
	var rows []results.TaskRow
	for _, horizon := range o.Horizon {
		n, err := datasets.ParseHorizon(horizon)
		if err != nil {
			return err
		}
		tasks, err := e.Composed(split, n, o.Tasks)
		if err != nil {
			return err
		}
		if len(tasks) < o.Tasks {
			note("%s: the %s split has %d tasks, not %d", horizon, split, len(tasks), o.Tasks)
		}
		got, err := evalRun{
			options: o, horizon: horizon, tasks: tasks, searcher: searcher{e.index}, dataHash: e.dataFile,
			sampling: sampling, dir: filepath.Join(o.Out, o.Preset, "eval", horizon),
		}.all(ctx, subjects)
		if err != nil {
			return err
		}
		rows = append(rows, got...)
	}
	return printEvaluation(o, rows)
}

func (o evalOptions) sampler() (trace.Sampler, error) {
	switch o.Policy {
	case "greedy":
		s := greedy
		s.Seed = o.Seed
		return s, nil
	case "sample":
		return trace.Sampler{Temperature: o.Temperature, TopP: 1, Seed: o.Seed}, nil
	}
	return trace.Sampler{}, unknownName("policy", o.Policy, []string{"greedy", "sample"})
}

// printEvaluation prints the tables, or with --json the rows.
func printEvaluation(o evalOptions, rows []results.TaskRow) error {
	if o.JSON {
		records, err := results.Records(rows)
		if err != nil {
			return err
		}
		return encodeJSON(os.Stdout, records)
	}
	summaries, err := results.Summarize(rows, results.SummaryOptions{Baseline: o.Baseline, Bootstrap: results.DefaultBootstrap})
	if err != nil {
		return err
	}
	if err := results.SummaryTable(summaries).WriteText(os.Stdout); err != nil {
		return err
	}
	comparisons := results.Comparisons(summaries)
	if !slices.ContainsFunc(comparisons, func(c results.Comparison) bool { return c.Changes != nil }) {
		return nil
	}
	fmt.Println()
	return results.ChangeTable(comparisons, o.Baseline, results.PublishedNumbers()).WriteText(os.Stdout)
}
