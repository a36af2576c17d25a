package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/eval/audit/page"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// PageOptions says what a page shows beside a report's figures.
type PageOptions struct {
	Title        string
	Audited      []string // the layouts that the verdict is on
	Layouts      []align.Layout
	Align        align.Options // those of the audit
	Trajectories []*trace.Trajectory
	Show         int // at most so many of them, those with the largest errors first

	Certificate *Certificate // with its hashes; nil: none was given
	Text        func(id int32) string
}

// Page makes the report's page. The error names the trajectory and the layout that
// cannot be laid out.
func (r *Report) Page(o PageOptions) (*page.Audit, error) {
	a := &page.Audit{
		Title: o.Title, Subtitle: r.subtitle(), Rule: r.Rule(), Tolerance: r.Tolerance, ClipEpsilon: r.ClipEpsilon,
		Total: len(r.Trajectories), Text: o.Text,
	}
	a.Pass, a.Verdict = r.verdictWords(o.Audited)
	about := map[string]string{RecordedName: "the log-probs that the sampler wrote down, against the truth"}
	for _, l := range o.Layouts {
		about[l.Name] = l.Description
	}
	for _, l := range r.All() {
		row := r.pageRow(l, o.Audited)
		if row.Description = about[l.Name]; l == r.Floor {
			row.Description = "calls alone, rounded to " + r.DType
		}
		a.Rows = append(a.Rows, row)
		a.Failures = append(a.Failures, l.pageFailures()...)
	}
	a.Hashes, a.Settings = r.facts(o.Certificate)
	if n := len(r.Rejected); n > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d trajectories were left out, the first: %s", n, r.Rejected[0].Reason))
	}
	var err error
	a.Trajectories, err = r.shown(o)
	return a, err
}

func (r *Report) subtitle() string {
	return fmt.Sprintf("%d trajectories, %d calls, %d sampled tokens; layouts in %s on %s, the truth (each call alone) in f32",
		len(r.Trajectories), r.Calls, r.Tokens, r.DType, r.Device)
}

