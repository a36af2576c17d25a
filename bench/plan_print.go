package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/memopd/memopd-bench/train"
)

// gib is a number of bytes in GiB.
func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }

// print writes the plan as a table: a part a line, a phase a column.
func (r *planReport) print(out io.Writer) {
	fmt.Fprintf(out, "%s, %s: student %s", r.Preset, r.Stage, r.Student)
	if r.Teacher != nil {
		fmt.Fprintf(out, ", teacher %s", r.Teacher)
	}
	w := r.Workload
	fmt.Fprintf(out, "\nmicrobatch of %d packed tokens: prefix %d, %d calls, %d sampled tokens a call\n", w.PackedTokens, w.PrefixTokens, w.Calls, w.ResponseTokens)
	if r.Stage == "ppo" {
		fmt.Fprintf(out, "%d trajectories a step; %d rows of %d tokens sampled at once\n", w.Trajectories, w.SampledRows, w.ContextTokens)
	}
	var phases []train.Phase
	for _, phase := range train.Phases {
		if r.Phases[phase] > 0 {
			phases = append(phases, phase)
		}
	}
	line := func(name string, cell func(train.Phase) string) {
		fmt.Fprintf(out, "%-40s", name)
		for _, phase := range phases {
			fmt.Fprintf(out, " %9s", cell(phase))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	line("GiB", func(p train.Phase) string { return string(p) })
	for _, part := range r.Parts {
		line(part.Name, func(p train.Phase) string {
			for _, at := range part.Phases {
				if at == p {
					return fmt.Sprintf("%.2f", gib(part.Bytes))
				}
			}
			return ""
		})
	}
	line("sum", func(p train.Phase) string { return fmt.Sprintf("%.2f", gib(r.Phases[p])) })
	fmt.Fprintf(out, "\nactivations of a microbatch: %.2f GiB with gradient checkpointing, %.2f GiB without\n",
		gib(r.Activations.Checkpointed), gib(r.Activations.Kept))
	for _, d := range r.Devices {
		d.print(out)
	}
}

func (p *planned) String() string { return fmt.Sprintf("%s (%d parameters)", p.Name, p.Parameters) }

// print says whether the plan fits, and what would change that.
func (d planDevice) print(out io.Writer) {
	fmt.Fprintf(out, "\n%g GB (%.1f GiB): ", d.GB, gib(d.Bytes))
	if d.Fits {
		fmt.Fprintf(out, "fits; %s needs %.1f GiB, %.1f GiB are left\n", d.Phase, gib(d.Peak), gib(d.Bytes-d.Peak))
		return
	}
	fmt.Fprintf(out, "does not fit; %s needs %.1f GiB, %.1f GiB too much\n", d.Phase, gib(d.Peak), gib(d.Peak-d.Bytes))
	for _, a := range d.Each {
		fmt.Fprintf(out, "  %-28s %6.1f GiB in %-9s (%s)\n", a.Changes[0], gib(a.Peak), a.Phase, a.Prices[0])
	}
	switch {
	case d.Together == nil:
	case d.Together.Fits:
		fmt.Fprintf(out, "  fits with %s: %.1f GiB in %s\n", strings.Join(d.Together.Changes, " "), gib(d.Together.Peak), d.Together.Phase)
	default:
		fmt.Fprintf(out, "  not even with all of these: %.1f GiB in %s; a smaller model, or a shorter microbatch (--length)\n", gib(d.Together.Peak), d.Together.Phase)
	}
}
