package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/train"
)

// runsOptions holds the settings of bench runs.
type runsOptions struct {
	Out  string `flag:"out" help:"folder of the runs"`
	JSON bool   `flag:"json" help:"print the list as JSON"`
}

func newRuns() *cobra.Command {
	o := runsOptions{}
	defaults := func() error {
		o = runsOptions{Out: defaultCommon(presetMini).Out}
		return nil
	}
	return quietCommand(&cobra.Command{
		Use:   "runs",
		Short: "List the training runs and how they stand",
		Long: `Lists the runs under --out: state, steps done, F1 of the last dev evaluation by
horizon, commit, start, time of the last record. A run is

  running    a process holds its folder
  finished   its model is there
  failed     it ended with an error, which is shown
  stopped    interrupted or killed; bench train --resume goes on`,
		Example: `  bench runs
  bench runs --out runs --json`,
	}, &o, defaults, func(cmd *cobra.Command, _ []string) error { return listRuns(cmd.OutOrStdout(), o) })
}

func listRuns(w io.Writer, o runsOptions) error {
	folders, err := findRuns(o.Out)
	if err != nil {
		return err
	}
	list := []*runInfo{}
	for _, dir := range folders {
		r, err := inspectRun(dir)
		if err != nil {
			note("left out: %v", err)
			continue
		}
		list = append(list, r)
	}
	if o.JSON {
		return encodeJSON(w, list)
	}
	if len(list) == 0 {
		note("no runs under %s", o.Out)
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PRESET\tVARIANT\tSEED\tSTATE\tSTEP\tDEV F1\tCOMMIT\tSTARTED\tLAST RECORD")
	for _, r := range list {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Preset, r.Variant, r.Seed, r.State, stepText(r), devText(r), commitText(r), timeText(r.Started), timeText(r.Updated))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range list {
		if r.Failure != "" {
			fmt.Fprintf(w, "%s: %s\n", r.name(), firstLine(r.Failure))
		}
	}
	return nil
}

// stepText is the steps done, of those meant where that is known.
func stepText(r *runInfo) string {
	if r.Steps == 0 {
		return fmt.Sprint(r.Step)
	}
	return fmt.Sprintf("%d/%d", r.Step, r.Steps)
}

// devText is the last dev evaluation by horizon, and its step where steps were done since.
func devText(r *runInfo) string {
	if r.EvalStep < 0 {
		return "-"
	}
	var parts []string
	for _, m := range r.Eval {
		parts = append(parts, fmt.Sprintf("%s %.3f", shortEval(m), m.Value))
	}
	text := strings.Join(parts, " ")
	if r.EvalStep != r.Step {
		text += fmt.Sprintf(" (step %d)", r.EvalStep)
	}
	return text
}

// shortEval is the horizon of a dev metric.
func shortEval(m train.Metric) string {
	return strings.TrimSuffix(strings.TrimPrefix(m.Name, evalPrefix), "_f1")
}

func commitText(r *runInfo) string {
	text := r.Commit[:min(9, len(r.Commit))]
	switch {
	case text == "":
		return "-"
	case r.Dirty:
		return text + "+" // with uncommitted changes
	}
	return text
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
