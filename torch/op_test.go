package torch

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

// TestOperatorsExist asks the installed libtorch for every operator that a wrapper names.
func TestOperatorsExist(t *testing.T) {
	if len(operators) < 100 {
		t.Fatalf("only %d operators registered", len(operators))
	}
	for _, o := range operators {
		if !o.Exists() && o != opSDPA {
			t.Errorf("%s.%s is missing in libtorch %s", o.Name, o.Overload, Version())
		}
	}
}

// TestAgainstPyTorch holds operators whose rules are easily mistaken against PyTorch's outputs and gradients.
func TestAgainstPyTorch(t *testing.T) {
	var cases map[string]struct {
		Inputs, Grads   []*vector
		Output, Weights *vector
	}
	readJSON(t, "testdata/ops.json", &cases)
	seen := []bool{true, false, true, true, true, false, false, true, true}
	targets := []int64{1, -100, 4, 0}
	attention := func(f func(q, k, v, mask *Tensor, causal bool) *Tensor, how int) func([]*Tensor) *Tensor {
		return func(x []*Tensor) *Tensor { return attend(f, x[0], x[1], x[2], FromBool(seen, 3, 3), how) }
	}
	for name, f := range map[string]func([]*Tensor) *Tensor{
		"sdpa": attention(ScaledDotProductAttention, 0), "sdpa composed": attention(composedAttention, 0),
		"sdpa_mask": attention(ScaledDotProductAttention, 1), "sdpa_mask composed": attention(composedAttention, 1),
		"sdpa_causal": attention(ScaledDotProductAttention, 2), "sdpa_causal composed": attention(composedAttention, 2),
		"cross_entropy_mean": func(x []*Tensor) *Tensor { return x[0].CrossEntropy(FromInt64(targets), ReduceMean) },
		"cross_entropy_none": func(x []*Tensor) *Tensor { return x[0].CrossEntropy(FromInt64(targets), ReduceNone) },
		"rms_norm":           func(x []*Tensor) *Tensor { return x[0].RMSNorm(x[1], 1e-6) },
		"gelu":               unary((*Tensor).GELU),
		"std":                func(x []*Tensor) *Tensor { return x[0].Std(true) },
		"logsumexp":          func(x []*Tensor) *Tensor { return x[0].Logsumexp([]int{-1}, false) },
	} {
		t.Run(name, func(t *testing.T) {
			scoped(t)
			c, ok := cases[strings.Fields(name)[0]]
			if !ok {
				t.Fatal("no such case in testdata/ops.json")
			}
			var x []*Tensor
			for _, v := range c.Inputs {
				x = append(x, v.tensor(Float64).RequiresGrad_(true))
			}
			y := f(x)
			y.Mul(c.Weights.tensor(Float64)).Sum().Backward()
			if d := distance(y, c.Output); !(d < 1e-9) {
				t.Errorf("output off by %g", d)
			}
			for i := range x {
				if d := distance(x[i].Grad(), c.Grads[i]); !(d < 1e-9) {
					t.Errorf("gradient %d off by %g", i, d)
				}
			}
		})
	}
}

