package torch

import (
	"fmt"
	"math"
)

// Named is a tensor with its name in a checkpoint.
type Named struct {
	Name   string
	Tensor *Tensor
}

// ParamGroup is a set of parameters with a learning rate and weight decay of its own.
type ParamGroup struct {
	Params      []Named
	LR          float64
	WeightDecay float64
}

// AdamWConfig is what all groups share.
type AdamWConfig struct {
	Beta1, Beta2 float64
	Eps          float64
}

// DefaultAdamW is PyTorch's default.
func DefaultAdamW() AdamWConfig { return AdamWConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8} }

// AdamW is torch.optim.AdamW (Loshchilov and Hutter 2019, algorithm 2): decoupled weight decay, bias correction, no amsgrad.
// The update is fused over parameters. A parameter without a gradient is left alone, and its step count too.
type AdamW struct {
	// Groups may change LR and WeightDecay between steps, not Params.
	Groups []ParamGroup
	Config AdamWConfig
	slots  [][]slot // as Groups[i].Params
}

// slot is a parameter's state.
type slot struct {
	step         int64
	mean, meanSq *Tensor // exp_avg and exp_avg_sq; nil before the first step
}

// NewAdamW makes an optimizer without state; Free ends it.
func NewAdamW(c AdamWConfig, groups ...ParamGroup) *AdamW {
	a := &AdamW{Groups: groups, Config: c}
	for _, g := range groups {
		a.slots = append(a.slots, make([]slot, len(g.Params)))
	}
	return a
}

// SetLR sets the learning rate of every group.
func (a *AdamW) SetLR(lr float64) {
	for i := range a.Groups {
		a.Groups[i].LR = lr
	}
}

// Params is every parameter, group after group.
func (a *AdamW) Params() []Named {
	var all []Named
	for _, g := range a.Groups {
		all = append(all, g.Params...)
	}
	return all
}

// ZeroGrad drops the gradients of all parameters.
func (a *AdamW) ZeroGrad() {
	for _, p := range a.Params() {
		p.Tensor.ZeroGrad()
	}
}

// bucket is the parameters of a group that are at one step, so that one set of scalars updates them all.
type bucket struct{ params, grads, means, meanSqs []*Tensor }

// Step updates every parameter that has a gradient.
func (a *AdamW) Step() {
	NoGrad(func() {
		s := NewScope()
		defer s.Close()
		for i := range a.Groups {
			for step, b := range a.buckets(i) {
				for _, part := range b.parts() {
					a.update(&a.Groups[i], step, part)
				}
			}
		}
	})
}

// buckets counts the step of each parameter of group i that has a gradient, and sorts them by it. The order in which buckets
// are updated does not matter: they share nothing.
func (a *AdamW) buckets(i int) map[int64]*bucket {
	buckets := map[int64]*bucket{}
	for j, p := range a.Groups[i].Params {
		grad := p.Tensor.Grad()
		if grad == nil {
			continue
		}
		s := &a.slots[i][j]
		if s.mean == nil {
			s.mean, s.meanSq = opZerosLike.one(tn(p.Tensor)).Own(), opZerosLike.one(tn(p.Tensor)).Own()
		}
		s.step++
		b := buckets[s.step]
		if b == nil {
			b = &bucket{}
			buckets[s.step] = b
		}
		b.params, b.grads = append(b.params, p.Tensor), append(b.grads, grad)
		b.means, b.meanSqs = append(b.means, s.mean), append(b.meanSqs, s.meanSq)
	}
	return buckets
}

// AdamWElements is how many elements are updated by one set of calls, unless one parameter has more: an update takes as much
// memory again as the largest such set.
const AdamWElements = 1 << 26

// parts cuts a bucket into runs of at most AdamWElements elements.
func (b *bucket) parts() []*bucket {
	var parts []*bucket
	start, held := 0, int64(0)
	cut := func(end int) {
		parts = append(parts, &bucket{b.params[start:end], b.grads[start:end], b.means[start:end], b.meanSqs[start:end]})
	}
	for i, p := range b.params {
		n := p.Numel()
		if i > start && held+n > AdamWElements {
			cut(i)
			start, held = i, 0
		}
		held += n
	}
	cut(len(b.params))
	return parts
}

