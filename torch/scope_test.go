package torch

import (
	"fmt"
	"strings"
	"testing"
)

func TestScopes(t *testing.T) {
	base := Live()
	outer := NewScope()
	inner := NewScope()
	a, b, c := Ones(Float32, 1), Ones(Float32, 1), Ones(Float32, 1)
	inner.Keep(a)
	if b.Keep() != b {
		t.Error("Keep returned another tensor")
	}
	c.Own()
	d := Ones(Float32, 1)
	d.Free()
	d.Free()
	Ones(Float32, 1)
	if n := Live() - base; n != 4 {
		t.Errorf("%d live, want 4", n)
	}
	inner.Close()
	inner.Close()
	if n := Live() - base; n != 3 {
		t.Errorf("%d live after the inner scope, want 3", n)
	}
	_ = a.Add(b)
	NewScope() // closed with the outer one
	Ones(Float32, 1)
	outer.Close()
	if n := Live() - base; n != 1 {
		t.Errorf("%d live after the outer scope, want 1", n)
	}
	if c.Item() != 1 {
		t.Error("an owned tensor died with a scope")
	}
	free := Ones(Float32, 1) // no scope is open
	free.Keep().Free()
	c.Free()
	if n := Live() - base; n != 0 {
		t.Errorf("%d live at the end", n)
	}
	(*Tensor)(nil).Free()
	(*Tensor)(nil).Keep()
}

// TestNoLeak runs what a training step does, and finds as many tensors as before.
func TestNoLeak(t *testing.T) {
	base := Live()
	outer := NewScope()
	w := Randn(4, 4).RequiresGrad_(true)
	a := NewAdamW(DefaultAdamW(), ParamGroup{Params: []Named{{"w", w}}, LR: 0.1})
	var after []int
	for range 4 {
		s := NewScope()
		x := Ones(Float32, 2, 4)
		values, _ := x.Linear(w, nil).SiLU().Topk(2, -1)
		values.Sum().Backward()
		ClipGradNorm([]*Tensor{w}, 1)
		a.Step()
		a.ZeroGrad()
		x.Split(1, 0)
		_ = x.Float32s()
		s.Close()
		after = append(after, Live())
	}
	if after[0] != after[3] || after[0] != base+3 { // w and its two moments
		t.Errorf("live after each step: %v, from %d", after, base)
	}
	a.Free()
	outer.Close()
	if Live() != base {
		t.Errorf("%d tensors leaked", Live()-base)
	}
}

func TestAutograd(t *testing.T) {
	scoped(t)
	x := FromFloat32([]float32{1, 2}).RequiresGrad_(true)
	if x.Grad() != nil {
		t.Error("a gradient before backward")
	}
	x.Square().Sum().Backward()
	x.Square().Sum().Backward()
	if g := x.Grad().Float32s(); fmt.Sprint(g) != "[4 8]" {
		t.Errorf("accumulated gradient %v, want [4 8]", g)
	}
	x.ZeroGrad()
	if x.Grad() != nil {
		t.Error("a gradient after ZeroGrad")
	}
	y := x.MulScalar(3)
	y.BackwardWith(FromFloat32([]float32{1, 10}), true)
	y.BackwardWith(FromFloat32([]float32{1, 10}), false)
	if g := x.Grad().Float32s(); fmt.Sprint(g) != "[6 60]" {
		t.Errorf("gradient %v, want [6 60]", g)
	}
	NoGrad(func() {
		if x.MulScalar(2).RequiresGrad() {
			t.Error("NoGrad records")
		}
		EnableGrad(func() {
			if !x.MulScalar(2).RequiresGrad() {
				t.Error("EnableGrad does not record")
			}
		})
		if x.MulScalar(2).RequiresGrad() {
			t.Error("NoGrad records after an inner EnableGrad")
		}
	})
	err := Try(func() error { NoGrad(func() { x.Matmul(Ones(Float32, 3)) }); return nil })
	if err == nil || !x.MulScalar(2).RequiresGrad() {
		t.Errorf("after a panic in NoGrad (%v) nothing is recorded", err)
	}
	if x.Detach().RequiresGrad() || !x.RequiresGrad() {
		t.Error("Detach")
	}
}

func TestSeed(t *testing.T) {
	scoped(t)
	ManualSeed(5)
	a := Randn(8)
	b := Randn(8)
	ManualSeed(5)
	if c := Randn(8); !c.Equal(a) || c.Equal(b) {
		t.Error("a seed does not give its numbers again")
	}
}

func TestRuntime(t *testing.T) {
	scoped(t)
	t.Logf("libtorch version: %s", Version())
	if NumThreads() != 1 || Version() == "" {
		t.Errorf("threads %d, version %q", NumThreads(), Version())
	}
	for name, want := range map[string]string{"cpu": "0 -1", "cuda": "1 -1", "cuda:3": "1 3", "cuda:x": "error", "gpu": "error", "cuda:-1": "error", "cpu:0": "0 0"} {
		kind, index, err := parseDevice(name)
		got := fmt.Sprint(kind, index)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("device %q: %s, want %s", name, got, want)
		}
	}
	if x := Ones(Float32, 1).ToDevice("cpu"); x.Device() != "cpu" || ZerosOn("cpu", BFloat16, 2, 1).String() != "bfloat16[2 1]" {
		t.Errorf("device %s", x.Device())
	}
	Synchronize("cpu")
	if !atLeast(1, 13) || atLeast(99, 0) || atLeast(1, 14) == strings.HasPrefix(Version(), "1.13") {
		t.Error("versions are compared wrongly")
	}
	if err := CheckDevice("cpu"); err != nil {
		t.Error(err)
	}
	if !CUDAAvailable() {
		for name, want := range map[string]string{"cuda": "no CUDA device answers", "cuda:1": "no CUDA device answers", "gpu": "neither cpu nor cuda"} {
			if err := CheckDevice(name); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("device %s: error %v, want %q in it", name, err, want)
			}
		}
		t.Skip("no CUDA device answers: the round trip over one is not tested")
	}
	x := FromFloat32([]float32{1, 2, 3}).ToDevice("cuda:0")
	if x.Device() != "cuda:0" || x.MulScalar(2).Float32s()[2] != 6 || ZerosOn("cuda", Float32, 1).Device() != "cuda:0" {
		t.Errorf("%s on %s", x, x.Device())
	}
	Synchronize("cuda:0")
	if used, total := CUDAMemory(); used <= 0 || used > total {
		t.Errorf("%d of %d bytes of CUDA memory in use", used, total)
	}
}
