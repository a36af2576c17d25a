package audit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/train"
)

// SpeedOptions says what Speed measures.
type SpeedOptions struct {
	Model      *model.Decoder // float32 on the CPU, with gradients
	Shape      SpeedShape
	Rounds     int     // timed; each goes over all ways
	Warmup     int     // rounds before them
	Tolerance  float64 // of losses and gradients, relative; more than 0
	Clip       float64 // of the surrogate, between 0 and 1
	Seed       uint64
	Checkpoint bool // gradient checkpointing, in all ways
}

// SpeedWay is one way's part of a result.
type SpeedWay struct {
	Way    string  `json:"way"`
	Tokens int     `json:"tokens"` // that go through the layers, padding included
	FLOPs  float64 `json:"flops"`
	CPU    float64 `json:"cpu_s"`   // processor seconds of an update, median
	Clock  float64 `json:"clock_s"` // seconds by the clock, median

	CPURounds []float64 `json:"cpu_rounds"`
	LossError float64   `json:"loss_error"` // relative to the rows'
	GradError float64   `json:"grad_error"`
	Memory    int64     `json:"memory_bytes,omitempty"` // peak of an update over weights and gradients
}

// SpeedResult is the ways of one shape, in the order of SpeedWays.
type SpeedResult struct {
	Shape SpeedShape `json:"shape"`
	Ways  []SpeedWay `json:"ways"`
}

// Way is the result of one way.
func (r *SpeedResult) Way(name string) *SpeedWay {
	return &r.Ways[slices.Index(SpeedWays, name)]
}

// Ideal is how much faster than rows a way would be by FLOPs alone.
func (r *SpeedResult) Ideal(way string) float64 { return r.Way(SpeedRows).FLOPs / r.Way(way).FLOPs }

// Ratio is how much faster than rows a way was: the median over rounds of the
// ratio within a round, in processor seconds.
func (r *SpeedResult) Ratio(way string) float64 {
	var ratios []float64
	for i, rows := range r.Way(SpeedRows).CPURounds {
		ratios = append(ratios, rows/r.Way(way).CPURounds[i])
	}
	return median(ratios)
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return math.NaN()
	}
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// speedRun is a measurement under way.
type speedRun struct {
	o     SpeedOptions
	loss  train.ClippedActions
	batch map[string][]*align.Packed
}

// newSpeedRun draws the batch, lays it out, and draws what PPO's loss takes: old
// log-probs that are normal around the model's own, a tenth of a nat wide, so that
// some ratios are clipped, and normal advantages.
func newSpeedRun(o SpeedOptions) (*speedRun, error) {
	if !(o.Tolerance > 0) || !(o.Clip > 0 && o.Clip < 1) {
		return nil, fmt.Errorf("speed: tolerance %g, clip %g: both must be more than 0, the latter less than 1", o.Tolerance, o.Clip)
	}
	if err := o.Shape.check(); err != nil {
		return nil, fmt.Errorf("speed: %w", err)
	}
	if p := o.Model.Placement(); p.Device != "cpu" || p.Weights != torch.Float32 || p.Compute != torch.Float32 {
		return nil, fmt.Errorf("speed: the model is %v on %s, want float32 on the CPU", p.Compute, p.Device)
	}
	last := o.Shape.Prefix + o.Shape.CallTokens
	if o.Shape.Shape == "growing" {
		last = o.Shape.Prefix + o.Shape.Calls*o.Shape.CallTokens
	}
	if limit := o.Model.Config.MaxPositionEmbeddings; last > limit {
		return nil, fmt.Errorf("speed: calls of up to %d tokens, the model takes %d", last, limit)
	}
	r := &speedRun{o: o, batch: map[string][]*align.Packed{}}
	ts := o.Shape.trajectories(o.Model.Vocab(), o.Seed)
	for _, way := range SpeedWays {
		rows, err := o.Shape.lay(way, ts)
		if err != nil {
			return nil, fmt.Errorf("speed: %s: %w", way, err)
		}
		r.batch[way] = rows
	}
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	r.loss = train.ClippedActions{Clip: o.Clip}
	for _, p := range r.batch[SpeedConcat] {
		for i, logProb := range logProbs(o.Model, p) {
			r.loss.IDs = append(r.loss.IDs, int64(p.Actions[i].ID))
			r.loss.Behaviour = append(r.loss.Behaviour, logProb+float32(0.1*rng.NormFloat64()))
			r.loss.Advantages = append(r.loss.Advantages, float32(rng.NormFloat64()))
		}
	}
	r.loss.Total = float64(len(r.loss.IDs))
	return r, nil
}

