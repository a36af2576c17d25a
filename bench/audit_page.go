package main

import (
	"bytes"
	"os"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/eval/audit"
	"github.com/memopd/memopd-bench/eval/audit/page"
)

// show writes the page of --html.
func (o auditRCEOptions) show(in *auditInput, r *audit.Report, layouts []align.Layout, c *audit.Certificate) error {
	if o.HTML == "" {
		return nil
	}
	options := audit.PageOptions{
		Title: "Rollout context equivalence of " + in.from, Audited: o.Layout, Layouts: layouts, Align: in.layoutOptions(),
		Trajectories: in.trajectories, Show: o.HTMLTrajectories, Certificate: c,
	}
	if in.tokenizer != nil {
		options.Text = func(id int32) string { return in.tokenizer.Decode([]int32{id}) }
	}
	shown, err := r.Page(options)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.Write(&b, shown); err != nil {
		return err
	}
	if err := os.WriteFile(o.HTML, b.Bytes(), 0o644); err != nil {
		return err
	}
	note("page: %s", o.HTML)
	return nil
}
