package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/trace/rollouts"
)

// importOptions holds the settings of bench import.
type importOptions struct {
	From  string   `flag:"from" help:"format of the files: nemo-gym, vllm, nemo-rl, verl, prime-rl, tinker or mem1; empty: by their first record"`
	In    []string `flag:"in" help:"files to import: JSON lines, or one JSON list or object"`
	Out   string   `flag:"out" help:"ledger to write, .jsonl or .parquet"`
	Force bool     `flag:"force" help:"replace a ledger that is there"`
	JSON  bool     `flag:"json" help:"print the counts as JSON on standard output"`
}

func newImport() *cobra.Command {
	var o importOptions
	defaults := func() error {
		o = importOptions{}
		return nil
	}
	var list strings.Builder
	for _, f := range rollouts.Formats() {
		fmt.Fprintf(&list, "\n  %-10s %s", f.Name, f.Description)
	}
	return command(&cobra.Command{
		Use:   "import",
		Short: "Make a ledger of rollouts that other programs recorded",
		Long: `Makes a ledger of rollouts that other programs recorded, as token ids, so that the
audits take them. Ids are never made from text: records without them are refused and
counted. What else a source lacks (log-probs, settings of the sampler, where contexts
came from) is named in each trajectory and in the counts. A malformed record ends the
import with its file, line and field.

Formats:` + list.String(),
		Example: `  bench import --in rollouts.jsonl --out ledger.parquet
  bench import --from tinker --in a.jsonl,b.jsonl --out ledger.jsonl --json`,
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error { return runImport(cmd.OutOrStdout(), o) })
}

// imported counts what an import took.
type imported struct {
	Format        string         `json:"format"` // of the last file
	Trajectories  int            `json:"trajectories"`
	Calls         int            `json:"calls"`
	SampledTokens int            `json:"sampled_tokens"`
	Lacks         map[string]int `json:"lacks"`   // trajectories by what their source lacks
	Refused       map[string]int `json:"refused"` // records by what they would need
}

func (n *imported) add(t *trace.Trajectory) {
	n.Trajectories++
	n.Calls += len(t.Calls)
	n.SampledTokens += t.SampledTokens()
	for _, name := range t.Lacks {
		n.Lacks[name]++
	}
}

func runImport(w io.Writer, o importOptions) error {
	if len(o.In) == 0 || o.Out == "" {
		return errors.New("import needs --in FILE and --out LEDGER")
	}
	if _, err := os.Stat(o.Out); err == nil && !o.Force {
		return fmt.Errorf("%s is there already (--force replaces it)", o.Out)
	}
	ledger, err := trace.Create(o.Out)
	if err != nil {
		return err
	}
	defer ledger.Discard()
	n := &imported{Lacks: map[string]int{}, Refused: map[string]int{}}
	for _, file := range o.In {
		err := readForeign(file, o.From, &n.Format, func(t *trace.Trajectory, err error) error {
			var refused *rollouts.Refused
			switch {
			case errors.As(err, &refused) && refused.Lacks != "":
				if n.Refused[refused.Lacks]++; n.Refused[refused.Lacks] <= 3 {
					note("refused: %v", refused)
				}
				return nil
			case err != nil:
				return err
			}
			n.add(t)
			if err := ledger.Write(t); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if n.Trajectories == 0 {
		return fmt.Errorf("nothing to import: every record was refused (no %s)", strings.Join(slices.Sorted(maps.Keys(n.Refused)), ", "))
	}
	if err := ledger.Close(); err != nil {
		return err
	}
	if o.JSON {
		return encodeJSON(w, n)
	}
	n.print(w)
	return nil
}

func (n *imported) print(w io.Writer) {
	fmt.Fprintf(w, "%d trajectories, %d calls, %d sampled tokens (%s)\n", n.Trajectories, n.Calls, n.SampledTokens, n.Format)
	printCounts(w, "lacks", n.Lacks, "trajectories")
	printCounts(w, "refused for the lack of", n.Refused, "records")
}

// printCounts prints a line a name, sorted.
func printCounts(w io.Writer, what string, counts map[string]int, of string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%s %s: %d %s\n", what, name, counts[name], of)
	}
}

// readForeign hands out what a file of a format holds, detected where from is empty,
// until take fails.
func readForeign(file, from string, format *string, take func(*trace.Trajectory, error) error) error {
	f, err := rollouts.Detect(file)
	if from != "" {
		f, err = rollouts.Named(from)
	}
	if err != nil {
		return err
	}
	*format = f.Name
	for t, err := range f.Read(file) {
		if err := take(t, err); err != nil {
			return err
		}
	}
	return nil
}
