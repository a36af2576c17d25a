package model

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch"
)

// rounded are the values of a parameter after conversion to a type.
func rounded(p Parameter, d torch.DType) []float32 {
	s := torch.NewScope()
	defer s.Close()
	return p.Tensor.Detach().To(d).Float32s()
}

// TestCloneTo holds that a clone has the rounded weights, its own memory and the vocabulary limit.
func TestCloneTo(t *testing.T) {
	d := newModel(t, tiny(Qwen3), 31, 1)
	if err := d.LimitVocab(40); err != nil {
		t.Fatal(err)
	}
	for _, weights := range floats {
		p := Placement{Weights: weights}
		c := d.CloneTo(p)
		if want := (Placement{"cpu", weights, weights}); c.Placement() != want {
			t.Errorf("placement %+v, want %+v", c.Placement(), want)
		}
		if c.Vocab() != 40 || !reflect.DeepEqual(c.Config, d.Config) {
			t.Errorf("%d ids, config %+v", c.Vocab(), c.Config)
		}
		for i, q := range c.Parameters() {
			if q.Tensor.DType() != weights || !q.Tensor.RequiresGrad() || !slices.Equal(q.Tensor.Float32s(), rounded(d.parameters[i], weights)) {
				t.Errorf("%v: %s differs", weights, q.Name)
			}
		}
		torch.NoGrad(func() { c.embed.Zero_() })
		c.Free()
	}
	if d.embed.Float32s()[0] == 0 {
		t.Error("the clone shared the weights")
	}
}

// TestCopyFromConverts copies between types, and refuses another shape.
func TestCopyFromConverts(t *testing.T) {
	wide := tiny(Llama)
	wide.IntermediateSize = 64
	a, b, other := newModel(t, tiny(Llama), 1, 1), newModel(t, tiny(Llama), 2, 1), newModel(t, wide, 3, 1)
	short := a.CloneTo(Placement{Weights: torch.BFloat16})
	defer short.Free()
	if err := b.CopyFrom(short); err != nil {
		t.Fatal(err)
	}
	for i, p := range b.Parameters() {
		if !slices.Equal(p.Tensor.Float32s(), rounded(a.parameters[i], torch.BFloat16)) {
			t.Errorf("%s differs", p.Name)
		}
	}
	if err := short.CopyFrom(a); err != nil {
		t.Fatal(err)
	}
	if err := other.CopyFrom(a); err == nil || !strings.Contains(err.Error(), "gate_up_proj") {
		t.Errorf("another shape: %v", err)
	}
}

// TestWrongPlacement wants errors, not panics, of what is not there.
func TestWrongPlacement(t *testing.T) {
	d := newModel(t, tiny(Llama), 1, 1)
	fsys := folder(t, d, 0)
	for want, p := range map[string]Placement{
		`device "tpu"`:         {Device: "tpu"},
		`device "cuda:x"`:      {Device: "cuda:x"},
		`device "cuda:-1"`:     {Device: "cuda:-1"},
		`device "cuda:99"`:     {Device: "cuda:99"},
		"weights in int64":     {Weights: torch.Int64},
		"compute in bool":      {Compute: torch.Bool},
		"weights in dtype(99)": {Weights: 99},
	} {
		refused(t, want, fsys, p, "placement: ", want)
		err := torch.Try(func() error { d.CloneTo(p); return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("clone: error %v, want %q in it", err, want)
		}
	}
	if torch.CUDADevices() == 0 {
		refused(t, "cuda", fsys, Placement{Device: "cuda"}, "no CUDA device")
	}
}

// TestSaveKeepsType saves a bfloat16 decoder and reads it back.
func TestSaveKeepsType(t *testing.T) {
	d := newModel(t, tiny(Qwen3), 32, 1)
	for _, weights := range floats {
		c := d.CloneTo(Placement{Weights: weights})
		dir := t.TempDir()
		if err := c.Save(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, configFilename))
		if err != nil || !strings.Contains(string(text), `"torch_dtype": "`+weights.String()+`"`) {
			t.Errorf("%v: config %s (%v)", weights, text, err)
		}
		f, err := torch.OpenSafetensors(filepath.Join(dir, weightsFilename))
		if err != nil {
			t.Fatal(err)
		}
		if _, stored, err := f.Section(embeddingsName); stored != weights || err != nil {
			t.Errorf("stored in %v (%v), want %v", stored, err, weights)
		}
		f.Close()
		again, err := Load(dir, Placement{Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		sameWeights(t, c, again)
		again.Free()
		c.Free()
	}
}
