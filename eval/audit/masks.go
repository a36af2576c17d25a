package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// MaskOptions says what Masks audits.
type MaskOptions struct {
	Model   *model.Decoder // float32 weights that require gradients
	Teacher *model.Decoder // of the KL loss; nil: without it

	Trajectories []*trace.Trajectory
	Domains      []align.Layout // the exact one first
	ClipEpsilon  float64        // between 0 and 1: see DefaultClipEpsilon
	Compute      train.Compute

	// GradientTrajectories is how many of the first trajectories the gradients are
	// over, as one batch; -1: all.
	GradientTrajectories int
	Seed                 uint64 // of the advantages
	Progress             func(done, total int)
}

// The losses of a mask audit.
const (
	LossPPO     = "ppo"
	LossEntropy = "entropy"
	LossKL      = "kl"
)

// MaskReport says what action masks take for actions, and what that does to the
// gradient of each loss.
type MaskReport struct {
	Trajectories         int
	Rejected             []Rejected
	GradientTrajectories int
	Losses               []string
	Domains              []DomainReport
}

// DomainReport is one action domain.
type DomainReport struct {
	Name      string
	Positions int // all actions
	Spurious  int // those that were not sampled
	Copies    int // of the spurious: places that hold an id which was sampled elsewhere, a context copy
	Gradients []MaskGradient
}

// MaskGradient is the gradient of a loss over a domain, a mean over its positions.
type MaskGradient struct {
	Loss     string
	Norm     float64 // over all weights
	Relative float64 // Norm over that of the exact domain
	Cosine   float64 // with the exact domain's gradient
}

// masks is an audit under way.
type masks struct {
	o       Options
	m       MaskOptions
	report  *MaskReport
	batches [][]maskedRows // by domain, then trajectory
	done    int
	total   int
}

// maskedRows is a trajectory laid out, with what its losses compare with.
type maskedRows struct {
	rows        []*align.Packed
	temperature float64
	behaviour   []float32 // the model's own log-probs, one an action
	advantages  []float32
}

// Masks counts the positions of action domains and compares the gradients of their
// losses: PPO's clipped surrogate, the negated entropy, and the KL to a teacher,
// each a mean over the domain's positions.
//
// A spurious position has what a trainer that takes it for an action gives it: the
// old log-prob is the model's for the token there, found by the same forward pass
// (the ratio is 1), and the advantage is the one that its call was given. Advantages
// are one number a call, normal, of the seed, the trajectory and the call, so that
// all tokens of a call share it, as where a trainer broadcasts a score.
func Masks(ctx context.Context, m MaskOptions) (*MaskReport, error) {
	o, err := Options{
		Model: m.Model, Trajectories: m.Trajectories, Tolerance: DefaultTolerance, ClipEpsilon: m.ClipEpsilon, Compute: m.Compute,
		GradientTrajectories: m.GradientTrajectories, Seed: m.Seed, Progress: m.Progress,
	}.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(m.Domains) == 0 {
		return nil, errors.New("audit: no action domains")
	}
	a := &masks{o: o, m: m, report: &MaskReport{Losses: []string{LossPPO, LossEntropy}}, batches: make([][]maskedRows, len(m.Domains))}
	if m.Teacher != nil {
		a.report.Losses = append(a.report.Losses, LossKL)
	}
	for _, d := range m.Domains {
		a.report.Domains = append(a.report.Domains, DomainReport{Name: d.Name})
	}
	a.total = len(o.Trajectories) + o.GradientTrajectories*len(m.Domains)*len(a.report.Losses)
	if err := torch.Try(func() error { return a.run(ctx) }); err != nil {
		return nil, err
	}
	return a.report, nil
}

func (a *masks) step() {
	if a.done++; a.o.Progress != nil {
		a.o.Progress(min(a.done, a.total), a.total)
	}
}

func (a *masks) run(ctx context.Context) error {
	for _, t := range a.o.Trajectories {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := a.trajectory(t)
		var rejected *align.Rejected
		if errors.As(err, &rejected) {
			a.report.Rejected = append(a.report.Rejected, Rejected{t.ID, err.Error()})
		} else if err != nil {
			return err
		} else {
			a.report.Trajectories++
		}
		a.step()
	}
	if a.report.Trajectories == 0 {
		return fmt.Errorf("audit: none of %d trajectories can be laid out; the first: %s", len(a.o.Trajectories), a.report.Rejected[0].Reason)
	}
	a.report.GradientTrajectories = len(a.batches[0])
	if a.report.GradientTrajectories == 0 {
		return nil
	}
	for _, loss := range a.report.Losses {
		if err := a.loss(ctx, loss); err != nil {
			return err
		}
	}
	return nil
}

