package torch

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vector is a tensor of scripts/peers/torch_vectors.py.
type vector struct {
	Shape  []int64
	Values []float64
}

func (v *vector) tensor(d DType) *Tensor {
	if v == nil {
		return nil
	}
	return FromBytes(asBytes(v.Values), Float64, v.Shape...).To(d)
}

// distance is the largest |got - want| / (1 + |want|).
func distance(got *Tensor, want *vector) float64 {
	worst := 0.0
	values := got.Float64s()
	if len(values) != len(want.Values) {
		return math.Inf(1)
	}
	for i, w := range want.Values {
		worst = max(worst, math.Abs(values[i]-w)/(1+math.Abs(w)))
	}
	return worst
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// adamwVectors is testdata/adamw.json, PyTorch's own steps.
type adamwVectors struct {
	Config struct{ Beta1, Beta2, Eps float64 }
	Decays []float64
	Clip   float64
	Start  []*vector
	Steps  []struct {
		LR, Norm               float64
		Grads, Clipped, Params []*vector // before and after clipping; after the step
	}
}

// optimizer makes the vectors' parameters and the optimizer over them.
func (v *adamwVectors) optimizer(start []*vector) *AdamW {
	var named []Named
	for i, s := range start {
		named = append(named, Named{string(rune('a' + i)), s.tensor(Float32).RequiresGrad_(true)})
	}
	c := AdamWConfig{Beta1: v.Config.Beta1, Beta2: v.Config.Beta2, Eps: v.Config.Eps}
	return NewAdamW(c, ParamGroup{Params: named[:2], WeightDecay: v.Decays[0]}, ParamGroup{Params: named[2:], WeightDecay: v.Decays[2]})
}

// step gives the optimizer the gradients of step i and lets it update.
func (v *adamwVectors) step(a *AdamW, i int) {
	for j, p := range a.Params() {
		p.Tensor.SetGrad(v.Steps[i].Clipped[j].tensor(Float32))
	}
	a.SetLR(v.Steps[i].LR)
	a.Step()
}

func TestAdamWAgainstPyTorch(t *testing.T) {
	scoped(t)
	var v adamwVectors
	readJSON(t, "testdata/adamw.json", &v)
	a := v.optimizer(v.Start)
	defer a.Free()
	if len(v.Steps) < 5 {
		t.Fatalf("only %d steps", len(v.Steps))
	}
	for i := range v.Steps {
		v.step(a, i)
		for j, p := range a.Params() {
			if d := distance(p.Tensor, v.Steps[i].Params[j]); !(d < 1e-6) {
				t.Errorf("step %d, parameter %s: off by %g", i, p.Name, d)
			}
		}
	}
}

// TestAdamWResume: with its state written to a file and read back, a new optimizer goes on bit by bit.
func TestAdamWResume(t *testing.T) {
	scoped(t)
	var v adamwVectors
	readJSON(t, "testdata/adamw.json", &v)
	a := v.optimizer(v.Start)
	defer a.Free()
	b := v.optimizer(v.Start)
	defer b.Free()
	const half = 3
	for i := range half {
		v.step(a, i)
	}
	path := filepath.Join(t.TempDir(), "adamw.safetensors")
	if err := WriteSafetensors(path, a.State(), nil); err != nil {
		t.Fatal(err)
	}
	state, _, err := ReadSafetensors(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.LoadState(state); err != nil {
		t.Fatal(err)
	}
	for j, p := range b.Params() {
		NoGrad(func() { p.Tensor.Copy_(a.Params()[j].Tensor) })
	}
	for i := half; i < len(v.Steps); i++ {
		v.step(a, i)
		v.step(b, i)
	}
	for j, p := range b.Params() {
		if !p.Tensor.Equal(a.Params()[j].Tensor) {
			t.Errorf("parameter %s differs after the resume", p.Name)
		}
	}
}

func TestAdamWLoadStateRefuses(t *testing.T) {
	scoped(t)
	var v adamwVectors
	readJSON(t, "testdata/adamw.json", &v)
	a := v.optimizer(v.Start)
	defer a.Free()
	v.step(a, 0)
	good := map[string]*Tensor{}
	for _, n := range a.State() {
		good[n.Name] = n.Tensor.Clone()
	}
	for name, c := range map[string]struct {
		key  string
		put  *Tensor
		want string
	}{
		"no step":    {"step", nil, "step is none"},
		"short step": {"step", FromInt64([]int64{1}), "int64[3]"},
		"float step": {"step", Ones(Float32, 3), "int64[3]"},
		"lacks":      {"exp_avg.b", nil, "exp_avg.b is none at step 1"},
		"too many":   {"step", FromInt64([]int64{1, 0, 1}), "at step 0"},
		"shape":      {"exp_avg_sq.a", Zeros(Float32, 4, 3), "float32[4 3]"},
		"type":       {"exp_avg_sq.a", Zeros(Float64, 3, 4), "float64[3 4]"},
	} {
		bad := map[string]*Tensor{}
		for k, x := range good {
			bad[k] = x
		}
		bad[c.key] = c.put
		if err := a.LoadState(bad); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
	if err := a.LoadState(good); err != nil {
		t.Error(err)
	}
}

func TestClipGradNorm(t *testing.T) {
	scoped(t)
	var v adamwVectors
	readJSON(t, "testdata/adamw.json", &v)
	clipped := 0
	for i, s := range v.Steps {
		var params []*Tensor
		for j, g := range s.Grads {
			p := v.Start[j].tensor(Float32).RequiresGrad_(true)
			p.SetGrad(g.tensor(Float32))
			params = append(params, p)
		}
		if norm := ClipGradNorm(params, v.Clip); math.Abs(norm-s.Norm) > 1e-6*(1+s.Norm) {
			t.Errorf("step %d: norm %g, want %g", i, norm, s.Norm)
		}
		if s.Norm > v.Clip {
			clipped++
		}
		for j, g := range s.Clipped {
			if g == nil {
				continue
			}
			if d := distance(params[j].Grad(), g); d > 1e-6 {
				t.Errorf("step %d: gradient %d off by %g", i, j, d)
			}
		}
		if norm := GradNorm(params); norm > v.Clip+1e-5 {
			t.Errorf("step %d: norm %g after clipping to %g", i, norm, v.Clip)
		}
	}
	if clipped == 0 || clipped == len(v.Steps) {
		t.Errorf("%d of %d steps clipped: the vectors must have both", clipped, len(v.Steps))
	}
	p := Ones(Float32, 2).RequiresGrad_(true)
	if norm := ClipGradNorm([]*Tensor{p}, 1); norm != 0 {
		t.Errorf("no gradients: norm %g", norm)
	}
	p.SetGrad(FromFloat32([]float32{0.8, 0}))
	if norm := ClipGradNorm([]*Tensor{p}, 1); p.Grad().Float32s()[0] != 0.8 {
		t.Errorf("a norm of %g below the limit changed the gradient: %v", norm, p.Grad().Float32s())
	}
	p.SetGrad(FromFloat32([]float32{float32(math.Inf(1)), 1}))
	if norm := ClipGradNorm([]*Tensor{p}, 1); !math.IsInf(norm, 1) || p.Grad().Float32s()[1] != 1 {
		t.Errorf("infinite norm: %g, gradient %v", norm, p.Grad().Float32s())
	}
}

// An update goes over runs of parameters that bound what it allocates; each
// parameter is in one run, in order, and a large one stands alone.
func TestAdamWUpdatesInParts(t *testing.T) {
	s := NewScope()
	defer s.Close()
	var b bucket
	for _, n := range []int64{3, AdamWElements - 3, 1, AdamWElements + 1, 2} {
		x := Empty(Uint8, n)
		b.params, b.grads, b.means, b.meanSqs = append(b.params, x), append(b.grads, x), append(b.means, x), append(b.meanSqs, x)
	}
	var sizes []int
	at := 0
	for _, p := range b.parts() {
		sizes = append(sizes, len(p.params))
		for i := range p.params {
			if p.params[i] != b.params[at] || p.grads[i] != b.grads[at] || p.means[i] != b.means[at] || p.meanSqs[i] != b.meanSqs[at] {
				t.Errorf("parameter %d is not where it was", at)
			}
			at++
		}
	}
	if fmt.Sprint(sizes) != "[2 1 1 1]" || at != len(b.params) {
		t.Errorf("runs of %v parameters, want 2 1 1 1", sizes)
	}
}
