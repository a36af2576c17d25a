package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// auditUpdatesOptions holds the settings of bench audit updates. --update lists the
// updates here.
type auditUpdatesOptions struct {
	auditSource
	Tolerance            float64 `flag:"tolerance" help:"largest 99th percentile of |Δ log-prob| that passes, in nats"`
	ClipEpsilon          float64 `flag:"clip-epsilon" help:"a ratio outside 1 ± this is a false PPO clip"`
	GradientTrajectories int     `flag:"gradient-trajectories" min:"-1" help:"how many of an update's first trajectories the gradient error is over; 0: none, -1: all"`
	Certificate          string  `flag:"certificate" help:"JSON file that the figures are written to, with command, settings, hashes, commit and machine"`
	JSON                 bool    `flag:"json" help:"print the updates as JSON on standard output instead of a table"`
	Device               string  `flag:"device" help:"where the model runs: cpu, cuda or cuda:N"`
}

// paperUpdates are the paper's five, with sizes that cut in a preset's rollouts, and
// the one that keeps everything.
func paperUpdates(preset string) string {
	if onWiki(preset) {
		return "full-response,suffix:8,summary,window:2,refresh,full"
	}
	return "full-response,suffix:64,summary,window:2,refresh,full"
}

func newAuditUpdates() *cobra.Command {
	o := auditUpdatesOptions{auditSource: auditSource{Preset: presetMini}}
	defaults := func() (err error) {
		source, err := defaultAuditSource(o.Preset)
		if err != nil {
			return err
		}
		source.Update = ""
		o = auditUpdatesOptions{
			auditSource: source, Tolerance: audit.DefaultTolerance, ClipEpsilon: audit.DefaultClipEpsilon,
			GradientTrajectories: 8, Device: "cpu",
		}
		if o.Preset == presetSmall { // minutes a trajectory
			o.Trajectories, o.GradientTrajectories = 8, 0
		}
		return nil
	}
	return command(&cobra.Command{
		Use:   "updates",
		Short: "Show that each context update can be trained on in the states that it made",
		Long: `Rolls out the preset's agent with each context update of the paper (its table T4),
compiles the calls, and compares every sampled token with an independent forward pass
of its call, as bench audit rce does. The flattened history stands beside it as a
control. --update lists other updates, with commas; with --ledger or --runs the
updates are those of the recorded trajectories.

The exit status is 0 when every update passes and 1 otherwise. The model has learned
one update (the mini preset's: mem1), so that what it scores with another says how far
it carries over, not how good the update is.`,
		Example: `  bench audit updates
  bench audit updates --update window:1,window:2,window:4 --horizon q8
  bench audit updates --preset small --trajectories 4
  bench audit updates --certificate updates.json`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error {
		return runAuditUpdates(cmd.Context(), cmd.OutOrStdout(), o)
	})
}

func runAuditUpdates(ctx context.Context, w io.Writer, o auditUpdatesOptions) error {
	compute := train.Compute{Device: o.Device, DType: train.Float32}
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	in, names, err := o.rollouts(ctx, compute)
	if err != nil {
		return err
	}
	defer in.model.Free()
	var reports []*audit.UpdateReport
	for _, name := range names {
		r, err := o.audit(ctx, in, name, compute)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if err := o.print(w, reports); err != nil {
		return err
	}
	if err := o.certify(in, reports, manifest); err != nil {
		return err
	}
	var failed []error
	for _, r := range reports {
		failed = append(failed, r.Verdict())
	}
	return errors.Join(failed...)
}

// rollouts makes or reads the trajectories, and lists their updates.
func (o auditUpdatesOptions) rollouts(ctx context.Context, c train.Compute) (*auditInput, []string, error) {
	var names []string
	for _, name := range strings.Split(o.Update, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	o.Update = ""
	if len(o.Ledger) > 0 || o.Runs != "" {
		return o.recorded(ctx, names, c)
	}
	if len(names) == 0 {
		names = strings.Split(paperUpdates(o.Preset), ",")
	}
	updates := make([]agent.Update, len(names))
	for i, name := range names {
		var err error
		if updates[i], err = agent.UpdateNamed(name); err != nil {
			return nil, nil, err
		}
	}
	if o.Trajectories < 1 {
		return nil, nil, fmt.Errorf("trajectories is %d, want 1 or more of each update", o.Trajectories)
	}
	in, e, tasks, err := o.prepare(ctx, c.Trained())
	if err != nil {
		return nil, nil, err
	}
	defer e.Close()
	var all []*trace.Trajectory
	for i, name := range names {
		e.agent.Update, e.agent.IDPrefix = updates[i], name+"/"
		if err = o.sample(ctx, in, e, tasks); err == nil {
			err = reward("f1", tasks, in.trajectories)
		}
		if err != nil {
			in.model.Free()
			return nil, nil, fmt.Errorf("context update %s: %w", name, err)
		}
		all = append(all, in.trajectories...)
	}
	in.trajectories = all
	if err := o.keep(in); err != nil {
		in.model.Free()
		return nil, nil, err
	}
	return in, names, nil
}

// recorded reads ledgers. No names stands for all updates that they hold.
func (o auditUpdatesOptions) recorded(ctx context.Context, names []string, c train.Compute) (*auditInput, []string, error) {
	source := o.auditSource
	source.Update = speakingPreset(source.Preset).Update // --update chooses among the recorded ones
	in, err := source.open(ctx, c.Trained())
	if err != nil {
		return nil, nil, err
	}
	var held []string
	for _, t := range in.trajectories {
		if !slices.Contains(held, t.Agent) {
			held = append(held, t.Agent)
		}
	}
	for _, name := range names {
		if !slices.Contains(held, name) {
			in.model.Free()
			return nil, nil, fmt.Errorf("the ledgers hold no trajectory of the context update %q (they hold: %s)", name, strings.Join(held, ", "))
		}
	}
	if len(names) == 0 {
		names = held
	}
	return in, names, nil
}

// audit measures one update's trajectories.
func (o auditUpdatesOptions) audit(ctx context.Context, in *auditInput, name string, c train.Compute) (*audit.UpdateReport, error) {
	var own []*trace.Trajectory
	for _, t := range in.trajectories {
		if t.Agent == name {
			own = append(own, t)
		}
	}
	var bar *progress
	r, err := audit.Update(ctx, name, audit.Options{
		Model: in.model, Trajectories: own, Tolerance: o.Tolerance, ClipEpsilon: o.ClipEpsilon,
		Compute: c, GradientTrajectories: o.GradientTrajectories, Seed: o.Seed,
		Progress: func(done, total int) {
			if bar == nil {
				bar = newProgress("audit "+name+" (passes)", int64(total))
			}
			bar.set(int64(done))
		},
	})
	if err == nil {
		bar.done()
	}
	return r, err
}

// print writes the table, or with --json the rows.
func (o auditUpdatesOptions) print(w io.Writer, reports []*audit.UpdateReport) error {
	if !o.JSON {
		return audit.UpdatesTable(reports).WriteText(w)
	}
	return encodeJSON(w, updateRows(reports))
}

func updateRows(reports []*audit.UpdateReport) []audit.UpdateRow {
	rows := make([]audit.UpdateRow, len(reports))
	for i, r := range reports {
		rows[i] = r.Row()
	}
	return rows
}

// updatesCertificate is what an audit of updates is kept as.
type updatesCertificate struct {
	Schema    int               `json:"schema"`
	Pass      bool              `json:"pass"` // every update
	Rule      string            `json:"rule"`
	Tolerance float64           `json:"tolerance"`
	Updates   []audit.UpdateRow `json:"updates"`
	Model     string            `json:"model"` // sha256, as in the certificate of bench audit rce
	ModelFrom string            `json:"model_from"`
	Tokenizer string            `json:"tokenizer"`
	Config    string            `json:"config"` // sha256 of the settings in Manifest
	Ledgers   []audit.Ledger    `json:"ledgers"`
	Manifest  *results.Manifest `json:"manifest"`
}

// certify writes the figures to a file.
func (o auditUpdatesOptions) certify(in *auditInput, reports []*audit.UpdateReport, m *results.Manifest) error {
	if o.Certificate == "" {
		return nil
	}
	model, err := audit.HashModel(in.model)
	if err != nil {
		return err
	}
	tokenizer, err := in.tokenizerHash()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(mustConfigJSON(&o))
	c := updatesCertificate{
		Schema: audit.CertificateSchema, Pass: true, Rule: reports[0].RCE.Rule(), Tolerance: o.Tolerance, Updates: updateRows(reports),
		Model: model, ModelFrom: in.from, Tokenizer: tokenizer, Config: hex.EncodeToString(sum[:]), Ledgers: in.ledgers, Manifest: m,
	}
	for _, r := range reports {
		c.Pass = c.Pass && r.Verdict() == nil
	}
	m.Ended = time.Now().UTC()
	if err := os.MkdirAll(filepath.Dir(o.Certificate), 0o755); err != nil {
		return err
	}
	return results.WriteJSON(o.Certificate, c)
}
