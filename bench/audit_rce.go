package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// auditRCEOptions holds the settings of bench audit rce.
type auditRCEOptions struct {
	auditSource
	Layout               []string `flag:"layout" help:"the layouts that must pass, for the exit status: aligned, calls, persistent, ...; also recorded, the sampler's log-probs"`
	Controls             []string `flag:"controls" help:"with =, as in --controls=persistent,mem1: layouts that are shown beside, controls that are expected to fail and do not decide; all (or no value): every other layout"`
	Tolerance            float64  `flag:"tolerance" help:"largest 99th percentile of |Δ log-prob| that passes, in nats"`
	ClipEpsilon          float64  `flag:"clip-epsilon" help:"a ratio outside 1 ± this is a false PPO clip"`
	GradientTrajectories int      `flag:"gradient-trajectories" min:"-1" help:"how many of the first trajectories the gradient error is over; 0: none, -1: all"`
	Certificate          string   `flag:"certificate" help:"JSON file that the certificate is written to; in f32 alone"`
	HTML                 string   `flag:"html" help:"HTML file that the audit is shown in, complete in itself; with --controls all layouts side by side"`
	HTMLTrajectories     int      `flag:"html-trajectories" help:"how many trajectories the page shows token by token, those with the largest errors"`
	JSON                 bool     `flag:"json" help:"print the layouts as JSON on standard output instead of tables"`
	placing
}

func newAuditRCE() *cobra.Command {
	o := auditRCEOptions{auditSource: auditSource{Preset: presetMini}}
	defaults := func() (err error) {
		o = auditRCEOptions{
			Layout: []string{"aligned"}, Tolerance: audit.DefaultTolerance, ClipEpsilon: audit.DefaultClipEpsilon,
			GradientTrajectories: -1, HTMLTrajectories: 4, placing: placing{"cpu", train.Float32}, auditSource: auditSource{Preset: o.Preset},
		}
		if o.Preset == presetSmall { // minutes a trajectory
			o.GradientTrajectories = 4
		}
		o.auditSource, err = defaultAuditSource(o.Preset)
		return err
	}
	cmd := command(&cobra.Command{
		Use:   "rce",
		Short: "Compare layouts with the calls that were sampled, token by token",
		Long: `Scores every sampled token in a layout's rows and in an independent forward pass of
its own call in float32: error of its log-prob, top-1 flips, false PPO clips, largest
difference of a logit, error of the PPO loss's gradient; by call, and before and after
the first memory update. For each layout that fails, the first token that does and the
part of its state that is wrong.

A layout passes when its actions are exactly the sampled tokens, the 99th percentile
of |Δ log-prob| is within --tolerance, and there is no top-1 flip (but ties within the
tolerance) and no false clip. The exit status is 0 when every layout of --layout passes
and 1 otherwise; --controls only shows the others. In bf16 rounding alone exceeds the
tolerance: the report then shows the layouts beside that floor, and nothing is certified.

The trajectories are those of --ledger or --runs, else fresh rollouts of the preset.`,
		Example: `  bench audit rce --controls --certificate rce.json
  bench audit rce --controls --html rce.html
  bench audit rce --ledger runs/small/eval/q2/sft/seed-0/ledger.jsonl --trajectories 20
  bench audit rce --runs runs/mini/eval/q2/memopd/seed-0 --layout aligned,recorded --json
  bench audit rce --controls=persistent,mem1 --dtype bf16`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.Flags().Changed("controls") {
				return fmt.Errorf("%q stands alone: layouts follow --controls after a sign, as in --controls=%s", args[0], args[0])
			}
			return cobra.NoArgs(cmd, args)
		},
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error {
		return runAuditRCE(cmd.Context(), cmd.OutOrStdout(), o)
	})
	cmd.Flags().Lookup("controls").NoOptDefVal = allControls
	return cmd
}

// allControls stands for every layout that is not audited.
const allControls = "all"

// layouts are those that decide, and with --controls the others after them.
func (o auditRCEOptions) layouts() ([]align.Layout, error) {
	if len(o.Layout) == 0 {
		return nil, fmt.Errorf("no --layout: none to certify")
	}
	names := slices.Clone(o.Layout)
	for _, name := range o.Controls {
		if name != allControls {
			names = append(names, name)
			continue
		}
		for _, l := range align.Layouts() {
			names = append(names, l.Name)
		}
	}
	var list []align.Layout
	for i, name := range names {
		if name == audit.RecordedName || slices.Contains(names[:i], name) {
			continue
		}
		l, err := align.LayoutNamed(name)
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

func runAuditRCE(ctx context.Context, w io.Writer, o auditRCEOptions) error {
	layouts, err := o.layouts()
	if err != nil {
		return err
	}
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	compute := train.Compute{Device: o.Device, DType: o.DType}
	if _, err := o.placement(); err != nil {
		return err
	}
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	in, err := o.open(ctx, train.Compute{Device: o.Device, DType: train.Float32}.Trained())
	if err != nil {
		return err
	}
	defer in.model.Free()
	var bar *progress
	report, err := audit.RCE(ctx, audit.Options{
		Model: in.model, Trajectories: in.trajectories, Layouts: layouts, Align: in.layoutOptions(), Tolerance: o.Tolerance, ClipEpsilon: o.ClipEpsilon,
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
	if err := o.print(w, report); err != nil {
		return err
	}
	certificate, err := o.certify(in, report, manifest)
	if err != nil {
		return err
	}
	if err := o.show(in, report, layouts, certificate); err != nil {
		return err
	}
	if err := report.Verdict(o.Layout); err != nil {
		return fmt.Errorf("not certified: %w", err)
	}
	return nil
}

// print writes the tables and explanations, or with --json the layouts.
func (o auditRCEOptions) print(w io.Writer, r *audit.Report) error {
	if o.JSON {
		return encodeJSON(w, r.Rows())
	}
	if err := r.Table(o.Layout).WriteText(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := r.PartsTable().WriteText(w); err != nil {
		return err
	}
	for _, l := range r.All() {
		if !l.Pass && len(l.Failures) > 0 {
			what := "calls"
			if l.Failures[0].Call < 0 { // a wrong mask, once a trajectory
				what = "trajectories"
			}
			fmt.Fprintf(w, "\n%s fails in %d %s; the first: %s\n", l.Name, len(l.Failures), what, l.Failures[0])
		}
	}
	return nil
}

// certify makes the certificate where one is asked for, and writes it, or says why
// there is none.
func (o auditRCEOptions) certify(in *auditInput, r *audit.Report, m *results.Manifest) (*audit.Certificate, error) {
	c, err := r.Certify(o.Layout)
	if err != nil {
		note("%v", err)
		return nil, nil
	}
	if o.Certificate == "" && o.HTML == "" {
		return nil, nil
	}
	if c.Model, err = audit.HashModel(in.model); err != nil {
		return nil, err
	}
	if c.Tokenizer, err = in.tokenizerHash(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(mustConfigJSON(&o))
	c.Config, c.ModelFrom, c.LedgerFiles, c.Manifest = hex.EncodeToString(sum[:]), in.from, in.ledgers, m
	m.Ended = time.Now().UTC()
	if o.Certificate == "" {
		return c, nil
	}
	if err := results.WriteJSON(o.Certificate, c); err != nil {
		return nil, err
	}
	note("certificate: %s", o.Certificate)
	return c, nil
}
