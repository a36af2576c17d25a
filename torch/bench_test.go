package torch

import (
	"syscall"
	"testing"
)

// BenchmarkOps measures µs an operator, freeing included. scripts/peers/torch_ops.py measures the same in Python, under the same
// names, and scripts/peers/torch_ops.sh compares.
func BenchmarkOps(b *testing.B) {
	s := NewScope()
	defer s.Close()
	x, y := Rand(4, 4), Rand(4, 4)
	big, ids := Rand(512, 512), Arange(32)
	rows, weight, bias := Rand(64, 256), Rand(256, 256), Rand(256)
	table := Rand(1000, 256)
	grad := func() *Tensor { return x.Clone().RequiresGrad_(true) }
	xg := grad()
	cases := []struct {
		name string
		grad bool
		op   func()
	}{
		{"add_4x4", false, func() { x.Add(y) }},
		{"add_4x4_grad", true, func() { xg.Add(y) }},
		{"mul_scalar_4x4", false, func() { x.MulScalar(0.5) }},
		{"matmul_4x4", false, func() { x.Matmul(y) }},
		{"matmul_4x4_grad", true, func() { xg.Matmul(y) }},
		{"add_matmul_sum_backward", true, func() { xg.Add(y).Matmul(y).Sum().Backward() }},
		{"slice", false, func() { x.Slice(0, 1, 3, 1) }},
		{"view", false, func() { x.View(2, 8) }},
		{"transpose", false, func() { x.Transpose(0, 1) }},
		{"sum_dim", false, func() { x.SumDim([]int{-1}, true) }},
		{"cat", false, func() { Cat([]*Tensor{x, y}, 0) }},
		{"softmax_4x4", false, func() { x.Softmax(-1) }},
		{"embedding_32x256", false, func() { Embedding(table, ids) }},
		{"linear_silu_64x256", false, func() { rows.Linear(weight, bias).SiLU() }},
		{"add_inplace", false, func() { x.Add_(y, 1e-9) }},
		{"item", false, func() { bias.Select(0, 0).Item() }},
		{"shape", false, func() { x.Shape() }},
		{"matmul_512", false, func() { big.Matmul(big) }},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			run := func() {
				if c.grad {
					loop(b, c.op)
				} else {
					NoGrad(func() { loop(b, c.op) })
				}
			}
			cpu := cpuNanoseconds()
			run()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N), "µs/op")
			b.ReportMetric(float64(cpuNanoseconds()-cpu)/1e3/float64(b.N), "cpu-µs/op")
		})
	}
}

// cpuNanoseconds is the CPU time of the process so far.
func cpuNanoseconds() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// loop runs op b.N times, each in its scope.
func loop(b *testing.B, op func()) {
	b.ReportAllocs()
	for b.Loop() {
		s := NewScope()
		op()
		s.Close()
	}
}
