package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/train"
)

// judging says which model is the teacher.
type judging struct {
	Teacher string `flag:"teacher" help:"the teacher's model, named as --model is; empty: the preset's"`
}

// auditTeacherOptions holds the settings of bench audit teacher.
type auditTeacherOptions struct {
	auditSource
	judging
	Tolerance float64 `flag:"tolerance" help:"top-1 ids whose log-probs lie within this in both states are tied, in nats"`
	Record    string  `flag:"record" help:"JSON file that the parts are written to, with how they came about"`
	JSON      bool    `flag:"json" help:"print the parts as JSON on standard output instead of a table"`
	placing
}

func newAuditTeacher() *cobra.Command {
	o := auditTeacherOptions{auditSource: auditSource{Preset: presetMini}}
	defaults := func() (err error) {
		o = auditTeacherOptions{Tolerance: audit.DefaultTolerance, placing: placing{"cpu", train.Float32}, auditSource: auditSource{Preset: o.Preset}}
		o.auditSource, err = defaultAuditSource(o.Preset)
		return err
	}
	return command(&cobra.Command{
		Use:   "teacher",
		Short: "Compare a teacher that reads the flattened history with itself in the sampled states",
		Long: `Scores every sampled token with the teacher twice: in the state that it was sampled
in, and in the flattened history. Agreement of the most probable token, the difference
of the sampled token's log-prob, KL(aligned || persistent) over the whole vocabulary;
before and after the first memory update.`,
		Example: `  bench audit teacher
  bench audit teacher --ledger runs/small/eval/q2/sft/seed-0/ledger.jsonl --teacher runs/small/pretrain/seed-0/teacher`,
	}, &o, &o.Preset, defaults, func(cmd *cobra.Command, _ []string) error {
		return runAuditTeacher(cmd.Context(), cmd.OutOrStdout(), o)
	})
}

// open loads the teacher, which must speak the ids of the trajectories' model.
func (t judging) open(s auditSource, tok *tokenizer.Tokenizer, p model.Placement) (*model.Decoder, string, error) {
	from := t.Teacher
	if from == "" {
		from = s.presetModel(presets.Teacher)
	}
	d, own, err := loadAudited(&from, p)
	if err != nil {
		return nil, "", fmt.Errorf("teacher: %w", err)
	}
	if tok != nil && own != nil {
		if err := sameTokens(own, tok); err != nil {
			d.Free()
			return nil, "", fmt.Errorf("teacher %s: %w", from, err)
		}
	}
	return d, from, nil
}

func runAuditTeacher(ctx context.Context, w io.Writer, o auditTeacherOptions) error {
	if err := startTorch(o.Threads); err != nil {
		return err
	}
	p, err := o.placement()
	if err != nil {
		return err
	}
	manifest := results.NewManifest(json.RawMessage(mustConfigJSON(&o)), libtorch())
	in, err := o.auditSource.open(ctx, p)
	if err != nil {
		return err
	}
	defer in.model.Free()
	teacher, from, err := o.judging.open(o.auditSource, in.tokenizer, p)
	if err != nil {
		return err
	}
	defer teacher.Free()
	note("teacher: %s", from)
	bar := newProgress("audit (trajectories)", int64(len(in.trajectories)))
	report, err := audit.Teacher(ctx, audit.TeacherOptions{
		Model: teacher, Trajectories: in.trajectories, Tolerance: o.Tolerance, Compute: train.Compute{Device: o.Device, DType: o.DType},
		Progress: func(done, _ int) { bar.set(int64(done)) },
	})
	if err != nil {
		return err
	}
	bar.done()
	if o.Record != "" {
		if err := in.record(o.Record, manifest, teacher, report.Parts()); err != nil {
			return err
		}
	}
	if o.JSON {
		return encodeJSON(w, report.Parts())
	}
	return report.Table().WriteText(w)
}
