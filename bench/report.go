package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/report"
	"github.com/memopd/memopd-bench/results"
)

// reportOptions holds the settings of bench report.
type reportOptions struct {
	Results string `flag:"results" help:"folder of an outcome, as bench reproduce writes it"`
	Out     string `flag:"out" help:"the page; empty: report.html in a folder of the results' name under runs/report"`
	Figures string `flag:"figures" help:"folder for each picture as SVG and PNG; empty: figures beside the page, none: no files"`
}

func newReport() *cobra.Command {
	var o reportOptions
	return command(&cobra.Command{
		Use:   "report",
		Short: "Show an outcome as one HTML page with its pictures",
		Long: `Makes one page that needs no network: the paper's tables, learning curves, F1 and
costs by horizon, errors of the training states, context lengths, speed of packing,
and the recorded trajectories call by call. Each picture is also written as SVG
and as PNG for light and dark. What the results lack is named with the command that
makes it.`,
		Example: `  bench report --results results/mini --out report.html`,
	}, &o, nil, func() error {
		o = reportOptions{Results: filepath.Join("results", "mini")}
		return nil
	}, func(cmd *cobra.Command, _ []string) error { return runReport(cmd.OutOrStdout(), o) })
}

func runReport(out io.Writer, o reportOptions) error {
	outcome, err := report.Load(o.Results)
	if err != nil {
		return err
	}
	if o.Out == "" {
		o.Out = filepath.Join("runs", "report", filepath.Base(o.Results), "report.html")
	}
	if o.Figures == "" {
		o.Figures = filepath.Join(filepath.Dir(o.Out), "figures")
	}
	var page bytes.Buffer
	if err := report.Write(&page, outcome); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.Out), 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := results.WriteFile(o.Out, page.Bytes()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	fmt.Fprintf(out, "report: %s (%s)\n", o.Out, byteSize(int64(page.Len())))
	for _, m := range outcome.AllMissing() {
		fmt.Fprintf(out, "missing: %s: %s\n", m.What, m.Command)
	}
	if o.Figures == "none" {
		return nil
	}
	names, err := report.WriteFigures(o.Figures, outcome.Figures())
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	fmt.Fprintf(out, "figures: %d files in %s\n", len(names), o.Figures)
	return nil
}
