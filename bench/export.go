package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/export"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// exportOptions holds the settings of bench export.
type exportOptions struct {
	Ledger           string `flag:"ledger" help:"ledger to pack: .jsonl or .parquet"`
	Layout           string `flag:"layout" help:"how trajectories are laid out, by the name of a layout"`
	Out              string `flag:"out" help:"file that is written: .safetensors or .arrow"`
	Trajectories     int    `flag:"trajectories" help:"how many of the ledger's trajectories are taken; 0: all"`
	ShareSamples     bool   `flag:"share-samples" help:"samples of one task in one sequence, which stores what they begin with once; for the layout aligned"`
	PackedTokensMax  int    `flag:"packed-tokens-max" help:"longest sequence; longer trajectories are left out whole; 0: no limit"`
	TokensPerCallMax int    `flag:"tokens-per-call-max" help:"longest call, context and output; trajectories with a longer one are left out whole; 0: no limit"`
	TeacherFirstCall int    `flag:"teacher-first-call" help:"calls before this one are outside the teacher mask"`
	JSON             bool   `flag:"json" help:"print what was written as JSON"`
}

func newExport() *cobra.Command {
	o := exportOptions{Layout: "aligned", Out: "batch.safetensors"}
	return command(&cobra.Command{
		Use:   "export",
		Short: "Write packed batches for other training programs",
		Long: `Lays the trajectories of a ledger out and writes the sequences to a safetensors or
Arrow file: ids, positions, what each block sees, actions with the places that
predict them, masks, recorded log-probs, rewards. docs/EXPORT.md describes both;
scripts/examples/train_packed.py trains on one with PyTorch and transformers.`,
		Example: `  bench export --ledger runs/eval/dev-q2/memopd/seed-0/ledger.jsonl --out batch.safetensors
  bench export --ledger ledger.parquet --layout persistent --out batch.arrow`,
	}, &o, nil, func() error { return nil }, func(cmd *cobra.Command, _ []string) error {
		return runExport(cmd.OutOrStdout(), o)
	})
}

// exportWriters are the forms of a file by its extension.
var exportWriters = map[string]func(string, *export.Batch) error{
	".safetensors": export.WriteSafetensors,
	".arrow":       export.WriteArrow,
}

// exported is what bench export prints.
type exported struct {
	File         string         `json:"file"`
	Layout       string         `json:"layout"`
	Trajectories int            `json:"trajectories"`
	Sequences    int            `json:"sequences"`
	Tokens       int            `json:"tokens"`
	Actions      int            `json:"actions"`
	Rejected     map[string]int `json:"rejected,omitempty"`
	SHA256       string         `json:"sha256"`
}

func runExport(out io.Writer, o exportOptions) error {
	write := exportWriters[strings.ToLower(filepath.Ext(o.Out))]
	switch {
	case write == nil:
		return fmt.Errorf("--out %s: the name ends in neither .safetensors nor .arrow", o.Out)
	case o.Ledger == "":
		return fmt.Errorf("--ledger names no file")
	}
	layout, err := align.LayoutNamed(o.Layout)
	if err != nil {
		return err
	}
	if o.ShareSamples && layout.Name != "aligned" {
		return fmt.Errorf("--share-samples is of the layout aligned, not of %s", layout.Name)
	}
	b, rejected, err := exportBatch(o, layout)
	if err != nil {
		return err
	}
	if err := write(o.Out, b); err != nil {
		return err
	}
	sum, err := results.HashFile(o.Out)
	if err != nil {
		return err
	}
	r := exported{
		File: o.Out, Layout: layout.Name, Trajectories: len(b.Trajectories), Sequences: len(b.Sequences),
		Tokens: b.Tokens(), Actions: b.Actions(), Rejected: rejected, SHA256: sum,
	}
	if o.JSON {
		return json.NewEncoder(out).Encode(r)
	}
	fmt.Fprintf(out, "%s: %d trajectories as %d sequences of %d tokens, %d actions (%s)\n",
		r.File, r.Trajectories, r.Sequences, r.Tokens, r.Actions, r.Layout)
	for _, reason := range slices.Sorted(maps.Keys(rejected)) {
		fmt.Fprintf(out, "left out: %d (%s)\n", rejected[reason], reason)
	}
	return nil
}

// counted lists counts by name, sorted.
func counted(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// exportBatch lays the ledger's trajectories out and counts why some were left out.
func exportBatch(o exportOptions, layout align.Layout) (*export.Batch, map[string]int, error) {
	var all []*trace.Trajectory
	for t, err := range trace.All(o.Ledger) {
		if err != nil {
			return nil, nil, err
		}
		if all = append(all, t); len(all) == o.Trajectories {
			break
		}
	}
	limits := align.Options{MaxPackedTokens: o.PackedTokensMax, MaxCallTokens: o.TokensPerCallMax}
	if o.TeacherFirstCall > 0 {
		limits.Teacher = align.TeacherFromCall(o.TeacherFirstCall)
	}
	var b *export.Batch
	var rejected []*align.Rejected
	var err error
	if o.ShareSamples {
		b, rejected, err = export.BuildGroups(all, limits)
	} else {
		b, rejected, err = export.Build(all, layout, limits, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	reasons := map[string]int{}
	for _, r := range rejected {
		reasons[string(r.Reason)]++
	}
	if len(b.Sequences) == 0 {
		if len(rejected) > 0 {
			return nil, nil, fmt.Errorf("none of %d trajectories can be laid out (%s); the last: %w", len(all), counted(reasons), rejected[len(rejected)-1])
		}
		return nil, nil, fmt.Errorf("ledger %s holds no trajectories", o.Ledger)
	}
	if b.Metadata["ledger_sha256"], err = results.HashFile(o.Ledger); err != nil {
		return nil, nil, err
	}
	return b, reasons, nil
}
