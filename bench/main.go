// Command bench makes data and indexes, trains compact-memory agents and
// evaluates them. Each subcommand is one file; it wires the packages' parts
// together and holds no algorithm.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
)

// libtorch keeps its number of threads for an OS thread: on another one the last
// bits could differ.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // a second Ctrl-C ends at once
		<-ctx.Done()
		stop()
	}()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "bench: interrupted:", err)
			os.Exit(130)
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "bench",
		Short: "Train and evaluate language-model agents with compact memory, state for state",
		Long: `MemOPD-bench records every model call of a compact-memory agent, compiles the
calls into training sequences that reproduce each call's state, and trains with
PPO and a teacher on those states (MemOPD, arXiv 2608.07068).`,
		Example: `  bench train --variant memopd      train an agent (mini preset, CPU, minutes)
  bench eval --horizon q16          a table of every variant trained so far`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newTrain(), newEval(), newTables(), newReport(), newPretrain(), newPlan(), newCheckDevice(), newData(), newIndex(), newSearch(), newRecall(), newServe(), newModel(), newExport(), newReplay(), newImport(), newAudit(), newReproduce(), newWatch(), newRuns(), newCompare())
	return root
}
