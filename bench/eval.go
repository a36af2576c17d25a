package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// evalOptions holds the settings of bench eval.
type evalOptions struct {
	Preset string `flag:"preset" help:"whose runs are evaluated: mini or smoke"`
	common
	Runs        string   `flag:"runs" help:"folder that holds the training runs; empty: --out"`
	Horizon     []string `flag:"horizon" help:"questions a task: q2, q8, q16, any qN, or wikirag; several separated by commas"`
	Variants    []string `flag:"variants" help:"what is evaluated: sft (the start), teacher, ppo, persistent, memopd; empty: the start and all trained so far"`
	Seeds       string   `flag:"seeds" help:"runs of these seeds, such as 0-4; empty: all"`
	Split       string   `flag:"split" help:"worlds of the mini-wiki: test, dev or train"`
	Tasks       int      `flag:"tasks" help:"tasks a horizon; 0: 400 of q2, 200 of q8, 100 of q16"`
	TimedTasks  int      `flag:"timed-tasks" help:"tasks that run once more, each alone, for the inference time"`
	Policy      string   `flag:"policy" help:"greedy or sample"`
	Temperature float64  `flag:"temperature" help:"sampling temperature with --policy sample"`
	Seed        uint64   `flag:"seed" help:"seed of sampling"`
	Update      string   `flag:"update" help:"context update: mem1 (compact memory) or full (keeps everything)"`
	Ledger      string   `flag:"ledger" help:"ending of the trajectories' files, jsonl or parquet; empty: none are kept"`
	Baseline    string   `flag:"baseline" help:"variant that changes are measured against"`
	JSON        bool     `flag:"json" help:"print rows as JSON on standard output instead of tables"`
	realTasks
}

func newEval() *cobra.Command {
	o := evalOptions{}
	defaults := func() error {
		o = evalOptions{
			Preset: presetMini, common: defaultCommon(), Horizon: []string{"q2"}, Split: "test", TimedTasks: 8,
			Policy: "greedy", Temperature: 1, Update: "mem1", Baseline: "ppo",
			realTasks: realTasks{Protocol: "mem1"},
		}
		return nil
	}
	return command(&cobra.Command{
		Use:   "eval",
		Short: "Evaluate trained agents and print a table",
		Long: `Evaluates every variant trained so far, and the SFT start, on unseen worlds of
the mini-wiki: EM and F1 under two scorers, peak context, dependency, inference
time. Means stand with 95 % bootstrap intervals over tasks, below them the paired
change against ppo.

Where --data is a folder of tasks composed from real questions (bench data
compose), they are searched in its index by a scripted agent or by --model.`,
		Example: `  bench eval --horizon q16
  bench eval --horizon q2,q8,q16 --variants sft,ppo,memopd --json
  bench eval --data data/real --horizon q2,q8 --scripted search-each`,
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error { return runEval(cmd.Context(), o) })
}

// subject is what is evaluated; a scripted agent has no model to load.
type subject struct {
	variant string
	seed    int64
	from    string // what was loaded, for the records
	load    func() (*model.Decoder, error)
}

func runEval(ctx context.Context, o evalOptions) error {
	if o.Tasks < 0 || o.TimedTasks < 0 || len(o.Horizon) == 0 {
		return fmt.Errorf("tasks %d, timed-tasks %d, horizons %q: want 0 or more tasks and at least one horizon", o.Tasks, o.TimedTasks, o.Horizon)
	}
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	sampling, err := o.sampler()
	if err != nil {
		return err
	}
	if files, err := o.realFiles(); err != nil || files != nil {
		if err != nil {
			return err
		}
		return o.runReal(ctx, files, sampling)
	}
	if o.Scripted != "" || o.Model != "" || o.Index != "" {
		return fmt.Errorf("--scripted, --model and --index are for composed tasks, and --data %s holds none (bench data compose)", o.Data)
	}
	if !slices.Contains(subjectNames(), o.Baseline) {
		return unknownName("baseline", o.Baseline, subjectNames())
	}
	w, err := openWiki(ctx, o.Data, miniwiki.DefaultConfig(), o.Seed)
	if err != nil {
		return err
	}
	defer w.Close()
	subjects, err := findSubjects(o)
	if err != nil {
		return err
	}
	update, err := agent.UpdateNamed(o.Update)
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
		tasks, err := w.tasks(split, n, o.Tasks)
		if err != nil {
			return err
		}
		if len(tasks) < o.Tasks {
			note("%s: the %s split has %d tasks, not %d", horizon, split, len(tasks), o.Tasks)
		}
		run := evalRun{
			options: o, horizon: horizon, tasks: tasks, searcher: searcher{w.index}, dataHash: filepath.Join(o.Data, datasets.ManifestName),
			agent: agent.Options{Protocol: w.protocol, Tokenizer: w.tokenizer, Update: update, Sampler: sampling},
			dir:   filepath.Join(o.Out, o.Preset, "eval", horizon),
		}
		for _, s := range subjects {
			got, err := run.evaluate(ctx, s)
			if err != nil {
				return fmt.Errorf("%s, seed %d, %s: %w", s.variant, s.seed, horizon, err)
			}
			rows = append(rows, got...)
		}
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

// evalRun evaluates subjects on the tasks of one horizon.
type evalRun struct {
	options  evalOptions
	horizon  string
	tasks    []datasets.Task
	searcher agent.Searcher
	dataHash string // file whose hash stands for the data
	agent    agent.Options
	dir      string
}

// evaluate runs one subject and writes DIR/VARIANT/seed-N/: tasks.jsonl,
// manifest.json and, if asked for, the ledger.
func (r evalRun) evaluate(ctx context.Context, s subject) ([]results.TaskRow, error) {
	d, err := s.load()
	if err != nil {
		return nil, err
	}
	defer d.Free()
	policy, err := model.NewSampler(d, r.agent.Sampler, rowsMax)
	if err != nil {
		return nil, err
	}
	r.agent.ContextTokens, r.agent.Model = d.Config.MaxPositionEmbeddings, s.from
	return r.record(ctx, s, policy)
}

// record runs a policy and writes what it did.
func (r evalRun) record(ctx context.Context, s subject, policy agent.Policy) ([]results.TaskRow, error) {
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&r.options)), libtorch())
	if err := manifest.AddFile("data", r.dataHash); err != nil {
		return nil, err
	}
	bar := newProgress(fmt.Sprintf("%s seed %d %s (tasks)", s.variant, s.seed, r.horizon), int64(len(r.tasks)+min(r.options.TimedTasks, len(r.tasks))))
	result, err := eval.Run(ctx, eval.Options{
		Policy: policy, Searcher: r.searcher, Agent: r.agent, Tasks: r.tasks, TimedTasks: r.options.TimedTasks,
		Progress: func(done, total int) { bar.set(int64(done)) },
	})
	if err != nil {
		return nil, err
	}
	bar.done()
	dir := filepath.Join(r.dir, s.variant, fmt.Sprintf("seed-%d", s.seed))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := writeRecords(filepath.Join(dir, "tasks.jsonl"), result.Records); err != nil {
		return nil, err
	}
	if r.options.Ledger != "" {
		if err := trace.WriteAll(filepath.Join(dir, "ledger."+r.options.Ledger), result.Trajectories); err != nil {
			return nil, err
		}
	}
	r.noteRecall(s, result.Records)
	return taskRows(s, r.horizon, result.Records), manifest.Write(filepath.Join(dir, "manifest.json"))
}

