package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/train"
)

// parityResult compares one computation on the device with the CPU in float32.
type parityResult struct {
	Name       string  `json:"name"`
	DType      string  `json:"dtype"`
	Difference float64 `json:"difference"` // largest |device - CPU|, relative to the largest |CPU|
	Tolerance  float64 `json:"tolerance"`
	OK         bool    `json:"ok"`
}

// note records a comparison.
func (k *deviceCheck) note(name, dtype string, got, want *torch.Tensor, tolerance float64) {
	difference := relative(got, want)
	ok := difference <= tolerance
	k.report.Parity = append(k.report.Parity, parityResult{name, dtype, difference, tolerance, ok})
	verdict := ""
	if !ok {
		verdict = "  FAILED"
	}
	fmt.Fprintf(k.out, "  %-28s %-4s off by %.2g (at most %.2g)%s\n", name, dtype, difference, tolerance, verdict)
}

// relative is the largest difference, relative to the largest value.
func relative(got, want *torch.Tensor) float64 {
	a, b := got.Float64s(), want.Float64s()
	difference, scale := 0.0, 0.0
	for i := range b {
		difference, scale = max(difference, math.Abs(a[i]-b[i])), max(scale, math.Abs(b[i]))
		if math.IsNaN(a[i]) {
			return math.Inf(1)
		}
	}
	return difference / max(scale, 1e-30)
}

// failed is an error where a comparison noted since start is off.
func (k *deviceCheck) failed(start int) error {
	var errs []error
	for _, p := range k.report.Parity[start:] {
		if !p.OK {
			errs = append(errs, fmt.Errorf("%s in %s is off by %.2g, at most %.2g", p.Name, p.DType, p.Difference, p.Tolerance))
		}
	}
	return errors.Join(errs...)
}

// operators runs what training is made of on the same numbers on both.
func (k *deviceCheck) operators() error {
	start := len(k.report.Parity)
	torch.ManualSeed(k.Seed)
	x, w, q := torch.Randn(64, 256), torch.Randn(512, 256), torch.Randn(2, 4, 48, 32)
	ids := torch.FromInt64([]int64{5, 0, 63, 5, 17})
	mask := torch.Ones(torch.Bool, 48, 48).Tril(0)
	for _, op := range []struct {
		name string
		run  func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor
		bf16 bool
	}{
		{"linear", func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor { return on(x).Linear(on(w), nil) }, true},
		{"rms norm", func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor {
			return on(x).RMSNorm(on(w.Select(0, 0)), 1e-6)
		}, true},
		{"silu", func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor { return on(x).SiLU() }, true},
		{"log softmax", func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor { return on(x).LogSoftmax(-1) }, false},
		{"embedding", func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor {
			return torch.Embedding(on(x), ids.ToDevice(k.Device))
		}, true},
		{"index add", func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor {
			return on(x).IndexAdd(0, ids.ToDevice(k.Device), on(w.Narrow(0, 0, 5)))
		}, false},
		{"causal attention", func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor {
			return torch.ScaledDotProductAttention(on(q), on(q), on(q), nil, true)
		}, true},
		{"masked attention", func(on func(*torch.Tensor) *torch.Tensor) *torch.Tensor {
			return torch.ScaledDotProductAttention(on(q), on(q), on(q), mask.ToDevice(k.Device), false)
		}, true},
	} {
		device := k.Device
		k.Device = "cpu"
		want := op.run(func(t *torch.Tensor) *torch.Tensor { return t })
		k.Device = device
		k.note(op.name, train.Float32, op.run(func(t *torch.Tensor) *torch.Tensor { return t.ToDevice(device) }), want, 1e-5)
		if op.bf16 {
			k.note(op.name, train.BFloat16, op.run(func(t *torch.Tensor) *torch.Tensor { return t.To(torch.BFloat16).ToDevice(device) }), want, 3e-2)
		}
	}
	return k.failed(start)
}

// smallModel compares hidden states, logits and gradients of a small decoder.
func (k *deviceCheck) smallModel() error {
	start := len(k.report.Parity)
	host, err := model.New(model.Config{
		ModelType: model.Qwen2, VocabSize: 1000, HiddenSize: 128, IntermediateSize: 256, NumHiddenLayers: 3,
		NumAttentionHeads: 4, NumKeyValueHeads: 2, HeadDim: 32, MaxPositionEmbeddings: 2048,
		RMSNormEps: 1e-6, RopeTheta: 1e6, TieWordEmbeddings: true,
	}, k.Seed)
	if err != nil {
		return err
	}
	defer host.Free()
	small := *k
	small.Prefix, small.Calls, small.Response, small.Obs = 30, 3, 12, 20
	t := small.trajectory(host.Vocab(), 0)
	packed, err := align.Compile(t, align.Options{})
	if err != nil {
		return err
	}
	rows := []*align.Packed{packed}
	cpu := train.Compute{Device: "cpu", DType: train.Float32}
	logits := func(d *model.Decoder) (out *torch.Tensor) {
		torch.NoGrad(func() { out = d.Logits(d.Hidden(rows)) })
		return out
	}
	want := logits(host)
	cpu.BackwardNLL(host, rows, 1)
	for _, kind := range []struct {
		dtype             string
		forward, backward float64
	}{{train.Float32, 1e-4, 1e-3}, {train.BFloat16, 5e-2, 0.2}} {
		for _, again := range []bool{false, true} {
			c := k.compute(kind.dtype, again)
			c.LogitsPerChunk = 7
			d := host.CloneTo(c.Trained())
			if !again {
				k.note("model: logits", kind.dtype, logits(d), want, kind.forward)
			}
			c.BackwardNLL(d, rows, 1)
			names := d.Parameters()
			worst, at := -1.0, 0
			for i, p := range host.Parameters() {
				if r := relative(names[i].Tensor.Grad(), p.Tensor.Grad()); r > worst {
					worst, at = r, i
				}
			}
			name := "model: gradients"
			if again {
				name += ", layers again"
			}
			k.note(name, kind.dtype, names[at].Tensor.Grad(), host.Parameters()[at].Tensor.Grad(), kind.backward)
			d.Free()
		}
	}
	return k.failed(start)
}
