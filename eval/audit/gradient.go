package audit

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/train"
)

// gradients measures how far the gradient of the PPO loss in each layout is from
// that in the truth, over the first trajectories together as one batch. The loss is
// the clipped surrogate, a mean over sampled tokens, with old log-probs that are the
// true ones and advantages drawn once a token: normal, of the seed and the number
// of the trajectory. The tokens of call 0 and of later calls have a pass each.
func (a *rce) gradients(ctx context.Context) error {
	if a.o.GradientTrajectories == 0 {
		return nil
	}
	var batch []*audited
	for _, t := range a.audited {
		if t.domains != nil {
			batch = append(batch, t)
		}
	}
	a.report.GradientTrajectories = len(batch)
	s := torch.NewScope()
	defer s.Close()
	want, err := a.gradient(ctx, a.exact, batch, func(t *audited) ([]*align.Packed, []int) { return t.truth.rows, nil })
	if err != nil {
		return err
	}
	for i, m := range a.layouts {
		inner := torch.NewScope()
		have, err := a.gradient(ctx, a.compared, batch, func(t *audited) ([]*align.Packed, []int) { return t.domains[i].rows, t.domains[i].index })
		if err == nil {
			m.report.Before.GradError = relative(have[0], want[0], nil, nil)
			m.report.After.GradError = relative(have[1], want[1], nil, nil)
			m.report.GradError = relative(have[0], want[0], have[1], want[1])
		}
		inner.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// gradient is that of the loss over call 0's tokens and over the later ones, each a
// tensor a weight. rowsOf gives a trajectory's rows, and the numbers of their
// actions among the truth's (nil: the same).
func (a *rce) gradient(ctx context.Context, d *model.Decoder, batch []*audited, rowsOf func(*audited) ([]*align.Packed, []int)) (parts [2][]*torch.Tensor, err error) {
	total := 0
	for _, t := range batch {
		total += len(t.truth.actions)
	}
	defer zero(d)
	for part := range parts {
		zero(d)
		for i, t := range batch {
			if err := ctx.Err(); err != nil {
				return parts, err
			}
			rows, index := rowsOf(t)
			kept, numbers := only(rows, func(x align.Action) bool { return (x.Call > 0) == (part > 0) })
			if err := a.backward(d, t, kept, numbers, index, a.advantages(i, t), float64(total)); err != nil {
				return parts, err
			}
			if part > 0 {
				a.step(1)
			}
		}
		for _, p := range d.Parameters() {
			parts[part] = append(parts[part], gradientOf(p.Tensor))
		}
	}
	return parts, nil
}

// backward adds the gradient of a trajectory's loss, a row at a time.
func (a *rce) backward(d *model.Decoder, t *audited, rows []*align.Packed, numbers, index []int, advantages []float32, total float64) error {
	for _, row := range rows {
		l := train.ActorLoss{Temperature: t.temperature, Total: total, Clip: a.o.ClipEpsilon}
		for _, n := range numbers[:len(row.Actions)] {
			if index != nil {
				n = index[n]
			}
			l.Behaviour, l.Advantages = append(l.Behaviour, t.logProbs[n]), append(l.Advantages, advantages[n])
		}
		numbers = numbers[len(row.Actions):]
		if _, err := a.o.Compute.BackwardActor(d, []*align.Packed{row}, l); err != nil {
			return err
		}
	}
	return nil
}

// advantages are a trajectory's, one a sampled token.
func (a *rce) advantages(i int, t *audited) []float32 {
	rng := rand.New(rand.NewPCG(a.o.Seed, uint64(i)))
	list := make([]float32, len(t.truth.actions))
	for k := range list {
		list[k] = float32(rng.NormFloat64())
	}
	return list
}

// zero drops a decoder's gradients.
func zero(d *model.Decoder) {
	for _, p := range d.Parameters() {
		p.Tensor.ZeroGrad()
	}
}

// gradientOf is a weight's gradient, zeros where it has none.
func gradientOf(w *torch.Tensor) *torch.Tensor {
	if g := w.Grad(); g != nil {
		return g.Clone()
	}
	return w.Detach().ZerosLike()
}

// relative is |(a + c) - (b + d)| / |b + d| over lists of tensors, c and d nil for
// none; NaN where the latter is 0.
func relative(a, b, c, d []*torch.Tensor) float64 {
	difference, size := 0.0, 0.0
	torch.NoGrad(func() {
		for i := range a {
			s := torch.NewScope()
			have, want := a[i], b[i]
			if c != nil {
				have, want = have.Add(c[i]), want.Add(d[i])
			}
			x, y := have.Sub(want).Norm().Item(), want.Norm().Item()
			difference, size = difference+x*x, size+y*y
			s.Close()
		}
	})
	if size == 0 {
		return math.NaN()
	}
	return math.Sqrt(difference / size)
}
