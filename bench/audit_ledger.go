package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/eval/audit/ledger"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/trace/rollouts"
)

// auditLedgerOptions holds the settings of bench audit ledger.
type auditLedgerOptions struct {
	From      string  `flag:"from" help:"format of the files: ledger, or one that bench import takes; empty: by name and first record"`
	Tokenizer string  `flag:"tokenizer" help:"folder of a model, tokenizer.json or GGUF file that says what ids mean; empty: what needs it is not checked"`
	StopIDs   []int32 `flag:"stop-ids" help:"ids that end an output; empty: found in the outputs"`
	Findings  int     `flag:"findings" help:"findings that are printed below the table, a check"`
	JSON      bool    `flag:"json" help:"print the checks as JSON on standard output instead of a table"`
}

func newAuditLedger() *cobra.Command {
	var o auditLedgerOptions
	defaults := func() error {
		o = auditLedgerOptions{Findings: 3}
		return nil
	}
	return command(&cobra.Command{
		Use:   "ledger FILE...",
		Args:  cobra.MinimumNArgs(1),
		Short: "Check what a ledger, or anyone's rollouts, show without the model",
		Long: `Checks recorded trajectories without their model: that ids and log-probs correspond, stop
tokens stand once and last, contexts hold what their spans claim and begin alike, later
prompts show the very ids that were sampled, nothing was cut, and the sampler's settings
are known and fit the log-probs' meaning. With --tokenizer also that outputs' text encodes
to the same ids, and that turns are parted alike.

A failure is a contradiction: a record that disagrees with itself, a later prompt with
other ids than were sampled, log-probs that cannot be those of what was drawn. A warning
is what a trainer should know, and what the record does not say. The exit status is 0
only without failures.`,
		Example: `  bench audit ledger runs/mini/eval/q2/memopd/seed-0/ledger.jsonl
  bench audit ledger rollouts.jsonl --from nemo-gym --tokenizer Qwen3-0.6B`,
	}, &o, nil, defaults, func(cmd *cobra.Command, files []string) error {
		return runAuditLedger(cmd.OutOrStdout(), o, files)
	})
}

func runAuditLedger(w io.Writer, o auditLedgerOptions, files []string) error {
	tok, err := tokenizerAt(o.Tokenizer)
	if err != nil {
		return err
	}
	a := ledger.New(ledger.Options{Tokenizer: tok, StopIDs: o.StopIDs})
	trajectories, malformed := 0, 0
	refused := map[string]int{}
	for _, file := range files {
		err := readAny(file, o.From, func(t *trace.Trajectory, err error) error {
			var r *rollouts.Refused
			switch {
			case errors.As(err, &r) && r.Lacks != "":
				note("refused: %v", r)
				refused[r.Lacks]++
			case errors.As(err, &r):
				note("malformed: %v", r)
				malformed++
			case err != nil:
				return err
			default:
				trajectories++
				a.Add(t)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if trajectories == 0 {
		return fmt.Errorf("no trajectories in %s: nothing was audited", strings.Join(files, ", "))
	}
	if o.JSON {
		err = encodeJSON(w, a.Rows())
	} else if err = auditLedgerTable(a, trajectories).WriteText(w); err == nil {
		printFindings(w, a, o.Findings)
		printCounts(w, "lacks", a.Lacks(), "trajectories")
		printCounts(w, "refused for the lack of", refused, "records")
	}
	if err != nil {
		return err
	}
	if n := a.Failures(); n > 0 || malformed > 0 {
		return fmt.Errorf("the audit failed: %d failures, %d malformed records", n, malformed)
	}
	return nil
}

func auditLedgerTable(a *ledger.Audit, trajectories int) *results.Table {
	t := &results.Table{
		Title: fmt.Sprintf("Ledger audit: %d trajectories", trajectories),
		Notes: []string{"trajectories, calls, tokens: what a check looked at; failures contradict, warnings are for a trainer to know."},
	}
	for _, name := range []string{"check", "trajectories", "calls", "tokens", "failures", "warnings"} {
		t.Columns = append(t.Columns, results.Column{Head: name, Right: name != "check", Keys: []string{name}})
	}
	for _, r := range a.Rows() {
		t.Rows = append(t.Rows, []results.Cell{results.Text(r.Check), results.Text(r.Trajectories), results.Text(r.Calls),
			results.Text(r.Tokens), results.Text(r.Failures), results.Text(r.Warnings)})
	}
	return t
}

// printFindings prints the first findings of each check, failures first.
func printFindings(w io.Writer, a *ledger.Audit, most int) {
	for _, row := range a.Rows() {
		found := a.Findings(row.Check)
		slices.SortStableFunc(found, func(x, y ledger.Finding) int {
			switch {
			case x.Failure == y.Failure:
				return 0
			case x.Failure:
				return -1
			}
			return 1
		})
		for _, f := range found[:min(most, len(found))] {
			kind := "warning"
			if f.Failure {
				kind = "FAILURE"
			}
			fmt.Fprintf(w, "%s %s: %v\n", kind, row.Check, f)
		}
		if rest := row.Failures + row.Warnings - most; rest > 0 && most > 0 {
			fmt.Fprintf(w, "        %s: %d more\n", row.Check, rest)
		}
	}
}

// ledgerFormat is the name of our own files among the formats.
const ledgerFormat = "ledger"

// readAny hands out the trajectories of a ledger, which need not validate, or of
// others' rollouts.
func readAny(file, from string, take func(*trace.Trajectory, error) error) error {
	if from == "" && looksLikeLedger(file) {
		from = ledgerFormat
	}
	if from != ledgerFormat {
		var format string
		return readForeign(file, from, &format, take)
	}
	r, err := trace.OpenUnchecked(file)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		t, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err := take(t, err); err != nil {
			return err
		}
	}
}

// looksLikeLedger says whether a file is a Parquet file or its first line states a
// ledger's schema.
func looksLikeLedger(file string) bool {
	if strings.HasSuffix(strings.ToLower(file), ".parquet") {
		return true
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	var head struct {
		Schema *int `json:"schema"`
	}
	line, _ := bufio.NewReaderSize(f, 1<<16).ReadBytes('\n')
	return json.Unmarshal(line, &head) == nil && head.Schema != nil
}

// tokenizerAt reads the tokenizer of a folder, a GGUF file or a tokenizer.json; nil
// for an empty path.
func tokenizerAt(path string) (*tokenizer.Tokenizer, error) {
	switch {
	case path == "":
		return nil, nil
	case strings.HasSuffix(path, ".json"):
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		t, err := tokenizer.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return t, nil
	}
	found, err := locateModel(path)
	if err != nil {
		return nil, err
	}
	return model.LoadTokenizer(found)
}