// update is one step of a bucket, in the order of operations of PyTorch's foreach implementation.
func (a *AdamW) update(g *ParamGroup, step int64, b *bucket) {
	c := a.Config
	params, grads, means, meanSqs := tl(b.params), tl(b.grads), tl(b.means), tl(b.meanSqs)
	if g.WeightDecay != 0 {
		opForeachMulScalar_.void(params, sc(1-g.LR*g.WeightDecay))
	}
	opForeachMulScalar_.void(means, sc(c.Beta1))
	opForeachAdd_.void(means, grads, sc(1-c.Beta1))
	opForeachMulScalar_.void(meanSqs, sc(c.Beta2))
	opForeachAddcmul_.void(meanSqs, grads, grads, sc(1-c.Beta2))
	correction1 := 1 - math.Pow(c.Beta1, float64(step))
	correction2 := 1 - math.Pow(c.Beta2, float64(step))
	s := NewScope()
	defer s.Close()
	denominators := tl(opForeachSqrt.many(len(b.meanSqs), meanSqs))
	opForeachDivScalar_.void(denominators, sc(math.Sqrt(correction2)))
	opForeachAddScalar_.void(denominators, sc(c.Eps))
	opForeachAddcdiv_.void(params, means, denominators, sc(-g.LR/correction1))
}

// Free ends the optimizer's state; the parameters live on.
func (a *AdamW) Free() {
	for _, slots := range a.slots {
		for i := range slots {
			slots[i].mean.Free()
			slots[i].meanSq.Free()
			slots[i] = slot{}
		}
	}
}

// State is the optimizer's state for an exact resume: exp_avg.NAME and exp_avg_sq.NAME of each parameter that has been updated, and
// step (int64, a count for each parameter in order). The moments are the optimizer's own tensors; step is new in the open scope.
func (a *AdamW) State() []Named {
	var out []Named
	var steps []int64
	for i, g := range a.Groups {
		for j, p := range g.Params {
			s := a.slots[i][j]
			steps = append(steps, s.step)
			if s.mean != nil {
				out = append(out, Named{"exp_avg." + p.Name, s.mean}, Named{"exp_avg_sq." + p.Name, s.meanSq})
			}
		}
	}
	return append(out, Named{"step", FromInt64(steps)})
}

// LoadState copies a State of an optimizer over the same parameters into a. On an error a is unchanged.
func (a *AdamW) LoadState(state map[string]*Tensor) error {
	params := a.Params()
	steps := state["step"]
	if steps == nil || steps.DType() != Int64 || steps.Numel() != int64(len(params)) {
		return fmt.Errorf("optimizer state: step is %v, want int64[%d]", steps, len(params))
	}
	counts := steps.Int64s()
	for i, p := range params {
		for _, moment := range []string{"exp_avg.", "exp_avg_sq."} {
			t := state[moment+p.Name]
			if (t == nil) != (counts[i] == 0) {
				return fmt.Errorf("optimizer state: %s%s is %v at step %d", moment, p.Name, t, counts[i])
			}
			if t != nil && t.String() != p.Tensor.String() {
				return fmt.Errorf("optimizer state: %s%s is %v, the parameter %v", moment, p.Name, t, p.Tensor)
			}
		}
	}
	a.Free()
	NoGrad(func() {
		n := 0
		for i, g := range a.Groups {
			for j, p := range g.Params {
				a.slots[i][j] = loadSlot(p, counts[n], state)
				n++
			}
		}
	})
	return nil
}

// loadSlot copies the moments of a parameter to where the parameter lives.
func loadSlot(p Named, step int64, state map[string]*Tensor) slot {
	if step == 0 {
		return slot{}
	}
	like := func(moment string) *Tensor {
		return opZerosLike.one(tn(p.Tensor)).Own().Copy_(state[moment+p.Name])
	}
	return slot{step: step, mean: like("exp_avg."), meanSq: like("exp_avg_sq.")}
}

// GradNorm is the Euclidean norm of all gradients together; 0 when there are none.
func GradNorm(params []*Tensor) float64 {
	s := NewScope()
	defer s.Close()
	return gradNorm(grads(params))
}

// ClipGradNorm scales the gradients so that their norm together is at most limit, as torch.nn.utils.clip_grad_norm_, and returns the norm
// before. A norm that is not finite is returned, and the gradients are left: the caller skips the step or stops.
func ClipGradNorm(params []*Tensor, limit float64) float64 {
	s := NewScope()
	defer s.Close()
	all := grads(params)
	norm := gradNorm(all)
	scale := limit / (norm + 1e-6)
	if scale < 1 && !math.IsInf(norm, 0) {
		NoGrad(func() { opForeachMulScalar_.void(tl(all), sc(scale)) })
	}
	return norm
}

func grads(params []*Tensor) []*Tensor {
	var all []*Tensor
	for _, p := range params {
		if g := p.Grad(); g != nil {
			all = append(all, g)
		}
	}
	return all
}

func gradNorm(grads []*Tensor) (norm float64) {
	if len(grads) == 0 {
		return 0
	}
	NoGrad(func() { norm = Stack(opForeachNorm.many(len(grads), tl(grads), sc(2)), 0).Norm().Item() })
	return norm
}
