package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// trajectory draws one of random ids under MEM1's update: each call sees the prefix,
// the last response and its observation.
func (k *deviceCheck) trajectory(vocab int, number uint64) *trace.Trajectory {
	rng := rand.New(rand.NewPCG(k.Seed, number))
	ids := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = rng.Int32N(int32(vocab))
		}
		return out
	}
	t := &trace.Trajectory{
		Schema: trace.SchemaVersion, ID: fmt.Sprintf("random-%d", number), End: trace.EndAnswered,
		Sampler: trace.Sampler{Temperature: 1, TopP: 1}, Prefix: ids(k.Prefix),
	}
	for i := range k.Calls {
		context := slices.Clone(t.Prefix)
		spans := []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: k.Prefix}}
		if i > 0 {
			last := t.Calls[i-1]
			for _, part := range []struct {
				origin trace.Origin
				ids    []int32
			}{{trace.OriginRetained, last.Output}, {trace.OriginObservation, last.Observation}} {
				spans = append(spans, trace.Span{Origin: part.origin, FromCall: i - 1, Start: len(context), End: len(context) + len(part.ids)})
				context = append(context, part.ids...)
			}
		}
		t.Calls = append(t.Calls, trace.Call{
			Index: i, Context: context, Spans: spans, Output: ids(k.Response), LogProbs: make([]float32, k.Response),
			Observation: ids(k.Obs), Stop: trace.StopTag,
		})
	}
	return t
}