func (r *Report) verdictWords(audited []string) (bool, string) {
	names := strings.Join(audited, ", ")
	if r.DType != train.Float32 {
		return false, fmt.Sprintf("%s certifies nothing: its rounding alone has p99 %.3g and %d flips. Read the layouts beside that floor.", r.DType, r.Floor.P99, r.Floor.Flips)
	}
	if err := r.Verdict(audited); err != nil {
		return false, strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return true, fmt.Sprintf("%s: the %d sampled tokens have the log-probs of their own calls, within %g nats at the 99th percentile.", names, r.Tokens, r.Tolerance)
}

func (p Part) page() page.Figures {
	return page.Figures{Call: p.Call, Tokens: p.Tokens, P50: p.P50, P99: p.P99, Max: p.Max, Flips: p.Flips, FalseClips: p.FalseClips}
}

func (r *Report) pageRow(l *LayoutReport, audited []string) page.Row {
	row := page.Row{
		Layout: l.Name, Role: l.Role(audited), MaxDLogit: l.MaxDLogit, GradError: l.GradError, States: l.States, Spurious: l.Spurious, Missing: l.Missing,
		Figures: page.Figures{Call: -1, Tokens: l.Tokens, P50: l.P50, P99: l.P99, Max: l.Max, Flips: l.Flips, FalseClips: l.FalseClips},
		Pass:    l.Pass, Reasons: l.Reasons, Before: l.Before.page(), After: l.After.page(), Published: publishedFor(l.Name),
	}
	for _, p := range l.ByCall {
		row.ByCall = append(row.ByCall, p.page())
	}
	switch l {
	case r.Floor:
		row.Role, row.Published = "floor", nil
	case r.Recorded:
		row.Flips, row.States = -1, -1
		for _, f := range []*page.Figures{&row.Before, &row.After} {
			f.Flips = -1
		}
		for i := range row.ByCall {
			row.ByCall[i].Flips = -1
		}
	}
	return row
}

// publishedFor are the paper's figures of a layout, nil where it has none.
func publishedFor(layout string) *page.Published {
	of, ok := map[string][2]string{"aligned": {"T3", "packed"}, "persistent": {"T3", "persistent"}, "positions": {"T6", "positions_only"}}[layout]
	if !ok {
		return nil
	}
	p := &page.Published{Source: results.PublishedSource}
	for _, n := range results.PublishedNumbers() {
		switch {
		case n.Table == "T3" && n.Metric == "sampled_action_tokens":
			p.Tokens = fmt.Sprintf("%.0f", n.Value)
		case n.Table != of[0] || n.Variant != of[1]:
		case n.Metric == "p99_logprob_error":
			p.P99 = fmt.Sprintf("%.4g", n.Value)
		case n.Metric == "top1_flips":
			p.Flips = fmt.Sprintf("%.0f", n.Value)
		case n.Metric == "false_ppo_clips":
			p.FalseClips = fmt.Sprintf("%.4g %%", n.Value)
		}
	}
	return p
}

// pageFailures shows a layout's first failures.
func (l *LayoutReport) pageFailures() []page.Failure {
	const kept = 2
	if l.Pass {
		return nil
	}
	var list []page.Failure
	for _, f := range l.Failures[:min(kept, len(l.Failures))] {
		one := page.Failure{Layout: l.Name, Trajectory: f.Trajectory, Call: f.Call, Token: f.Token, Place: f.Place, Error: float64(f.Error), Flip: f.Flip, Clip: f.Clip, Detail: f.Detail}
		for _, p := range f.Parts {
			one.Parts = append(one.Parts, string(p))
		}
		list = append(list, one)
	}
	if n := len(list); n > 0 {
		list[n-1].More = len(l.Failures) - n
	}
	return list
}

// facts are what the certificate says of its inputs.
func (r *Report) facts(c *Certificate) (hashes, settings []page.Fact) {
	fact := func(list *[]page.Fact, name, value string) {
		if value != "" {
			*list = append(*list, page.Fact{Name: name, Value: value})
		}
	}
	if c != nil {
		fact(&hashes, "model, sha256 of the weights", c.Model)
		fact(&hashes, "tokenizer, sha256", c.Tokenizer)
		fact(&hashes, "settings, sha256", c.Config)
		for _, l := range c.LedgerFiles {
			fact(&hashes, "ledger, sha256", l.SHA256)
			fact(&settings, "ledger", l.From)
		}
		fact(&settings, "model", c.ModelFrom)
		if m := c.Manifest; m != nil {
			fact(&settings, "command", strings.Join(m.Command, " "))
			fact(&settings, "commit", m.Commit)
			fact(&settings, "libtorch", m.Libtorch)
			fact(&settings, "machine", m.Machine.CPU)
			fact(&settings, "date", m.Started.UTC().Format("2006-01-02 15:04 UTC"))
		}
	}
	fact(&settings, "types", fmt.Sprintf("layouts in %s on %s, the truth in f32", r.DType, r.Device))
	fact(&settings, "rule", r.Rule())
	return hashes, settings
}

// shown lays the trajectories out that the page keeps: where an audited layout fails
// those with its largest errors, else those with the largest of any layout.
func (r *Report) shown(o PageOptions) ([]page.Trajectory, error) {
	decides := func(*LayoutReport) bool { return true }
	if r.Verdict(o.Audited) != nil {
		decides = func(l *LayoutReport) bool { return slices.Contains(o.Audited, l.Name) }
	}
	worst := make([]float64, len(r.Trajectories))
	for _, l := range r.Layouts {
		for _, t := range l.Records {
			if decides(&l) {
				worst[t.Trajectory] = math.Max(worst[t.Trajectory], t.Error)
			}
		}
	}
	order := make([]int, len(worst))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(worst[b], worst[a]) })
	records := r.records(o.Trajectories)
	var list []page.Trajectory
	for _, i := range order[:min(len(order), max(o.Show, 0))] {
		t := page.Trajectory{Record: records[i]}
		if t.Record == nil {
			return nil, fmt.Errorf("page: trajectory %q is not among those handed in", r.Trajectories[i].ID)
		}
		for j := range r.Layouts {
			v, err := r.layoutView(i, j, t.Record, o)
			if err != nil {
				return nil, err
			}
			t.Layouts = append(t.Layouts, v)
		}
		list = append(list, t)
	}
	return list, nil
}

// records finds the record of each of the report's trajectories, which are in the
// order of the audited ones.
func (r *Report) records(all []*trace.Trajectory) []*trace.Trajectory {
	records := make([]*trace.Trajectory, len(r.Trajectories))
	next := 0
	for _, t := range all {
		if next < len(records) && t.ID == r.Trajectories[next].ID && t.SampledTokens() == r.Trajectories[next].Tokens {
			records[next] = t
			next++
		}
	}
	return records
}

func (r *Report) layoutView(i, j int, t *trace.Trajectory, o PageOptions) (page.LayoutView, error) {
	l := &r.Layouts[j]
	at := slices.IndexFunc(o.Layouts, func(x align.Layout) bool { return x.Name == l.Name })
	if at < 0 {
		return page.LayoutView{}, fmt.Errorf("page: layout %s is not among those handed in", l.Name)
	}
	v := page.LayoutView{Name: l.Name, Description: o.Layouts[at].Description}
	var err error
	if v.Rows, err = o.Layouts[at].Rows(t, o.Align); err != nil {
		return v, fmt.Errorf("page: layout %s: %w", l.Name, err)
	}
	first := r.Trajectories[i].First
	for _, x := range l.Records[first : first+r.Trajectories[i].Tokens] {
		if x.Row >= 0 {
			v.Tokens = append(v.Tokens, page.TokenError{Call: x.Call, Token: x.Token, Error: x.Error, Flip: x.Flip, Clip: x.Clip})
		}
	}
	return v, nil
}
