package train

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
)

// The values of Compute.DType.
const (
	Float32  = "f32"
	BFloat16 = "bf16"
)

// dtypes are the compute types by their names.
var dtypes = map[string]torch.DType{Float32: torch.Float32, BFloat16: torch.BFloat16}

// Compute says where and in which type a run computes, and what it does to fit
// into memory. Whatever the type, the weights that are trained, their gradients
// and moments are float32, and so are softmax, log-probs, losses and advantages.
type Compute struct {
	Device           string `json:"device" flag:"device" help:"where it runs: cpu, cuda or cuda:N"`
	DType            string `json:"dtype" flag:"dtype" help:"type that the layers compute in: f32 or bf16; trained weights stay f32, frozen models are stored in this type"`
	CheckpointLayers bool   `json:"checkpoint_layers" flag:"gradient-checkpointing" help:"keep only the layers' inputs of a forward pass and compute each layer anew in the backward pass: less memory, about a third more time"`
	LogitsPerChunk   int    `json:"logits_per_chunk" flag:"logits-per-chunk" help:"prediction positions whose logits over the whole vocabulary are made at once; 0: all of a microbatch"`
}

// defaultCompute is what runs on a CPU with a small vocabulary.
func defaultCompute() Compute { return Compute{Device: "cpu", DType: Float32} }

// problems lists what is wrong with the settings.
func (c Compute) problems() []error {
	var errs []error
	if !knownDevice(c.Device) {
		errs = append(errs, fmt.Errorf("device is %q, want one of cpu, cuda, cuda:N", c.Device))
	}
	if _, ok := dtypes[c.DType]; !ok {
		errs = append(errs, fmt.Errorf("dtype is %q, want one of %s, %s", c.DType, Float32, BFloat16))
	}
	if c.LogitsPerChunk < 0 {
		errs = append(errs, fmt.Errorf("logits_per_chunk is %d, want 0 or more", c.LogitsPerChunk))
	}
	return errs
}

// knownDevice tells whether a name is one of a device, there or not.
func knownDevice(name string) bool {
	kind, number, numbered := strings.Cut(name, ":")
	if numbered {
		if n, err := strconv.Atoi(number); err != nil || n < 0 {
			return false
		}
	}
	return kind == "cuda" || kind == "cpu" && !numbered
}

// Trained is the placement of a decoder that is trained: float32 weights.
func (c Compute) Trained() model.Placement {
	return model.Placement{Device: c.Device, Weights: torch.Float32, Compute: dtypes[c.DType]}
}

// Frozen is the placement of a decoder that is not trained, a reference or a
// teacher: its weights are stored in the type that it computes in.
func (c Compute) Frozen() model.Placement {
	return model.Placement{Device: c.Device, Weights: dtypes[c.DType], Compute: dtypes[c.DType]}
}

// available reports a device that this machine or this libtorch lacks.
func (c Compute) available() error {
	_, number, _ := strings.Cut(c.Device, ":")
	if !strings.HasPrefix(c.Device, "cuda") {
		return nil
	}
	have := torch.CUDADevices()
	if have == 0 {
		return fmt.Errorf("device %s: libtorch %s finds no CUDA device; known here: cpu", c.Device, torch.Version())
	}
	if n, err := strconv.Atoi(number); err == nil && n >= have {
		known := []string{"cpu"}
		for i := range have {
			known = append(known, fmt.Sprintf("cuda:%d", i))
		}
		return fmt.Errorf("device %s is not there; known here: %s", c.Device, strings.Join(known, ", "))
	}
	return nil
}

// chunks cuts n prediction positions into runs [start, end) of at most
// LogitsPerChunk.
func (c Compute) chunks(n int) [][2]int {
	size := c.LogitsPerChunk
	if size <= 0 {
		size = max(n, 1)
	}
	var cuts [][2]int
	for start := 0; start < n; start += size {
		cuts = append(cuts, [2]int{start, min(start+size, n)})
	}
	return slices.Clip(cuts)
}

// on moves a tensor that was made on the CPU to the run's device.
func (c Compute) on(t *torch.Tensor) *torch.Tensor {
	if c.Device == "cpu" {
		return t
	}
	return t.ToDevice(c.Device)
}

// forward are the options of the forward passes that train.
func (c Compute) forward() model.ForwardOptions {
	return model.ForwardOptions{CheckpointLayers: c.CheckpointLayers}
}