// trajectory counts a trajectory's positions in every domain.
func (a *masks) trajectory(t *trace.Trajectory) error {
	var all []maskedRows
	for _, d := range a.m.Domains {
		rows, err := d.Rows(t, align.Options{})
		if err != nil {
			return err
		}
		all = append(all, maskedRows{rows: rows, temperature: temperature(t)})
	}
	index := uint64(a.report.Trajectories)
	for i := range all {
		r := &a.report.Domains[i]
		for _, row := range all[i].rows {
			copies := copyPlaces(t, row)
			for _, x := range row.Actions {
				if r.Positions++; x.Spurious() {
					if r.Spurious++; copies[x.Index] {
						r.Copies++
					}
				}
			}
		}
		if len(a.batches[i]) < a.o.GradientTrajectories {
			a.prepare(&all[i], index)
			a.batches[i] = append(a.batches[i], all[i])
		}
	}
	return nil
}

// copyPlaces marks the places of a row of aligned states that hold copies of earlier
// outputs.
func copyPlaces(t *trace.Trajectory, row *align.Packed) map[int]bool {
	places := map[int]bool{}
	for _, b := range row.Blocks {
		if b.Call < 0 || b.Call >= len(t.Calls) {
			continue
		}
		for _, s := range t.Calls[b.Call].Spans {
			if s.Origin != trace.OriginRetained {
				continue
			}
			for i := s.Start; i < s.End; i++ {
				if place := b.Start + i - len(t.Prefix); place < b.End {
					places[place] = true
				}
			}
		}
	}
	return places
}

// prepare scores a trajectory's actions and draws their advantages.
func (a *masks) prepare(m *maskedRows, index uint64) {
	s := torch.NewScope()
	defer s.Close()
	byCall := map[int]float32{}
	var ids []int64
	for _, row := range m.rows {
		for _, x := range row.Actions {
			ids = append(ids, int64(x.ID))
			value, ok := byCall[x.Call]
			if !ok {
				value = float32(rand.New(rand.NewPCG(a.o.Seed, index<<16|uint64(uint16(x.Call)))).NormFloat64())
				byCall[x.Call] = value
			}
			m.advantages = append(m.advantages, value)
		}
	}
	if len(ids) == 0 {
		return
	}
	hidden := hiddenStates(a.o.Model, m.rows)
	c := score{a.o.Compute, a.o.Model, a.o.Model}
	c.each(len(ids), func(start, end int) {
		d := logDistribution(a.o.Model.Logits(hidden.Narrow(0, int64(start), int64(end-start))), m.temperature)
		m.behaviour = append(m.behaviour, at(d, c.ints(ids[start:end]))...)
	})
}

// loss takes the gradients of one loss over every domain.
func (a *masks) loss(ctx context.Context, loss string) error {
	s := torch.NewScope()
	defer s.Close()
	defer zero(a.o.Model)
	var exact []*torch.Tensor
	for i := range a.batches {
		inner := torch.NewScope()
		got, err := a.gradient(ctx, loss, a.batches[i])
		if err != nil {
			inner.Close()
			return err
		}
		if i == 0 {
			for _, g := range got {
				exact = append(exact, g.Keep())
			}
		}
		dot, norm, exactNorm := products(got, exact)
		a.report.Domains[i].Gradients = append(a.report.Domains[i].Gradients, MaskGradient{
			Loss: loss, Norm: norm, Relative: norm / exactNorm, Cosine: dot / (norm * exactNorm),
		})
		inner.Close()
	}
	return nil
}

func (a *masks) gradient(ctx context.Context, loss string, batch []maskedRows) ([]*torch.Tensor, error) {
	total := 0
	for _, m := range batch {
		total += len(m.behaviour)
	}
	zero(a.o.Model)
	for _, m := range batch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		first := 0
		for _, row := range m.rows {
			end := first + len(row.Actions)
			l := train.ActorLoss{Temperature: m.temperature, Total: float64(total)}
			switch loss {
			case LossPPO:
				l.Behaviour, l.Advantages, l.Clip = m.behaviour[first:end], m.advantages[first:end], a.o.ClipEpsilon
			case LossEntropy:
				l.Entropy = 1
			case LossKL:
				l.KL, l.Teacher, l.TeacherRows = 1, a.m.Teacher, []*align.Packed{row}
			}
			first = end
			if _, err := a.o.Compute.BackwardActor(a.o.Model, []*align.Packed{row}, l); err != nil {
				return nil, err
			}
		}
		a.step()
	}
	var list []*torch.Tensor
	for _, p := range a.o.Model.Parameters() {
		list = append(list, gradientOf(p.Tensor))
	}
	return list, nil
}

// products are a·b, |a| and |b| over lists of tensors.
func products(a, b []*torch.Tensor) (dot, normA, normB float64) {
	torch.NoGrad(func() {
		for i := range a {
			s := torch.NewScope()
			x, y := a[i].Norm().Item(), b[i].Norm().Item()
			dot += a[i].Mul(b[i]).Sum().Item()
			normA, normB = normA+x*x, normB+y*y
			s.Close()
		}
	})
	return dot, math.Sqrt(normA), math.Sqrt(normB)
}