// TestValues holds wrappers against values reckoned by hand, so that no argument stands in another's place.
func TestValues(t *testing.T) {
	scoped(t)
	x := FromFloat32([]float32{3, 1, 2, 6, 5, 4}, 2, 3)
	id := func(v ...int64) *Tensor { return FromInt64(v) }
	second := func(_, b *Tensor) *Tensor { return b }
	for name, c := range map[string]struct {
		got  *Tensor
		kind string
		want []float32
	}{
		"slice":      {x.Slice(1, 0, End, 2), "float32[2 2]", []float32{3, 2, 6, 4}},
		"slice end":  {x.Slice(1, -2, -1, 1), "float32[2 1]", []float32{1, 5}},
		"narrow":     {x.Narrow(1, 1, 2), "float32[2 2]", []float32{1, 2, 5, 4}},
		"select":     {x.Select(1, 2), "float32[2]", []float32{2, 4}},
		"gather":     {x.Gather(1, id(2, 0).View(2, 1)), "float32[2 1]", []float32{2, 6}},
		"scatter":    {x.Scatter(1, id(2, 0).View(2, 1), FromFloat32([]float32{8, 9}, 2, 1)), "float32[2 3]", []float32{3, 1, 8, 9, 5, 4}},
		"scatter v":  {x.ScatterScalar(1, id(2, 0).View(2, 1), 7), "float32[2 3]", []float32{3, 1, 7, 7, 5, 4}},
		"index":      {x.Index(id(1)), "float32[1 3]", []float32{6, 5, 4}},
		"index mask": {x.Index(x.GtScalar(3)), "float32[3]", []float32{6, 5, 4}},
		"index at":   {x.IndexAt(nil, id(2, 0)), "float32[2 2]", []float32{2, 3, 4, 6}},
		"put":        {x.Clone().IndexPut_([]*Tensor{id(0), id(1)}, FromFloat32([]float32{9}), false), "float32[2 3]", []float32{3, 9, 2, 6, 5, 4}},
		"topk":       {second(x.Topk(2, 1)), "int64[2 2]", []float32{0, 2, 0, 1}},
		"sort":       {second(x.Sort(1, false)), "int64[2 3]", []float32{1, 2, 0, 2, 1, 0}},
		"max index":  {second(x.MaxDim(0)), "int64[3]", []float32{1, 1, 1}},
		"argmax":     {x.Argmax(1, true), "int64[2 1]", []float32{0, 0}},
		"cumsum":     {x.Cumsum(1), "float32[2 3]", []float32{3, 4, 6, 6, 11, 15}},
		"tril":       {x.Tril(-1), "float32[2 3]", []float32{0, 0, 0, 6, 0, 0}},
		"triu":       {x.Triu(1), "float32[2 3]", []float32{0, 1, 2, 0, 0, 4}},
		"each":       {id(1, 2).RepeatInterleave(2, 0), "int64[4]", []float32{1, 1, 2, 2}},
		"repeat":     {id(1, 2).Repeat(2), "int64[4]", []float32{1, 2, 1, 2}},
		"flip":       {x.Flip(1), "float32[2 3]", []float32{2, 1, 3, 4, 5, 6}},
		"cat":        {Cat([]*Tensor{id(1), id(2, 3)}, 0), "int64[3]", []float32{1, 2, 3}},
		"stack":      {Stack([]*Tensor{id(1, 2), id(3, 4)}, 1), "int64[2 2]", []float32{1, 3, 2, 4}},
		"permute":    {x.Permute(1, 0), "float32[3 2]", []float32{3, 6, 1, 5, 2, 4}},
		"chunk":      {x.Chunk(2, 1)[1], "float32[2 1]", []float32{2, 4}},
		"split":      {x.Split(2, 1)[1], "float32[2 1]", []float32{2, 4}},
		"sizes":      {x.SplitSizes([]int64{1, 2}, 1)[1], "float32[2 2]", []float32{1, 2, 5, 4}},
		"unbind":     {x.Unbind(0)[1], "float32[3]", []float32{6, 5, 4}},
		"addcmul":    {id(1).To(Float32).Addcmul_(id(2).To(Float32), id(3).To(Float32), 10), "float32[1]", []float32{61}},
		"addcdiv":    {id(1).To(Float32).Addcdiv_(id(6).To(Float32), id(3).To(Float32), 10), "float32[1]", []float32{21}},
		"alpha":      {id(1).AddAlpha(id(2), 3), "int64[1]", []float32{7}},
		"add_":       {id(1).Add_(id(2), 3), "int64[1]", []float32{7}},
		"rsub":       {id(1).RsubScalar(5), "int64[1]", []float32{4}},
		"int half":   {id(1).AddScalar(0.5), "float32[1]", []float32{1.5}},
		"int div":    {id(1).DivScalar(2), "float32[1]", []float32{0.5}},
		"bool mul":   {FromBool([]bool{true}).MulScalar(3), "float32[1]", []float32{3}},
		"floor":      {id(-7).FloorDivide(id(2)), "int64[1]", []float32{-4}},
		"remainder":  {id(-7).Remainder(4), "int64[1]", []float32{1}},
		"clamp":      {x.Clamp(2, 5), "float32[2 3]", []float32{3, 2, 2, 5, 5, 4}},
		"clamp low":  {x.Clamp(2, math.Inf(1)), "float32[2 3]", []float32{3, 2, 2, 6, 5, 4}},
		"where":      {Where(x.LtScalar(3), x.ZerosLike(), x), "float32[2 3]", []float32{3, 0, 0, 6, 5, 4}},
		"le":         {x.LeScalar(2), "bool[2 3]", []float32{0, 1, 1, 0, 0, 0}},
		"ne":         {x.Ne(x.Flip(1)), "bool[2 3]", []float32{1, 0, 1, 1, 0, 1}},
		"and or":     {x.GtScalar(1).LogicalAnd(x.LtScalar(4)).LogicalOr(x.GeScalar(6)), "bool[2 3]", []float32{1, 0, 1, 1, 0, 0}},
		"full":       {Full(Int64, 3, 2), "int64[2]", []float32{3, 3}},
		"arange":     {ArangeStep(1, 6, 2), "int64[3]", []float32{1, 3, 5}},
		"eye":        {Eye(Float32, 2), "float32[2 2]", []float32{1, 0, 0, 1}},
		"nonzero":    {x.GtScalar(4).Nonzero(), "int64[2 2]", []float32{1, 0, 1, 1}},
		"finite":     {FromFloat32([]float32{1, float32(math.NaN())}).IsFinite(), "bool[2]", []float32{1, 0}},
		"std":        {FromFloat32([]float32{1, 3}).Std(false), "float32[]", []float32{1}},
		"norm":       {FromFloat32([]float32{3, 4}).Norm(), "float32[]", []float32{5}},
		"bfloat16":   {FromFloat32([]float32{1.00390625}).To(BFloat16), "bfloat16[1]", []float32{1}},
	} {
		if c.got.String() != c.kind || !reflect.DeepEqual(c.got.Float32s(), c.want) {
			t.Errorf("%s: %v %v, want %s %v", name, c.got, c.got.Float32s(), c.kind, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	scoped(t)
	x := Ones(Float32, 2, 3)
	freed := Ones(Float32, 1)
	freed.Free()
	many := []*Tensor{x, x, x, x, x, Ones(Int64, 4)}
	for want, f := range map[string]func(){
		"torch: aten::matmul(float32[2 3], float32[2 3]): ":                                           func() { x.Matmul(x) },
		"torch: aten::add.Tensor(float32[2 3], int64[2]): ":                                           func() { x.Add(Arange(2)) },
		"torch: aten::cat([float32[2 3], float32[2 3], float32[2 3], float32[2 3], ... 2 more], 0): ": func() { Cat(many, 0) },
		"torch: aten::view(float32[2 3], [4 -1]): ":                                                   func() { x.View(4, -1) },
		"torch: aten::linear(float32[2 3], float32[5 2], none): ":                                     func() { x.Linear(Ones(Float32, 5, 2), nil) },
		"torch: aten::add.Tensor(none, float32[2 3]): ":                                               func() { (*Tensor)(nil).Add(x) },
		"torch: backward(float32[2 3]): ":                                                             func() { x.Backward() },
		"torch: Dim(float32[2 3]): no dimension 2":                                                    func() { x.Dim(2) },
		"torch: from([2 2]): shape needs 16 bytes, given 12":                                          func() { FromFloat32([]float32{1, 2, 3}, 2, 2) },
		"torch: tensor: used after it was freed":                                                      func() { freed.Neg() },
		`torch: to(float32[2 3]): device "tpu": neither cpu nor cuda:N`:                               func() { x.ToDevice("tpu") },
		`torch: to(float32[2 3]): device "cuda:99": `:                                                 func() { x.ToDevice("cuda:99") },
		`torch: zeros: device "cuda:99": `:                                                            func() { ZerosOn("cuda:99", Float32, 2) },
		`torch: synchronize: device "cuda:99": `:                                                      func() { Synchronize("cuda:99") },
		"torch: aten::no_such_operator(float32[2 3]): this libtorch lacks the operator": func() {
			(&operator{ctorch.Op{Name: "aten::no_such_operator"}}).one(tn(x))
		},
	} {
		err := Try(func() error { f(); return nil })
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q, want %q at its start, one line", err, want)
		}
	}
}

func TestTry(t *testing.T) {
	scoped(t)
	own := errors.New("own")
	if err := Try(func() error { return own }); err != own {
		t.Errorf("f's own error became %v", err)
	}
	before := Live()
	err := Try(func() error {
		NewScope() // left open by the panic
		Ones(Float32, 2).Matmul(Ones(Float32, 3))
		return nil
	})
	if err == nil || Live() != before {
		t.Errorf("error %v, %d tensors left of a scope that the panic left open", err, Live()-before)
	}
	defer func() {
		if r := recover(); fmt.Sprint(r) != "other" {
			t.Errorf("recovered %v, want the panic that is not torch's", r)
		}
	}()
	_ = Try(func() error { panic("other") })
}
