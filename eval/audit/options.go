package audit

import (
	"errors"
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// Options says what RCE audits.
type Options struct {
	// Model has float32 weights that require gradients.
	Model        *model.Decoder
	Trajectories []*trace.Trajectory
	Layouts      []align.Layout
	Align        align.Options // what layouts are made with; limits reject trajectories

	Tolerance   float64 // of the 99th percentile, in nats, more than 0: see DefaultTolerance
	ClipEpsilon float64 // between 0 and 1: see DefaultClipEpsilon

	// Compute says where the model computes and, by its DType, in which type the
	// layouts do. The truth is float32 whatever it says. The zero value is float32 on
	// the CPU.
	Compute train.Compute

	// GradientTrajectories is how many of the first trajectories the gradient error
	// is measured over; -1: all.
	GradientTrajectories int
	Seed                 uint64 // of the advantages

	// Progress is told the forward passes and gradients done of all; nil: nobody.
	Progress func(done, total int)

	anyWeights bool // the model's weights may be of any type
}

// What Options are where nothing else is asked for. A zero value does not stand for
// them: a limit of 0 that a user gives would become another.
const (
	DefaultTolerance   = 1e-4
	DefaultClipEpsilon = 0.2
)

// logitBytes bounds one array of logits where Compute does not.
const logitBytes = 64 << 20

// withDefaults fills in where and in what type to compute, and checks the rest.
func (o Options) withDefaults() (Options, error) {
	if o.Compute.Device == "" {
		o.Compute.Device = "cpu"
	}
	if o.Compute.DType == "" {
		o.Compute.DType = train.Float32
	}
	if o.GradientTrajectories < -1 {
		return o, fmt.Errorf("audit: %d trajectories for gradients, want -1 (all) or more", o.GradientTrajectories)
	}
	if n := len(o.Trajectories); o.GradientTrajectories < 0 || o.GradientTrajectories > n {
		o.GradientTrajectories = n
	}
	if o.Model == nil || len(o.Trajectories) == 0 {
		return o, errors.New("audit: no model or no trajectories")
	}
	if !(o.Tolerance > 0) || math.IsInf(o.Tolerance, 1) || !(o.ClipEpsilon > 0 && o.ClipEpsilon < 1) {
		return o, fmt.Errorf("audit: tolerance %g, clip epsilon %g: both must be more than 0 and finite, the latter less than 1", o.Tolerance, o.ClipEpsilon)
	}
	if p := o.Model.Placement(); p.Weights != torch.Float32 && !o.anyWeights {
		return o, fmt.Errorf("audit: the model's weights are %v: the truth is float32", p.Weights)
	}
	if o.Compute.LogitsPerChunk <= 0 {
		o.Compute.LogitsPerChunk = max(1, logitBytes/4/o.Model.Vocab())
	}
	return o, checkIDs(o.Trajectories, o.Model)
}

// compared is the model in the type that layouts compute in, a view of the same weights.
func (o Options) compared() (*model.Decoder, error) {
	switch o.Compute.DType {
	case train.Float32:
		return o.Model.In(torch.Float32), nil
	case train.BFloat16:
		return o.Model.In(torch.BFloat16), nil
	}
	return nil, fmt.Errorf("audit: unknown dtype %q (known: %s, %s)", o.Compute.DType, train.Float32, train.BFloat16)
}

// checkIDs refuses trajectories whose ids the model does not have.
func checkIDs(trajectories []*trace.Trajectory, d *model.Decoder) error {
	for _, t := range trajectories {
		for k, c := range t.Calls {
			for _, part := range []struct {
				name string
				ids  []int32
				size int
			}{{"context", c.Context, d.Config.VocabSize}, {"output", c.Output, d.Vocab()}, {"observation", c.Observation, d.Config.VocabSize}} {
				for i, id := range part.ids {
					if id < 0 || int(id) >= part.size {
						return fmt.Errorf("audit: trajectory %q, call %d: %s token %d is id %d, the model has %d: the ledger is another tokenizer's",
							t.ID, k, part.name, i, id, part.size)
					}
				}
			}
		}
	}
	return nil
}

// temperature is that of a trajectory's log-probs.
func temperature(t *trace.Trajectory) float64 {
	if t.Sampler.Greedy || !(t.Sampler.Temperature > 0) {
		return 1
	}
	return t.Sampler.Temperature
}

// incomparable says why the log-probs that a trajectory recorded are not compared
// with those of softmax(logits / temperature); "" where they are.
func incomparable(t *trace.Trajectory) string {
	s := t.Sampler
	switch {
	case s.Greedy:
		return ""
	case !(s.Temperature > 0):
		return "the sampling temperature is not known"
	case s.TopK != 0 || s.TopP != 1 && s.TopP != 0:
		return fmt.Sprintf("they were drawn with top-k %d and top-p %g", s.TopK, s.TopP)
	case s.Temperature != 1 && s.Meaning != trace.MeaningProcessed:
		return fmt.Sprintf("at temperature %g their meaning is %q", s.Temperature, s.Meaning)
	}
	return ""
}
