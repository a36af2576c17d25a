package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/torch"
)

// common holds the settings that every command with a model has.
type common struct {
	Out     string `flag:"out" help:"folder that runs are written to"`
	Data    string `flag:"data" help:"folder of tasks and index: the mini-wiki's, made when it is not there, or of real questions (bench data build)"`
	Threads int    `flag:"threads" help:"threads of libtorch; 0: one a core"`
}

// realData is where the tasks of real questions lie unless told otherwise.
var realData = filepath.Join("data", "real")

func defaultCommon(preset string) common {
	return common{Out: "runs", Data: dataFolder(preset), Threads: 1}
}

// startTorch sets libtorch's threads. They are part of what makes a run
// repeatable: another number can change the last bits.
func startTorch(threads int) error {
	if threads < 0 {
		return fmt.Errorf("threads is %d, want 0 or more", threads)
	}
	torch.SetNumThreads(threadCount(threads))
	if torch.BLASCore() == "Prescott" {
		note("OpenBLAS takes this processor for a Prescott and is several times slower than it could be: run scripts/bench, or set OPENBLAS_CORETYPE=Haswell (with AVX-512: SkylakeX)")
	}
	return nil
}

// threadCount is a number of threads with 0 as one a core.
func threadCount(threads int) int {
	if threads == 0 {
		return runtime.NumCPU()
	}
	return threads
}

// libtorch says what computes, for manifests: the same seed gives the same bits
// only with the same.
func libtorch() string {
	if core := torch.BLASCore(); core != "" {
		return torch.Version() + ", OpenBLAS " + core
	}
	return torch.Version()
}

// printConfig shows a command's settings at its start.
func printConfig(w io.Writer, config any) {
	for _, f := range fields(config) {
		fmt.Fprintf(w, "  %-26s %s\n", f.name, f.String())
	}
}

// note prints a line of progress to standard error, apart from results.
func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// command completes a subcommand whose configuration is o: its flags, the
// preset that gives the defaults (nil: none), --config, and the settings' print
// at the start. A command takes no arguments unless its Args say so.
func command(cmd *cobra.Command, o any, preset *string, defaults func() error, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return newCommand(cmd, o, preset, false, defaults, run)
}

func newCommand(cmd *cobra.Command, o any, preset *string, quiet bool, defaults func() error, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	if err := defaults(); err != nil {
		panic(err) // the builtin defaults are wrong: a fault of this program
	}
	var file string
	bind(cmd.Flags(), o)
	cmd.Flags().StringVar(&file, "config", "", "JSON file with settings by the names of the flags; flags go before it")
	cmd.Flags().SortFlags = false
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := resolve(cmd.Flags(), o, file, func() error {
			if err := presetFromFile(file, preset, cmd); err != nil {
				return err
			}
			return defaults()
		}); err != nil {
			return err
		}
		if !quiet {
			note("%s:", cmd.CommandPath())
			printConfig(os.Stderr, o)
		}
		return run(cmd, args)
	}
	return cmd
}

// quietCommand is command without a preset and without the settings' print, for
// commands that only look.
func quietCommand(cmd *cobra.Command, o any, defaults func() error, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return newCommand(cmd, o, nil, true, defaults, run)
}

// presetFromFile takes the preset from a --config file where no flag gives it.
func presetFromFile(file string, preset *string, cmd *cobra.Command) error {
	if preset == nil || file == "" || cmd.Flags().Changed("preset") {
		return nil
	}
	var p struct {
		Preset *string `json:"preset"`
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return fmt.Errorf("config %s: %w", file, err)
	}
	if p.Preset != nil {
		*preset = *p.Preset
	}
	return nil
}

// mustConfigJSON is configJSON of a struct of plain values, which cannot fail
// unless one is not a number.
func mustConfigJSON(config any) []byte {
	data, err := configJSON(config)
	if err != nil {
		panic(err)
	}
	return data
}

// encodeJSON prints a value as indented JSON.
func encodeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
