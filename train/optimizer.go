package train

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/memopd/memopd-bench/torch"
)

// optimizer is AdamW over one set of parameters, with the norm clipping and the
// storage that the loops share.
type optimizer struct {
	*torch.AdamW
	tensors []*torch.Tensor
	rates   []float64 // of each group, in units of the learning rate
}

// adamConfig holds the settings of one optimizer.
type adamConfig struct {
	LearningRate, Beta1, Beta2, Epsilon, WeightDecay float64

	Rates map[string]float64 // by parameter, in units of LearningRate; absent is 1
}

func newOptimizer(params []torch.Named, c adamConfig) *optimizer {
	o := &optimizer{}
	var groups []torch.ParamGroup
	for _, p := range params {
		o.tensors = append(o.tensors, p.Tensor)
		rate, ok := c.Rates[p.Name]
		if !ok {
			rate = 1
		}
		i := slices.Index(o.rates, rate)
		if i < 0 {
			i = len(groups)
			o.rates = append(o.rates, rate)
			groups = append(groups, torch.ParamGroup{WeightDecay: c.WeightDecay})
		}
		groups[i].Params = append(groups[i].Params, p)
	}
	o.AdamW = torch.NewAdamW(torch.AdamWConfig{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Epsilon}, groups...)
	o.SetLR(c.LearningRate)
	return o
}

// SetLR sets the learning rate, each parameter's in its proportion.
func (o *optimizer) SetLR(rate float64) {
	for i := range o.Groups {
		o.Groups[i].LR = rate * o.rates[i]
	}
}

// clip scales the gradients to a global norm of at most most, and returns the norm before.
func (o *optimizer) clip(most float64) float64 { return torch.ClipGradNorm(o.tensors, most) }

// save writes the optimizer's state to a safetensors file.
func (o *optimizer) save(path string) error {
	return torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		return torch.WriteSafetensors(path, o.State(), nil)
	})
}

// load takes the state that save wrote.
func (o *optimizer) load(path string) error {
	return withTensors(path, o.LoadState)
}

// loadTensors copies stored tensors over those of the same names, which must be
// all of them, in the same shapes.
func loadTensors(path string, into []torch.Named) error {
	return withTensors(path, func(stored map[string]*torch.Tensor) error {
		if len(stored) != len(into) {
			return fmt.Errorf("%d tensors, want %d", len(stored), len(into))
		}
		for _, t := range into {
			from := stored[t.Name]
			if from == nil || from.String() != t.Tensor.String() {
				return fmt.Errorf("tensor %s is %v, want %v", t.Name, from, t.Tensor)
			}
			torch.NoGrad(func() { t.Tensor.Copy_(from) })
		}
		return nil
	})
}

// withTensors reads a safetensors file for the time of use.
func withTensors(path string, use func(map[string]*torch.Tensor) error) error {
	return torch.Try(func() error {
		s := torch.NewScope()
		defer s.Close()
		stored, _, err := torch.ReadSafetensors(path)
		if err != nil {
			return err
		}
		if err := use(stored); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// holdThread keeps the goroutine on its OS thread until the function that it
// returns is called. The number of threads that libtorch uses is set for an OS thread,
// and the order of sums depends on it: on two threads a rerun would differ.
func holdThread(threads int) (release func()) {
	runtime.LockOSThread()
	if threads > 0 {
		torch.SetNumThreads(threads)
	}
	return runtime.UnlockOSThread
}
