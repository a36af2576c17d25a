package torch

import (
	"fmt"
	"math"
	"testing"
)

// numericGradient is d sum(f(inputs) * weights) / d inputs[k] by central differences.
func numericGradient(f func([]*Tensor) *Tensor, inputs []*Tensor, weights *Tensor, k int) []float64 {
	const h = 1e-6
	flat := inputs[k].Float64s()
	out := make([]float64, len(flat))
	at := func(i int, v float64) float64 {
		s := NewScope()
		defer s.Close()
		moved := append([]float64{}, flat...)
		moved[i] = v
		with := append([]*Tensor{}, inputs...)
		with[k] = FromBytes(asBytes(moved), Float64, inputs[k].Shape()...)
		return f(with).Mul(weights).Sum().Item()
	}
	NoGrad(func() {
		for i, v := range flat {
			out[i] = (at(i, v+h) - at(i, v-h)) / (2 * h)
		}
	})
	return out
}

// checkGradients holds autograd's gradients of f against finite differences, in float64.
func checkGradients(t *testing.T, f func([]*Tensor) *Tensor, shapes ...[]int64) {
	t.Helper()
	scoped(t)
	ManualSeed(7)
	inputs := make([]*Tensor, len(shapes))
	for i, s := range shapes {
		// Away from 0, where abs, clamp and ties have their corners.
		x := Rand(s...).To(Float64).AddScalar(0.2)
		sign := Rand(s...).GtScalar(0.5).To(Float64).MulScalar(2).AddScalar(-1)
		inputs[i] = x.Mul(sign).RequiresGrad_(true)
	}
	y := f(inputs)
	weights := Randn(append([]int64{}, y.Shape()...)...).To(Float64)
	y.Mul(weights).Sum().Backward()
	for k := range inputs {
		g := inputs[k].Grad()
		if g == nil {
			t.Errorf("input %d: no gradient", k)
			continue
		}
		got, want := g.Float64s(), numericGradient(f, inputs, weights, k)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-6*(1+math.Abs(want[i])) {
				t.Errorf("input %d, element %d: gradient %g, by differences %g", k, i, got[i], want[i])
			}
		}
	}
}

// SubScalarSign is -1 below 0.5 and 1 above, for random signs.
func (t *Tensor) SubScalarSign() *Tensor {
	return t.GtScalar(0.5).To(Float64).MulScalar(2).AddScalar(-1)
}

func unary(f func(*Tensor) *Tensor) func([]*Tensor) *Tensor {
	return func(x []*Tensor) *Tensor { return f(x[0]) }
}

func binary(f func(a, b *Tensor) *Tensor) func([]*Tensor) *Tensor {
	return func(x []*Tensor) *Tensor { return f(x[0], x[1]) }
}