// logProbs are those of a row's actions.
func logProbs(d *model.Decoder, p *align.Packed) (out []float32) {
	torch.NoGrad(func() {
		s := torch.NewScope()
		defer s.Close()
		ids := make([]int64, len(p.Actions))
		for i, a := range p.Actions {
			ids[i] = int64(a.ID)
		}
		rows := d.Logits(d.Hidden([]*align.Packed{p})).LogSoftmax(-1)
		out = rows.Gather(-1, torch.FromInt64(ids, int64(len(ids)), 1)).Float32s()
	})
	return out
}

// update is one actor update without the optimiser's step, gradients left in place.
func (r *speedRun) update(way string) (loss float64) {
	s := torch.NewScope()
	defer s.Close()
	f := r.o.Model.Forward(r.batch[way], model.ForwardOptions{CheckpointLayers: r.o.Checkpoint, DenseMask: way == SpeedDense})
	return train.Compute{Device: "cpu", DType: train.Float32}.BackwardClipped(r.o.Model, f, r.loss)
}

// Speed checks that all ways give the loss and the gradient of the rows, and then
// times them in turns. Where they differ it returns an error and no times.
func Speed(ctx context.Context, o SpeedOptions) (*SpeedResult, error) {
	r, err := newSpeedRun(o)
	if err != nil {
		return nil, err
	}
	defer zero(o.Model)
	result := &SpeedResult{Shape: o.Shape}
	for _, way := range SpeedWays {
		w := SpeedWay{Way: way, FLOPs: updateFLOPs(o.Model.Config, o.Model.Vocab(), r.batch[way], way == SpeedDense)}
		for _, p := range r.batch[way] {
			w.Tokens += len(p.IDs)
		}
		result.Ways = append(result.Ways, w)
	}
	if err := r.equal(result); err != nil {
		return nil, err
	}
	clock := map[string][]float64{}
	for round := range o.Warmup + o.Rounds {
		for i := range SpeedWays {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			way := SpeedWays[(i+round)%len(SpeedWays)]
			zero(o.Model)
			begin, cpu := time.Now(), cpuSeconds()
			r.update(way)
			if round >= o.Warmup {
				w := result.Way(way)
				w.CPURounds = append(w.CPURounds, cpuSeconds()-cpu)
				clock[way] = append(clock[way], time.Since(begin).Seconds())
			}
		}
	}
	for i := range result.Ways {
		w := &result.Ways[i]
		w.CPU, w.Clock = median(w.CPURounds), median(clock[w.Way])
	}
	return result, nil
}

// equal compares loss and gradients of all ways with those of the rows.
func (r *speedRun) equal(result *SpeedResult) error {
	s := torch.NewScope()
	defer s.Close()
	var want []*torch.Tensor
	loss := 0.0
	for i := range result.Ways {
		w := &result.Ways[i]
		zero(r.o.Model)
		have := r.update(w.Way)
		var gradients []*torch.Tensor
		for _, p := range r.o.Model.Parameters() {
			gradients = append(gradients, gradientOf(p.Tensor))
		}
		if i == 0 {
			loss, want = have, gradients
			continue
		}
		// The loss is a mean of terms of either sign: its error is that of a term.
		w.LossError = math.Abs(have-loss) / math.Max(math.Abs(loss), 1)
		w.GradError = relative(gradients, want, nil, nil)
		for _, g := range gradients {
			g.Free()
		}
		if !(w.LossError <= r.o.Tolerance) || !(w.GradError <= r.o.Tolerance) {
			return fmt.Errorf("speed: %s is not %s: loss %g, not %g; gradient off by %.3g of its norm (tolerance %g); nothing is timed",
				w.Way, SpeedRows, have, loss, w.GradError, r.o.Tolerance)
		}
	}
	return nil
}

// cpuSeconds is the processor time of this process in seconds.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
