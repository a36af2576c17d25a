package torch

import (
	"runtime"

	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

// RequiresGrad_ makes a leaf record (or not record) its gradient, and returns it.
func (t *Tensor) RequiresGrad_(on bool) *Tensor {
	raise("requires_grad_", ctorch.RequiresGrad(t.must("requires_grad_"), on), t)
	return t
}

// RequiresGrad says whether operators on t are recorded.
func (t *Tensor) RequiresGrad() bool {
	m := t.meta()
	return m.RequiresGrad
}

// Backward adds d t / d leaf to the gradient of each leaf; t has one element. The graph is freed.
func (t *Tensor) Backward() { raise("backward", ctorch.Backward(t.must("backward"), 0, false), t) }

// BackwardWith is Backward from a tensor of any shape with the gradient at its output.
func (t *Tensor) BackwardWith(gradient *Tensor, keepGraph bool) {
	raise("backward", ctorch.Backward(t.must("backward"), gradient.must("backward"), keepGraph), t, gradient)
}

// Grad is the accumulated gradient, or nil.
func (t *Tensor) Grad() *Tensor { return wrap(ctorch.Grad(t.must("grad"))) }

// SetGrad replaces the accumulated gradient; nil drops it.
func (t *Tensor) SetGrad(g *Tensor) {
	raise("set_grad", ctorch.SetGrad(t.must("set_grad"), g.handle()), t, g)
}

// ZeroGrad drops the accumulated gradient, as PyTorch's zero_grad(set_to_none=True).
func (t *Tensor) ZeroGrad() { t.SetGrad(nil) }

// NoGrad runs f with recording off. Gradient mode belongs to an OS thread, so the goroutine keeps its thread for so long.
func NoGrad(f func()) { withGradMode(false, f) }

// EnableGrad runs f with recording on, inside a NoGrad.
func EnableGrad(f func()) { withGradMode(true, f) }

func withGradMode(on bool, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := ctorch.GradMode(on)
	defer ctorch.GradMode(before)
	f()
}
