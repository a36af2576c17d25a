package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/memopd/memopd-bench/train"
)

// watchOptions holds the settings of bench watch.
type watchOptions struct {
	Out     string        `flag:"out" help:"folder of the runs"`
	Metrics []string      `flag:"metrics" help:"metrics to show, by their names in metrics.jsonl; empty: the main ones"`
	Every   time.Duration `flag:"every" help:"time between two looks"`
	Once    bool          `flag:"once" help:"show the runs as they are and end"`
}

func newWatch() *cobra.Command {
	o := watchOptions{}
	defaults := func() error {
		o = watchOptions{Out: defaultCommon(presetMini).Out, Every: 2 * time.Second}
		return nil
	}
	return quietCommand(&cobra.Command{
		Use:   "watch [RUN...]",
		Short: "Watch training runs in the terminal",
		Long: `Shows runs while they go on: state, steps, seconds a step, time left (evaluations
not counted), the main metrics and the dev evaluations with their course. A RUN is a
folder, or the end of its path (memopd/seed-0; memopd: all its seeds); without one,
all that are running. Without a terminal a line is printed for each run that has
gone on. It ends when all runs are finished or have failed, or with Ctrl-C.`,
		Example: `  bench watch
  bench watch memopd/seed-0 ppo/seed-0
  bench watch runs/mini/memopd/seed-0 --metrics losses/entropy,actor/ratio_max --once`,
		Args: cobra.ArbitraryArgs,
	}, &o, defaults, func(cmd *cobra.Command, args []string) error {
		return runWatch(cmd.Context(), o, args, cmd.OutOrStdout())
	})
}

func runWatch(ctx context.Context, o watchOptions, args []string, out io.Writer) error {
	if o.Every < 100*time.Millisecond {
		return fmt.Errorf("every is %s, want 100ms or more", o.Every)
	}
	runs, err := o.runs(args)
	if err != nil {
		return err
	}
	for _, w := range runs {
		if _, err := w.look(); err != nil {
			return err
		}
	}
	if err := o.checkMetrics(runs); err != nil {
		return err
	}
	if len(o.Metrics) == 0 {
		o.Metrics = watchedMetrics
	}
	f, isFile := out.(*os.File)
	terminal := isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	switch {
	case o.Once:
		width := 100
		if terminal {
			width, _ = terminalSize(f)
		}
		return printLines(out, frame(runs, o.Metrics, width, 0))
	case terminal:
		return o.live(ctx, runs, f)
	}
	return o.plain(ctx, runs, out)
}

// runs are those that the arguments name, or else all that are running.
func (o watchOptions) runs(args []string) ([]*watched, error) {
	var folders []string
	for _, arg := range args {
		found, err := locateRuns(o.Out, arg)
		if err != nil {
			return nil, err
		}
		for _, dir := range found {
			if !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	if len(args) == 0 {
		all, err := findRuns(o.Out)
		if err != nil {
			return nil, err
		}
		for _, dir := range all {
			if held, err := lockHeld(dir); err != nil {
				return nil, err
			} else if held {
				folders = append(folders, dir)
			}
		}
		if len(folders) == 0 && len(all) > 0 {
			return nil, fmt.Errorf("no run under %s is running; name one to see how it went (known: %s)", o.Out, strings.Join(all, ", "))
		}
		if len(folders) == 0 {
			return nil, fmt.Errorf("there are no runs under %s (--out names another folder)", o.Out)
		}
	}
	var runs []*watched
	for _, dir := range folders {
		runs = append(runs, newWatched(dir))
	}
	return runs, nil
}

// checkMetrics refuses a metric that no run has, once there are records.
func (o watchOptions) checkMetrics(runs []*watched) error {
	known := train.Record{}
	for _, w := range runs {
		for _, r := range w.tail.records {
			for _, m := range r {
				known.Set(m.Name, 0)
			}
		}
	}
	var names []string
	for _, m := range known {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	for _, name := range o.Metrics {
		if _, ok := known.Get(name); !ok && len(names) > 0 {
			return unknownName("metric", name, names)
		}
	}
	return nil
}

// frame is all runs, in at most height lines where that is not 0.
func frame(runs []*watched, metrics []string, width, height int) []string {
	var lines []string
	for i, w := range runs {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, w.block(metrics, width)...)
	}
	if height > 0 && len(lines) > height {
		lines = overview(runs, metrics, width, height)
	}
	return lines
}

// overview shows fewer metrics of each run, or just its head, so that all runs are
// seen; what does not fit even so is counted.
func overview(runs []*watched, metrics []string, width, height int) []string {
	each := max(1, height/len(runs))
	var lines []string
	for _, w := range runs {
		block := w.block(metrics, width)
		lines = append(lines, block[:min(each, len(block))]...)
	}
	if len(lines) > height {
		hidden := len(lines) - height + 1
		lines = append(lines[:height-1], cutTo(fmt.Sprintf("and %d more", hidden), width))
	}
	return lines
}

// plain prints a line for each run at first and when it has gone on.
func (o watchOptions) plain(ctx context.Context, runs []*watched, out io.Writer) error {
	for _, w := range runs {
		if err := printLines(out, []string{w.line(o.Metrics)}); err != nil {
			return err
		}
	}
	for !allOver(runs) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.Every):
		}
		for _, w := range runs {
			changed, err := w.look()
			if err == nil && changed {
				err = printLines(out, []string{w.line(o.Metrics)})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func allOver(runs []*watched) bool {
	return !slices.ContainsFunc(runs, func(w *watched) bool { return !w.over() })
}

func printLines(out io.Writer, lines []string) error {
	_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n")
	return err
}

// Control sequences of terminals (ECMA-48, xterm): another screen without a cursor and
// back, to the top left, clear the rest of a line, of the screen.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// live draws the runs on a screen of its own until all are over or ctx ends, and
// leaves the last picture on the terminal's.
func (o watchOptions) live(ctx context.Context, runs []*watched, out *os.File) (err error) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return err
	}
	defer func() {
		_, left := io.WriteString(out, leaveScreen)
		width, _ := terminalSize(out)
		if err == nil && left == nil {
			err = printLines(out, frame(runs, o.Metrics, width, 0))
		}
	}()
	look := time.NewTicker(o.Every)
	defer look.Stop()
	for {
		width, height := terminalSize(out)
		lines := frame(runs, o.Metrics, width, height)
		if _, err := io.WriteString(out, goHome+strings.Join(lines, clearLine+"\r\n")+clearLine+clearBelow); err != nil {
			return err
		}
		if allOver(runs) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
			continue
		case <-look.C:
		}
		for _, w := range runs {
			if _, err := w.look(); err != nil {
				return err
			}
		}
	}
}

// terminalSize is a terminal's size in columns and lines, 80 by 24 where it does not
// say.
func terminalSize(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 1 || height < 1 {
		return 80, 24
	}
	return width, height
}
