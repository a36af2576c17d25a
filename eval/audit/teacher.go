package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// TeacherOptions says what Teacher audits.
type TeacherOptions struct {
	Model        *model.Decoder // the teacher
	Trajectories []*trace.Trajectory
	Tolerance    float64 // of ties between top-1 ids, in nats, more than 0
	Compute      train.Compute
	Progress     func(done, total int) // told the trajectories; nil: nobody
}

// TeacherReport says how far a teacher that reads the flattened history is from the
// same teacher in the states that the tokens were sampled in.
type TeacherReport struct {
	Trajectories int
	Rejected     []Rejected
	Tolerance    float64
	All          TeacherPart
	Before       TeacherPart // call 0: before the first memory update
	After        TeacherPart // the calls after it
}

// TeacherPart compares over some of the sampled tokens. It is a line of bench audit
// teacher --json.
type TeacherPart struct {
	Calls     string `json:"calls"` // all, before, after
	Tokens    int    `json:"tokens"`
	Agreement Number `json:"agreement"` // share of tokens with the same top-1 id, or a tie; null of none
	P50       Number `json:"p50"`       // of |Δ log-prob| of the sampled token, in nats
	P99       Number `json:"p99"`
	Max       Number `json:"max"`
	MeanKL    Number `json:"mean_kl"` // KL(aligned || persistent) over the whole vocabulary, in nats
	Flips     int    `json:"flips"`
}

// judged is one token under a teacher in two states.
type judged struct {
	call  int
	error float64
	kl    float64
	flip  bool
}