func TestUnaryGradients(t *testing.T) {
	ids := func(v ...int64) *Tensor { return FromInt64(v) }
	for name, f := range map[string]func(*Tensor) *Tensor{
		"neg": (*Tensor).Neg, "exp": (*Tensor).Exp, "abs": (*Tensor).Abs, "square": (*Tensor).Square, "reciprocal": (*Tensor).Reciprocal,
		"tanh": (*Tensor).Tanh, "sigmoid": (*Tensor).Sigmoid, "silu": (*Tensor).SiLU, "gelu": (*Tensor).GELU, "relu": (*Tensor).ReLU,
		"sin": (*Tensor).Sin, "cos": (*Tensor).Cos,
		"log":        func(x *Tensor) *Tensor { return x.Abs().Log() },
		"log1p":      func(x *Tensor) *Tensor { return x.Abs().Log1p() },
		"sqrt":       func(x *Tensor) *Tensor { return x.Abs().Sqrt() },
		"rsqrt":      func(x *Tensor) *Tensor { return x.Abs().Rsqrt() },
		"pow":        func(x *Tensor) *Tensor { return x.PowScalar(3) },
		"add":        func(x *Tensor) *Tensor { return x.AddScalar(2) },
		"mul":        func(x *Tensor) *Tensor { return x.MulScalar(-1.5) },
		"div":        func(x *Tensor) *Tensor { return x.DivScalar(3) },
		"rsub":       func(x *Tensor) *Tensor { return x.RsubScalar(1) },
		"clamp":      func(x *Tensor) *Tensor { return x.Clamp(-0.71, 0.72) },
		"clampMin":   func(x *Tensor) *Tensor { return x.ClampMin(0.1) },
		"clampMax":   func(x *Tensor) *Tensor { return x.ClampMax(0.1) },
		"softmax":    func(x *Tensor) *Tensor { return x.Softmax(-1) },
		"logSoftmax": func(x *Tensor) *Tensor { return x.LogSoftmax(0) },
		"logsumexp":  func(x *Tensor) *Tensor { return x.Logsumexp([]int{-1}, false) },
		"sum":        (*Tensor).Sum, "mean": (*Tensor).Mean, "max": (*Tensor).Max, "min": (*Tensor).Min, "norm": (*Tensor).Norm,
		"sumDim":     func(x *Tensor) *Tensor { return x.SumDim([]int{0, 1}, true) },
		"meanDim":    func(x *Tensor) *Tensor { return x.MeanDim([]int{-1}, false) },
		"maxDim":     func(x *Tensor) *Tensor { v, _ := x.MaxDim(1); return v },
		"amax":       func(x *Tensor) *Tensor { return x.Amax([]int{1}, true) },
		"std":        func(x *Tensor) *Tensor { return x.Std(true) },
		"var":        func(x *Tensor) *Tensor { return x.Var(false) },
		"cumsum":     func(x *Tensor) *Tensor { return x.Cumsum(1) },
		"topk":       func(x *Tensor) *Tensor { v, _ := x.Topk(2, -1); return v },
		"sort":       func(x *Tensor) *Tensor { v, _ := x.Sort(-1, true); return v },
		"gather":     func(x *Tensor) *Tensor { return x.Gather(1, ids(0, 3, 3, 1, 2, 2).View(3, 2)) },
		"indexSel":   func(x *Tensor) *Tensor { return x.IndexSelect(1, ids(3, 0, 3)) },
		"index":      func(x *Tensor) *Tensor { return x.Index(ids(2, 0, 2)) },
		"indexAt":    func(x *Tensor) *Tensor { return x.IndexAt(ids(2, 0, 2), ids(1, 1, 1)) },
		"masked":     func(x *Tensor) *Tensor { return x.MaskedFill(x.GtScalar(0), 9) },
		"view":       func(x *Tensor) *Tensor { return x.View(2, -1) },
		"permute":    func(x *Tensor) *Tensor { return x.Permute(1, 0).Contiguous() },
		"transpose":  func(x *Tensor) *Tensor { return x.Transpose(0, 1).Reshape(-1) },
		"slice":      func(x *Tensor) *Tensor { return x.Slice(1, 1, End, 2) },
		"narrow":     func(x *Tensor) *Tensor { return x.Narrow(1, 1, 2) },
		"select":     func(x *Tensor) *Tensor { return x.Select(0, 2) },
		"expand":     func(x *Tensor) *Tensor { return x.Unsqueeze(0).Expand(2, -1, -1) },
		"repeatEach": func(x *Tensor) *Tensor { return x.RepeatInterleave(2, 0) },
		"repeat":     func(x *Tensor) *Tensor { return x.Repeat(2, 1) },
		"split":      func(x *Tensor) *Tensor { p := x.Split(3, 1); return p[0].SumDim([]int{1}, false).Mul(p[1].Squeeze(1)) },
		"chunk":      func(x *Tensor) *Tensor { p := x.Chunk(2, 1); return p[0].Mul(p[1]) },
		"tril":       func(x *Tensor) *Tensor { return x.Tril(0) },
		"flatten":    func(x *Tensor) *Tensor { return x.Flatten(0, 1).Clone() },
		"nll":        func(x *Tensor) *Tensor { return x.LogSoftmax(-1).NLLLoss(ids(1, 0, 3), ReduceMean) },
		"crossEnt":   func(x *Tensor) *Tensor { return x.CrossEntropy(ids(1, -100, 3), ReduceSum) },
		"copy":       func(x *Tensor) *Tensor { return Zeros(Float64, 3, 4).Copy_(x) },
	} {
		t.Run(name, func(t *testing.T) { checkGradients(t, unary(f), []int64{3, 4}) })
	}
}

