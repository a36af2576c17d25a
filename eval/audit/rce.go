package audit

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// RCE audits layouts. It holds one trajectory's activations and a chunk of logits at
// a time, and with gradients two to four times the weights. When ctx ends it returns
// the context's error.
func RCE(ctx context.Context, o Options) (*Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	compared, err := o.compared()
	if err != nil {
		return nil, err
	}
	a := &rce{o: o, exact: o.Model.In(torch.Float32), compared: compared, report: &Report{
		Tolerance: o.Tolerance, ClipEpsilon: o.ClipEpsilon, DType: o.Compute.DType, Device: o.Compute.Device,
	}}
	if err := a.plan(); err != nil {
		return nil, err
	}
	err = torch.Try(func() error { return a.run(ctx) })
	if err != nil {
		return nil, err
	}
	return a.report, nil
}

// rce is an audit under way.
type rce struct {
	o               Options
	exact, compared *model.Decoder
	report          *Report
	layouts         []*measured
	recorded        []Token

	audited     []*audited
	done, total int
}

// measured is a layout with what was found of it so far.
type measured struct {
	align.Layout
	report LayoutReport
	floor  bool
}

// audited is a trajectory with what the gradients need of it.
type audited struct {
	truth       *truth
	domains     []*domain // by layout; nil beyond GradientTrajectories
	logProbs    []float32 // true
	temperature float64
}

// plan lists the layouts, in a narrower type the floor too.
func (a *rce) plan() error {
	known := map[string]bool{}
	for _, l := range a.o.Layouts {
		if known[l.Name] {
			return fmt.Errorf("audit: layout %q twice", l.Name)
		}
		known[l.Name] = true
		a.layouts = append(a.layouts, &measured{Layout: l, report: LayoutReport{Name: l.Name}})
	}
	if a.o.Compute.DType != train.Float32 {
		calls, err := align.LayoutNamed(FloorName)
		if err != nil {
			return err
		}
		a.layouts = append(a.layouts, &measured{Layout: calls, report: LayoutReport{Name: FloorName}, floor: true})
	}
	passes := 1 + len(a.layouts)
	a.total = len(a.o.Trajectories)*passes + a.o.GradientTrajectories*passes
	return nil
}

func (a *rce) step(n int) {
	if a.done += n; a.o.Progress != nil {
		a.o.Progress(a.done, a.total)
	}
}

func (a *rce) run(ctx context.Context) error {
	for _, t := range a.o.Trajectories {
		if err := a.trajectory(ctx, t); err != nil {
			return err
		}
	}
	if len(a.report.Trajectories) == 0 {
		return fmt.Errorf("audit: none of %d trajectories can be laid out; the first: %s", len(a.o.Trajectories), a.report.Rejected[0].Reason)
	}
	a.summarise()
	if err := a.gradients(ctx); err != nil {
		return err
	}
	a.judge()
	return nil
}

// trajectory scores one trajectory in the truth and in every layout.
func (a *rce) trajectory(ctx context.Context, t *trace.Trajectory) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := torch.NewScope()
	defer s.Close()
	rows, err := align.Calls(t, a.o.Align)
	var rejected *align.Rejected
	if errors.As(err, &rejected) {
		a.report.Rejected = append(a.report.Rejected, Rejected{t.ID, err.Error()})
		a.step(1 + len(a.layouts))
		return nil
	}
	if err != nil {
		return err
	}
	now := &audited{truth: newTruth(rows), temperature: temperature(t)}
	hidden := hiddenStates(a.exact, rows)
	own := score{a.o.Compute, a.exact, a.exact}
	tokens := own.truth(hidden, now)
	a.step(1)
	for _, m := range a.layouts {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := m.Rows(t, a.o.Align)
		if err != nil {
			return fmt.Errorf("layout %s: %w", m.Name, err)
		}
		d := newDomain(now.truth, rows)
		records := append([]Token(nil), tokens...)
		torch.NoGrad(func() {
			s := torch.NewScope()
			defer s.Close()
			if len(d.actions) > 0 {
				score{a.o.Compute, a.exact, a.compared}.compare(hidden, hiddenStates(a.compared, d.rows), d, now.temperature, a.o, records)
			}
		})
		a.explain(m, t.ID, now.truth, d, records)
		m.report.Records = append(m.report.Records, records...)
		m.report.Spurious, m.report.Missing = m.report.Spurious+d.spurious, m.report.Missing+d.missing
		if len(a.audited) < a.o.GradientTrajectories {
			now.domains = append(now.domains, d)
		}
		a.step(1)
	}
	a.record(t, now, tokens)
	return nil
}

// record notes a trajectory and what its sampler recorded.
func (a *rce) record(t *trace.Trajectory, now *audited, tokens []Token) {
	first := a.report.Tokens
	a.report.Trajectories = append(a.report.Trajectories, Trajectory{
		ID: t.ID, Calls: len(now.truth.rows), Tokens: len(tokens), Temperature: now.temperature, First: first,
	})
	a.report.Calls += len(now.truth.rows)
	a.report.Tokens += len(tokens)
	a.audited = append(a.audited, now)
	if !t.Sampler.Greedy && !(t.Sampler.Temperature > 0) {
		a.report.UnknownTemperature++
	}
	if why := incomparable(t); why != "" {
		a.report.Incomparable = append(a.report.Incomparable, Rejected{t.ID, why})
		return
	}
	for _, x := range tokens {
		lp := t.Calls[x.Call].LogProbs
		if len(lp) != len(t.Calls[x.Call].Output) {
			continue
		}
		x.Error = distance(float64(lp[x.Token]), float64(x.LogProb))
		x.Clip = clipped(float64(lp[x.Token]), float64(x.LogProb), a.o.ClipEpsilon)
		x.DLogit, x.Row, x.Place, x.Same = math.NaN(), 0, x.Token, true
		a.recorded = append(a.recorded, x)
	}
}

// distance is |a - b|, +Inf where that is no number.
func distance(a, b float64) float64 {
	if d := math.Abs(a - b); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

// clipped tells whether the ratio of two log-probs lies outside 1 ± epsilon.
func clipped(a, b, epsilon float64) bool {
	r := math.Exp(a - b)
	return !(r >= 1-epsilon && r <= 1+epsilon)
}