// Teacher scores every sampled token with a teacher in the aligned state and in the
// flattened history. When ctx ends it returns the context's error.
func Teacher(ctx context.Context, o TeacherOptions) (*TeacherReport, error) {
	base, err := Options{
		Model: o.Model, Trajectories: o.Trajectories, Tolerance: o.Tolerance, ClipEpsilon: DefaultClipEpsilon, Compute: o.Compute, anyWeights: true,
	}.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &TeacherReport{Tolerance: base.Tolerance}
	var all []judged
	err = torch.Try(func() error {
		for i, t := range o.Trajectories {
			if err := ctx.Err(); err != nil {
				return err
			}
			tokens, err := judgeTeacher(base, t)
			var rejected *align.Rejected
			if errors.As(err, &rejected) {
				r.Rejected = append(r.Rejected, Rejected{t.ID, err.Error()})
			} else if err != nil {
				return err
			} else {
				r.Trajectories++
				all = append(all, tokens...)
			}
			if o.Progress != nil {
				o.Progress(i+1, len(o.Trajectories))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("audit: none of %d trajectories can be laid out; the first: %s", len(o.Trajectories), r.Rejected[0].Reason)
	}
	r.All = teacherPart("all", all, func(judged) bool { return true })
	r.Before = teacherPart("before", all, func(j judged) bool { return j.call == 0 })
	r.After = teacherPart("after", all, func(j judged) bool { return j.call > 0 })
	return r, nil
}

func judgeTeacher(o Options, t *trace.Trajectory) ([]judged, error) {
	aligned, err := align.Compile(t, align.Options{})
	if err != nil {
		return nil, err
	}
	persistent, err := align.Persistent(t, align.Options{})
	if err != nil {
		return nil, err
	}
	s := torch.NewScope()
	defer s.Close()
	a, b := hiddenStates(o.Model, []*align.Packed{aligned}), hiddenStates(o.Model, []*align.Packed{persistent})
	tokens := make([]judged, len(aligned.Actions))
	ids := make([]int64, len(tokens))
	for i, x := range aligned.Actions {
		y := persistent.Actions[i]
		if x.Call != y.Call || x.Token != y.Token {
			return nil, fmt.Errorf("audit: trajectory %q: action %d is call %d token %d aligned, call %d token %d persistent", t.ID, i, x.Call, x.Token, y.Call, y.Token)
		}
		tokens[i].call, ids[i] = x.Call, int64(x.ID)
	}
	temperature := temperature(t)
	c := score{o.Compute, o.Model, o.Model}
	c.each(len(tokens), func(start, end int) {
		n := int64(end - start)
		p := logDistribution(o.Model.Logits(a.Narrow(0, int64(start), n)), temperature)
		q := logDistribution(o.Model.Logits(b.Narrow(0, int64(start), n)), temperature)
		own := c.ints(ids[start:end])
		x, y := at(p, own), at(q, own)
		kl := p.Exp().Mul(p.Sub(q)).SumDim([]int{-1}, false).Float64s()
		top, other := p.Argmax(-1, false), q.Argmax(-1, false)
		gap, otherGap := gaps(p, top, other), gaps(q, top, other)
		tops, others := top.Int64s(), other.Int64s()
		for j := range tops {
			k := &tokens[start+j]
			k.error, k.kl = distance(float64(x[j]), float64(y[j])), kl[j]
			k.flip = flipped(others[j], tops[j], otherGap[j], gap[j], o.Tolerance)
		}
	})
	return tokens, nil
}

func teacherPart(name string, all []judged, keep func(judged) bool) TeacherPart {
	p := TeacherPart{Calls: name}
	var errors []float64
	kl := 0.0
	for _, t := range all {
		if !keep(t) {
			continue
		}
		errors = append(errors, t.error)
		kl += t.kl
		if t.flip {
			p.Flips++
		}
	}
	slices.Sort(errors)
	p.Tokens = len(errors)
	p.P50, p.P99, p.Max = Number(percentile(errors, .5)), Number(percentile(errors, .99)), Number(percentile(errors, 1))
	p.Agreement, p.MeanKL = Number(math.NaN()), Number(math.NaN())
	if n := float64(p.Tokens); n > 0 {
		p.Agreement, p.MeanKL = Number(1-float64(p.Flips)/n), Number(kl/n)
	}
	return p
}

// Parts lists the report's lines.
func (r *TeacherReport) Parts() []TeacherPart { return []TeacherPart{r.All, r.Before, r.After} }

// Table shows the parts, and the paper's numbers below them.
func (r *TeacherReport) Table() *results.Table {
	t := &results.Table{
		Title: fmt.Sprintf("Teacher in the aligned state against the flattened history: %d trajectories", r.Trajectories),
		Columns: []results.Column{column("calls", false), column("tokens", true), column("top-1 agreement", true), column("p50", true),
			column("p99", true), column("max", true), column("mean KL", true), column("flips", true)},
		Notes: []string{
			"p50, p99, max: |Δ log-prob| of the sampled token in nats; mean KL: KL(aligned || persistent) over the whole vocabulary; before, after: the first memory update (call 0, later calls).",
			fmt.Sprintf("flips: the most probable id differs, unless both ids' log-probs lie within %g in both states.", r.Tolerance),
			"published: " + results.PublishedSource + ", table T3b, a teacher of 7B; before the first update the paper reports exact agreement.",
		},
	}
	for _, p := range r.Parts() {
		if p.Tokens == 0 {
			continue
		}
		agreement := results.Cell{Text: fmt.Sprintf("%.2f%%", 100*float64(p.Agreement)), Values: []any{p.Agreement}}
		t.Rows = append(t.Rows, []results.Cell{results.Text(p.Calls), results.Text(p.Tokens), agreement, nats(float64(p.P50)),
			nats(float64(p.P99)), nats(float64(p.Max)), nats(float64(p.MeanKL)), results.Text(p.Flips)})
	}
	t.Rows = append(t.Rows, publishedTeacher())
	if n := len(r.Rejected); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d trajectories were left out, the first: %s", n, r.Rejected[0].Reason))
	}
	return t
}

// publishedTeacher is the paper's row of table T3b.
func publishedTeacher() []results.Cell {
	row := make([]results.Cell, 8)
	for i := range row {
		row[i].Text = "-"
	}
	row[0] = results.Text("after, published")
	for _, n := range results.PublishedNumbers() {
		at, known := map[string]int{"top1_agreement_later_calls": 2, "p99_logprob_difference": 4, "mean_kl": 6, "top1_flips": 7}[n.Metric]
		if n.Table == "T3b" && known {
			row[at] = results.Cell{Text: fmt.Sprintf("%.5g", n.Value), Values: []any{n.Value}}
			if n.Unit == results.UnitPercent {
				row[at] = results.Cell{Text: fmt.Sprintf("%.2f%%", n.Value), Values: []any{n.Value / 100}}
			}
		}
	}
	return row
}
