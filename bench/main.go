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
	"strings"
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
	cobra.AddTemplateFunc("plain", func(usages string) string { return strings.ReplaceAll(usages, "[=true|false]", "") })
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages |", "Flags.FlagUsages | plain |"))
	root.InitDefaultCompletionCmd()
	knowSubcommands(root)
	return root
}

// knowSubcommands makes a mistyped subcommand an error that lists the known ones, in
// place of a help text and success, and gives --help a plain line.
func knowSubcommands(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Usage = "show this text"
	var known []string
	for _, c := range cmd.Commands() {
		knowSubcommands(c)
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	if len(known) == 0 {
		return
	}
	cmd.Args, cmd.DisableFlagsInUseLine = cobra.ArbitraryArgs, true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownName("command of "+cmd.CommandPath(), args[0], known)
		}
		return cmd.Help()
	}
}
