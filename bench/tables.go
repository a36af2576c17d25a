package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/results"
)

// tablesOptions holds the settings of bench tables.
type tablesOptions struct {
	Format string   `flag:"format" help:"what is printed: text, markdown, csv, latex or json"`
	Table  []string `flag:"table" help:"tables to print, such as t1,t5; empty: all"`
	Check  bool     `flag:"check" help:"write and print nothing, fail where the tables' files are not what the records give"`
}

func newTables() *cobra.Command {
	var o tablesOptions
	defaults := func() error {
		o = tablesOptions{Format: "text"}
		return nil
	}
	return command(&cobra.Command{
		Use:   "tables [RESULTS]",
		Short: "Make the paper's tables from an outcome's records",
		Long: `Reads the records of an outcome (results/mini unless said otherwise), writes its
tables to RESULTS/tables, each as Markdown, CSV, LaTeX and JSON, and prints them:
T1 main results, T2 Wiki-RAG, T3 audit of states, T3b audit of the teacher, T4
context updates, T5 control of the teacher's state, T6 corruptions, T7 masks, T8
packing, T9 what goes beyond the paper. The paper's own numbers stand in rows or
columns called published. A table without evidence says so.`,
		Example: `  bench tables
  bench tables results/mini --table t1,t5 --format markdown
  bench tables results/mini --check`,
		Args: cobra.MaximumNArgs(1),
	}, &o, nil, defaults, func(cmd *cobra.Command, args []string) error {
		dir := filepath.Join("results", presetMini)
		if len(args) > 0 {
			dir = args[0]
		}
		return runTables(cmd.OutOrStdout(), o, dir)
	})
}

func runTables(w io.Writer, o tablesOptions, dir string) error {
	if !slices.Contains(results.TableFormats, o.Format) {
		return unknownName("format", o.Format, results.TableFormats)
	}
	evidence, err := results.LoadEvidence(dir)
	if err != nil {
		return err
	}
	tables, err := results.PaperTables(evidence)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	wanted, err := chooseTables(tables, o.Table)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, results.TablesFolder)
	if o.Check {
		return checkTables(folder, tables)
	}
	if err := results.WriteTables(folder, tables); err != nil {
		return err
	}
	note("wrote %s", folder)
	return printTables(w, o.Format, wanted)
}

// printTables prints tables with empty lines between them, as JSON in a list.
func printTables(w io.Writer, format string, tables []results.PaperTable) error {
	open, between, end := "", "\n", ""
	if format == "json" {
		open, between, end = "[", ",", "]\n"
	}
	fmt.Fprint(w, open)
	for i, t := range tables {
		if i > 0 {
			fmt.Fprint(w, between)
		}
		if err := t.Write(w, format); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, end)
	return err
}

// checkTables is an error that names the files that the records do not give.
func checkTables(folder string, tables []results.PaperTable) error {
	different, err := results.DifferentTables(folder, tables)
	if err != nil {
		return err
	}
	if len(different) > 0 {
		return fmt.Errorf("%s: not what the records give: %s; bench tables writes them anew", folder, strings.Join(different, ", "))
	}
	note("%s is what the records give", folder)
	return nil
}

// chooseTables keeps the tables of some names, in their own order; all for no names.
func chooseTables(tables []results.PaperTable, names []string) ([]results.PaperTable, error) {
	var known []string
	for _, t := range tables {
		known = append(known, t.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, unknownName("table", name, known)
		}
	}
	return slices.DeleteFunc(slices.Clone(tables), func(t results.PaperTable) bool {
		return len(names) > 0 && !slices.Contains(names, t.Name)
	}), nil
}