func TestBinaryGradients(t *testing.T) {
	ids := func(v ...int64) *Tensor { return FromInt64(v) }
	for name, c := range map[string]struct {
		f    func(a, b *Tensor) *Tensor
		a, b []int64
	}{
		"add":       {(*Tensor).Add, []int64{2, 3}, []int64{3}},
		"sub":       {(*Tensor).Sub, []int64{2, 1}, []int64{1, 3}},
		"mul":       {(*Tensor).Mul, []int64{2, 3}, []int64{3}},
		"div":       {(*Tensor).Div, []int64{2, 3}, []int64{2, 1}},
		"minimum":   {(*Tensor).Minimum, []int64{2, 3}, []int64{2, 3}},
		"maximum":   {(*Tensor).Maximum, []int64{2, 3}, []int64{2, 3}},
		"matmul":    {(*Tensor).Matmul, []int64{2, 3, 4}, []int64{4, 2}},
		"bmm":       {(*Tensor).Bmm, []int64{2, 3, 4}, []int64{2, 4, 2}},
		"where":     {func(a, b *Tensor) *Tensor { return Where(FromBool([]bool{true, false, true}), a, b) }, []int64{2, 3}, []int64{3}},
		"cat":       {func(a, b *Tensor) *Tensor { return Cat([]*Tensor{a, b, a}, 1) }, []int64{2, 3}, []int64{2, 1}},
		"stack":     {func(a, b *Tensor) *Tensor { return Stack([]*Tensor{a, b}, 1) }, []int64{2, 3}, []int64{2, 3}},
		"indexAdd":  {func(a, b *Tensor) *Tensor { return a.IndexAdd(0, ids(1, 1), b) }, []int64{2, 3}, []int64{2, 3}},
		"indexAdd_": {func(a, b *Tensor) *Tensor { return a.Clone().IndexAdd_(0, ids(1, 1), b) }, []int64{2, 3}, []int64{2, 3}},
		"indexCopy": {func(a, b *Tensor) *Tensor { return a.Clone().IndexCopy_(0, ids(1), b) }, []int64{2, 3}, []int64{1, 3}},
		"indexPut": {func(a, b *Tensor) *Tensor {
			return a.Clone().IndexPut_([]*Tensor{ids(0, 0), ids(1, 1)}, b, true)
		}, []int64{2, 3}, []int64{2}},
		"scatter":    {func(a, b *Tensor) *Tensor { return a.Scatter(1, ids(2, 0).View(2, 1), b) }, []int64{2, 3}, []int64{2, 1}},
		"scatterAdd": {func(a, b *Tensor) *Tensor { return a.ScatterAdd(1, ids(2, 0).View(2, 1), b) }, []int64{2, 3}, []int64{2, 1}},
		"rmsNorm":    {func(a, b *Tensor) *Tensor { return a.RMSNorm(b, 1e-5) }, []int64{2, 3}, []int64{3}},
		"embedding":  {func(a, b *Tensor) *Tensor { return Embedding(a, ids(1, 0, 1)).Mul(b) }, []int64{2, 3}, []int64{3}},
		"add_":       {func(a, b *Tensor) *Tensor { return a.Clone().Add_(b, -2) }, []int64{2, 3}, []int64{3}},
		"mul_":       {func(a, b *Tensor) *Tensor { return a.Clone().Mul_(b) }, []int64{2, 3}, []int64{3}},
	} {
		t.Run(name, func(t *testing.T) { checkGradients(t, binary(c.f), c.a, c.b) })
	}
}

func TestLinearGradients(t *testing.T) {
	checkGradients(t, func(x []*Tensor) *Tensor { return x[0].Linear(x[1], x[2]) }, []int64{2, 3, 4}, []int64{5, 4}, []int64{5})
}

func TestAttentionGradients(t *testing.T) {
	mask := func() *Tensor { return FromBool([]bool{true, false, true, true, true, false}, 2, 3) }
	kinds := map[string]func(q, k, v *Tensor, how int) *Tensor{
		"wrapper":  func(q, k, v *Tensor, how int) *Tensor { return attend(ScaledDotProductAttention, q, k, v, mask(), how) },
		"composed": func(q, k, v *Tensor, how int) *Tensor { return attend(composedAttention, q, k, v, mask(), how) },
	}
	for name, f := range kinds {
		for how := range 3 {
			t.Run(fmt.Sprint(name, how), func(t *testing.T) {
				checkGradients(t, func(x []*Tensor) *Tensor { return f(x[0], x[1], x[2], how) },
					[]int64{2, 2, 4}, []int64{2, 3, 4}, []int64{2, 3, 5})
			})
		}
	}
}

// attend calls f without mask (0), with mask (1), causal (2).
func attend(f func(q, k, v, mask *Tensor, causal bool) *Tensor, q, k, v, mask *Tensor, how int) *Tensor {
	switch how {
	case 1:
		return f(q, k, v, mask, false)
	case 2:
		return f(q, k, v, nil, true)
	}
	return f(q, k, v, nil, false)
}
