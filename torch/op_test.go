package torch

import "testing"

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

func TestSmoke(t *testing.T) {
	scoped(t)
	x := FromFloat32([]float32{1, 2, 3, 4}, 2, 2).RequiresGrad_(true)
	y := x.Add(Ones(Float32, 2, 2)).Matmul(x).Sum()
	y.Backward()
	t.Log(y.Item(), x.Grad().Float32s(), x.Split(1, 0), x.Slice(1, 0, End, 1).Shape())
	t.Log(Arange(5).AddScalar(1).Int64s(), x.Index(FromInt64([]int64{1})), x.To(Float64), x.ToDevice("cpu"))
	t.Log(Try(func() error { x.Matmul(Ones(Float32, 3)); return nil }))
	t.Log(Try(func() error { Cat([]*Tensor{x, Ones(Float32, 3)}, 0); return nil }))
	t.Log(Try(func() error { x.View(3, -1); return nil }))
}
