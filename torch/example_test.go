package torch_test

import (
	"fmt"

	"github.com/memopd/memopd-bench/torch"
)

// One step of least squares: tensors of the step die with its scope, the weight lives on.
func Example() {
	torch.SetNumThreads(1)
	weight := torch.FromFloat32([]float32{0, 0}, 1, 2).RequiresGrad_(true)
	defer weight.Free()
	optimizer := torch.NewAdamW(torch.DefaultAdamW(), torch.ParamGroup{Params: []torch.Named{{Name: "weight", Tensor: weight}}, LR: 0.5})
	defer optimizer.Free()

	step := torch.NewScope()
	x := torch.FromFloat32([]float32{1, 0, 0, 1}, 2, 2)
	y := torch.FromFloat32([]float32{3, -2}, 2, 1)
	loss := x.Linear(weight, nil).Sub(y).Square().Mean()
	loss.Backward()
	fmt.Println("loss", loss.Item())
	fmt.Printf("norm %.3f\n", torch.ClipGradNorm([]*torch.Tensor{weight}, 1))
	optimizer.Step()
	optimizer.ZeroGrad()
	step.Close()

	fmt.Printf("%v %.3f\n", weight, weight.Float32s())
	// Output:
	// loss 6.5
	// norm 3.606
	// float32[1 2] [0.500 -0.500]
}

// An operator's refusal becomes an error at a boundary.
func ExampleTry() {
	err := torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		torch.Ones(torch.Float32, 2, 3).View(4, -1)
		return nil
	})
	fmt.Println(err)
	// Output: torch: aten::view(float32[2 3], [4 -1]): shape '[4, -1]' is invalid for input of size 6
}
