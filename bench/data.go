package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/datasets/miniwiki"
)

func newData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Make tasks: the mini-wiki, or composed from question files, which it can fetch",
		Example: `  bench data miniwiki
  bench data fetch hotpotqa nq-open
  bench data build --source nq=nq-open-oracle.jsonl.gz --corpus passages.jsonl.gz --dir data/real
  bench data compose --inputs split=test:NQ-open.dev.jsonl --horizon q2,q8,q16 --dir data/nq`,
	}
	cmd.AddCommand(newDataMiniwiki(), newDataBuild(), newDataCompose(), newDataFetch(), newDataSFT())
	return cmd
}

// miniwikiOptions holds the settings of bench data miniwiki.
type miniwikiOptions struct {
	Dir         string `flag:"dir" help:"folder to write"`
	Seed        uint64 `flag:"seed" help:"seed of names and facts"`
	TrainWorlds int    `flag:"train-worlds" help:"worlds for training"`
	DevWorlds   int    `flag:"dev-worlds" help:"worlds for tuning"`
	TestWorlds  int    `flag:"test-worlds" help:"worlds for evaluation"`
}

func newDataMiniwiki() *cobra.Command {
	var o miniwikiOptions
	defaults := func() error {
		c := miniwiki.DefaultConfig()
		o = miniwikiOptions{filepath.Join("data", "miniwiki"), c.Seed, c.TrainWorlds, c.DevWorlds, c.TestWorlds}
		return nil
	}
	return command(&cobra.Command{
		Use:   "miniwiki",
		Short: "Generate the mini-wiki: documents, tasks, index",
		Long: `Generates an encyclopedia of many worlds over one pool of names, with the facts
drawn anew in each, tasks of 1- and 2-hop questions, and the index. bench train
does it by itself.`,
		Example: "  bench data miniwiki --dir data/miniwiki",
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error {
		config := miniwiki.Config{Seed: o.Seed, TrainWorlds: o.TrainWorlds, DevWorlds: o.DevWorlds, TestWorlds: o.TestWorlds}
		w, err := openWiki(cmd.Context(), o.Dir, config, 0, speakingPreset(presetMini))
		if err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		m, err := datasets.ReadManifest(o.Dir)
		if err != nil {
			return err
		}
		return printOutputs(o.Dir, m)
	})
}

// composeOptions holds the settings of bench data compose.
type composeOptions struct {
	Dir       string   `flag:"dir" help:"folder to write"`
	Inputs    []string `flag:"inputs" help:"question files, each PATH or key=value,...:PATH with the keys source, format, split; separated by commas or given as arguments"`
	Documents bool     `flag:"documents" help:"write the passages that the files hold as a corpus"`
	composing
}

func newDataCompose() *cobra.Command {
	var o composeOptions
	defaults := func() error {
		o = composeOptions{Dir: filepath.Join("data", "composed"), composing: defaultComposing()}
		return nil
	}
	return command(&cobra.Command{
		Use:   "compose [FILE...]",
		Args:  cobra.ArbitraryArgs,
		Short: "Compose multi-question tasks from HotpotQA, NQ and other files",
		Long: fmt.Sprintf(`Composes tasks of several questions each, no question twice in a split and none
in two splits, and writes them as Parquet with MEM1's columns.

Formats (found out unless named with format=): %v.
An input can say its source and split: source=nq,split=test:NQ-open.dev.jsonl`, datasets.Formats()),
		Example: `  bench data compose --horizon q2 --documents hotpot_dev_distractor_v1.json
  bench data compose split=test:NQ-open.dev.jsonl split=train:NQ-open.train.jsonl`,
	}, &o, nil, defaults, func(_ *cobra.Command, args []string) error { return runCompose(o, args) })
}

func runCompose(o composeOptions, files []string) error {
	plan, err := o.composing.plan()
	if err != nil {
		return err
	}
	plan.Documents = o.Documents
	// An argument may hold commas; a part of --inputs cannot.
	for _, arg := range append(joinInputs(o.Inputs), files...) {
		in, err := datasets.ParseInput(arg)
		if err != nil {
			return err
		}
		plan.Inputs = append(plan.Inputs, in)
	}
	if len(plan.Inputs) == 0 {
		return errors.New("no question files given")
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	m, err := plan.Run(o.Dir)
	if err != nil {
		return err
	}
	return printOutputs(o.Dir, m)
}

// joinInputs puts together inputs that the list's commas took apart: a part
// that is a bare key=value belongs to what follows.
func joinInputs(parts []string) []string {
	var out []string
	open := ""
	for _, p := range parts {
		if bareSetting(p) {
			open += p + ","
			continue
		}
		out = append(out, open+p)
		open = ""
	}
	if open != "" {
		out = append(out, open)
	}
	return out
}

// bareSetting reports whether a part is key=value without a path.
func bareSetting(part string) bool {
	in, err := datasets.ParseInput(part + ":x")
	return err == nil && in.Path == "x"
}

func printOutputs(dir string, m *datasets.Manifest) error {
	for _, in := range m.Inputs {
		fmt.Printf("%-60s %7d questions, %d bad records skipped\n", in.Path, in.Questions, in.Skipped)
	}
	if r := m.Refused; r != nil {
		fmt.Printf("left out: %d with ';' in the question, %d without a usable gold, %d twice, %d in another split\n",
			r.Separator, r.NoGold, r.Duplicate, r.OtherSplit)
	}
	for _, out := range m.Outputs {
		fmt.Printf("%-60s %7d records\n", filepath.Join(dir, out.Path), out.Records)
	}
	return nil
}
