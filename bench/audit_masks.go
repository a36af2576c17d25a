package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// auditMasksOptions holds the settings of bench audit masks.
type auditMasksOptions struct {
	auditSource
	judging
	Domain               []string `flag:"domain" help:"layouts whose action domains are compared, the exact one first"`
	ClipEpsilon          float64  `flag:"clip-epsilon" help:"clip range of the PPO loss"`
	GradientTrajectories int      `flag:"gradient-trajectories" min:"-1" help:"how many of the first trajectories the gradients are over; 0: none, -1: all"`
	Record               string   `flag:"record" help:"JSON file that the domains are written to, with how they came about"`
	JSON                 bool     `flag:"json" help:"print the domains as JSON on standard output instead of a table"`
	Device               string   `flag:"device" help:"where models run: cpu, cuda or cuda:N"`
}

func newAuditMasks() *cobra.Command {
	o := auditMasksOptions{auditSource: auditSource{Preset: presetMini}}
	defaults := func() (err error) {
		o = auditMasksOptions{
			Domain: []string{"aligned", "trajectory-mask", "response-mask"}, ClipEpsilon: audit.DefaultClipEpsilon,
			GradientTrajectories: -1, Device: "cpu", auditSource: auditSource{Preset: o.Preset},
		}
		if o.Preset == presetSmall { // minutes a trajectory
			o.GradientTrajectories = 4
		}
		o.auditSource, err = defaultAuditSource(o.Preset)
		return err
	}
	return command(&cobra.Command{
		Use:   "masks",
		Short: "Count what wrong action masks train on, and what that does to the gradient",
		Long: `Counts the positions that each action mask takes for sampled tokens: the exact one, a
trajectory mask (observations too), a response mask (context copies too). Then takes the
gradient of the PPO loss, of the entropy and of the KL to the teacher over each, all in
aligned states: its norm, and its cosine with the exact one's. Copies are counted twice,
once where they were sampled and once in a state in which they were not.

A spurious position has the model's own log-prob as its old one and its call's advantage
(one drawn a call), as where a trainer broadcasts one.`,
		Example: `  bench audit masks
  bench audit masks --runs runs/small/eval/q2/sft/seed-0 --gradient-trajectories 4`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error {
		return runAuditMasks(cmd.Context(), cmd.OutOrStdout(), o)
	})
}

func runAuditMasks(ctx context.Context, w io.Writer, o auditMasksOptions) error {
	var domains []align.Layout
	for _, name := range o.Domain {
		l, err := align.LayoutNamed(name)
		if err != nil {
			return err
		}
		domains = append(domains, l)
	}
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	compute := train.Compute{Device: o.Device, DType: train.Float32}
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	in, err := o.auditSource.open(ctx, compute.Trained())
	if err != nil {
		return err
	}
	defer in.model.Free()
	var teacher *model.Decoder
	if o.GradientTrajectories != 0 {
		var from string
		if teacher, from, err = o.judging.open(o.auditSource, in.tokenizer, compute.Frozen()); err != nil {
			return err
		}
		defer teacher.Free()
		note("teacher of the KL loss: %s", from)
	}
	var bar *progress
	report, err := audit.Masks(ctx, audit.MaskOptions{
		Model: in.model, Teacher: teacher, Trajectories: in.trajectories, Domains: domains, ClipEpsilon: o.ClipEpsilon,
		Compute: compute, GradientTrajectories: o.GradientTrajectories, Seed: o.Seed,
		Progress: func(done, total int) {
			if bar == nil {
				bar = newProgress("audit (passes)", int64(total))
			}
			bar.set(int64(done))
		},
	})
	if err != nil {
		return err
	}
	bar.done()
	if o.Record != "" {
		if err := in.record(o.Record, manifest, teacher, report.Rows()); err != nil {
			return err
		}
	}
	if o.JSON {
		return encodeJSON(w, report.Rows())
	}
	return report.Table().WriteText(w)
}