// noteRecall says how much of what was asked retrieval brought up.
func (r evalRun) noteRecall(s subject, records []eval.TaskRecord) {
	sum := 0.0
	for _, rec := range records {
		sum += rec.Recall
	}
	note("%s seed %d %s: retrieval recall %.3f (questions with a gold in a document shown)", s.variant, s.seed, r.horizon, sum/float64(len(records)))
}

// writeRecords replaces a file of records.
func writeRecords(path string, records []eval.TaskRecord) error {
	var b strings.Builder
	for _, rec := range records {
		line, err := json.Marshal(rec)
		if err != nil {
			return fmt.Errorf("record of task %s: %w", rec.TaskID, err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return results.WriteFile(path, []byte(b.String()))
}

func taskRows(s subject, horizon string, records []eval.TaskRecord) []results.TaskRow {
	rows := make([]results.TaskRow, len(records))
	for i, r := range records {
		rows[i] = results.TaskRow{
			Variant: s.variant, Seed: s.seed, Horizon: horizon, TaskID: r.TaskID,
			Values: results.Values{
				EM: r.EM, F1: r.F1, EMMEM1: r.EMMem1, F1MEM1: r.F1Mem1,
				PeakContext: float64(r.PeakContext), Dependency: r.Dependency, InferenceSeconds: r.InferenceSeconds,
			},
		}
	}
	return rows
}

// printEvaluation prints the tables, or with --json the rows.
func printEvaluation(o evalOptions, rows []results.TaskRow) error {
	if o.JSON {
		records, err := results.Records(rows)
		if err != nil {
			return err
		}
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(records)
	}
	summaries, err := results.Summarize(rows, results.SummaryOptions{Baseline: o.Baseline, Bootstrap: results.DefaultBootstrap})
	if err != nil {
		return err
	}
	if err := results.SummaryTable(summaries, false).WriteText(os.Stdout); err != nil {
		return err
	}
	if !slices.ContainsFunc(summaries, func(s results.Summary) bool { return s.Changes != nil }) {
		return nil
	}
	fmt.Println()
	return results.ChangeTable(summaries, o.Baseline, results.PublishedNumbers()).WriteText(os.Stdout)
}