// rceResult is RCE on the device in a type.
type rceResult struct {
	DType   string  `json:"dtype"`
	Actions int     `json:"actions"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
	Flips   int     `json:"flips"`
	Seconds float64 `json:"seconds"`
}

// rce compares packed sequences with independent calls, in both types.
func (k *deviceCheck) rce(policy *model.Decoder) error {
	var trajectories []*trace.Trajectory
	var packed []*align.Packed
	for i := range k.RCECount {
		t := k.trajectory(policy.Vocab(), uint64(i))
		p, err := align.Compile(t, align.Options{})
		if err != nil {
			return err
		}
		trajectories, packed = append(trajectories, t), append(packed, p)
	}
	for _, kind := range []struct {
		dtype string
		torch torch.DType
	}{{train.Float32, torch.Float32}, {train.BFloat16, torch.BFloat16}} {
		begin := time.Now()
		r, err := train.MeasureRCE(k.compute(kind.dtype, false), policy.In(kind.torch), trajectories, packed, align.Options{}, 1)
		if err != nil {
			return err
		}
		out := rceResult{kind.dtype, r.Actions, r.P99, r.Max, r.Flips, time.Since(begin).Seconds()}
		k.report.RCE = append(k.report.RCE, out)
		fmt.Fprintf(k.out, "  RCE %-4s %d actions: p99 %.3g, max %.3g, %d flips, %.1f s\n", out.DType, out.Actions, out.P99, out.Max, out.Flips, out.Seconds)
		if kind.dtype == train.Float32 {
			if err := r.Check(1e-4); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodeResult is the speed of sampling.
type decodeResult struct {
	Rows            int     `json:"rows"`
	ContextTokens   int     `json:"context_tokens"`
	PrefillSeconds  float64 `json:"prefill_seconds"` // weights made ready, contexts run, one token each
	TokensPerSecond float64 `json:"tokens_per_second"`
}

// requests hands out a fixed list.
type requests struct{ left []*trace.Request }

func (q *requests) Next() (*trace.Request, bool) {
	if len(q.left) == 0 {
		return nil, false
	}
	r := q.left[0]
	q.left = q.left[1:]
	return r, true
}

func (q *requests) Done(*trace.Request, *trace.Response) {}

// decode times sampling of NewTokens tokens less that of one token.
func (k *deviceCheck) decode(policy *model.Decoder) error {
	for _, rows := range k.Rows {
		run := func(tokens int) (float64, error) {
			q := &requests{}
			rng := rand.New(rand.NewPCG(k.Seed, uint64(rows)))
			for range rows {
				r := &trace.Request{MaxNewTokens: tokens, Seed: rng.Uint64()}
				for range k.Context {
					r.Context = append(r.Context, rng.Int32N(int32(policy.Vocab())))
				}
				q.left = append(q.left, r)
			}
			s, err := model.NewSampler(policy, trace.Sampler{Temperature: 1, TopP: 1}, rows)
			if err != nil {
				return 0, err
			}
			begin := time.Now()
			err = s.Generate(context.Background(), q)
			return time.Since(begin).Seconds(), err
		}
		if _, err := run(2); err != nil { // warms the device up
			return err
		}
		one, err := run(1)
		if err != nil {
			return err
		}
		all, err := run(k.NewTokens)
		if err != nil {
			return err
		}
		out := decodeResult{rows, k.Context, one, float64(rows*(k.NewTokens-1)) / max(all-one, 1e-9)}
		k.report.Decode = append(k.report.Decode, out)
		fmt.Fprintf(k.out, "  decode %3d rows at %d tokens: %.0f tokens/s, prefill %.2f s\n", rows, k.Context, out.TokensPerSecond, one)
	}
	return nil
}

// updateResult is the speed of forward, backward and optimiser.
type updateResult struct {
	Checkpointing   bool    `json:"gradient_checkpointing"`
	PackedTokens    int     `json:"packed_tokens"`
	Actions         int     `json:"actions"`
	Seconds         float64 `json:"seconds"`      // of forward and backward, median
	StepSeconds     float64 `json:"step_seconds"` // of AdamW
	TokensPerSecond float64 `json:"tokens_per_second"`
	TFLOPS          float64 `json:"tflops"` // of the model's own operations, layers run again not counted
	Share           float64 `json:"share_of_peak"`
}

// updates times training on one packed trajectory in bf16: whole with checkpointing,
// half of its calls without.
func (k *deviceCheck) updates(policy *model.Decoder) error {
	optimizer := torch.NewAdamW(torch.DefaultAdamW(), torch.ParamGroup{Params: policy.Parameters(), LR: 1e-6})
	defer optimizer.Free()
	for _, again := range []bool{true, false} {
		part := *k
		if !again {
			part.Calls = max(1, k.Calls/3)
		}
		p, err := align.Compile(part.trajectory(policy.Vocab(), 1), align.Options{PrefixOnly: true}) // as workload says
		if err != nil {
			return err
		}
		rows, c := []*align.Packed{p}, k.compute(train.BFloat16, again)
		var backward, step []float64
		for i := range k.Repeats + 1 {
			begin := time.Now()
			c.BackwardNLL(policy, rows, float64(len(p.Actions)))
			norm := torch.ClipGradNorm(tensorsOf(policy), 1) // waits for the device
			middle := time.Now()
			optimizer.Step()
			optimizer.ZeroGrad()
			_ = policy.Parameters()[0].Tensor.Detach().View(-1).Narrow(0, 0, 1).Float32s()
			if !(norm > 0) {
				return fmt.Errorf("the gradient's norm is %g", norm)
			}
			if i > 0 {
				backward = append(backward, middle.Sub(begin).Seconds())
				step = append(step, time.Since(middle).Seconds())
			}
		}
		slices.Sort(backward)
		slices.Sort(step)
		out := updateResult{Checkpointing: again, PackedTokens: len(p.IDs), Actions: len(p.Actions), Seconds: backward[len(backward)/2], StepSeconds: step[len(step)/2]}
		out.TokensPerSecond = float64(out.PackedTokens) / out.Seconds
		out.TFLOPS = train.UpdateOperations(k.config, part.workload(p)) / out.Seconds / 1e12
		out.Share = out.TFLOPS / k.PeakTFLOPS
		k.report.Update = append(k.report.Update, out)
		fmt.Fprintf(k.out, "  update of %d tokens, checkpointing %v: %.2f s, %.0f tokens/s, %.1f TFLOP/s (%.0f %% of %g), optimiser %.2f s\n",
			out.PackedTokens, again, out.Seconds, out.TokensPerSecond, out.TFLOPS, 100*out.Share, k.PeakTFLOPS, out.StepSeconds)
	}
	return nil
}

// workload describes a trajectory of this check.
func (k *deviceCheck) workload(p *align.Packed) train.Workload {
	return train.Workload{PackedTokens: len(p.IDs), PrefixTokens: k.Prefix, Calls: k.Calls, ResponseTokens: k.Response}
}

func tensorsOf(d *model.Decoder) []*torch.Tensor {
	var all []*torch.Tensor
	for _, p := range d.Parameters() {
		all = append(all, p.Tensor)
	}
	return all
}
