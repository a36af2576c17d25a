package train

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// The tests here are of which tokens are trained, and by how much. What they compare with
// is written over the calls as they were recorded, without align.

// weight is the factor of a sampled token's log-prob in a sum.
type weight func(t *trace.Trajectory, call, token int) float64

func once(*trace.Trajectory, int, int) float64 { return 1 }

// recordedLogProbs is the weighted sum of the log-probs of all sampled tokens, each
// call run as a plain row: with gradients if backward is set.
func recordedLogProbs(d *model.Decoder, ts []*trace.Trajectory, w weight, backward bool) float64 {
	s := torch.NewScope()
	defer s.Close()
	sum := 0.0
	for _, t := range ts {
		for k, c := range t.Calls {
			n := int64(len(c.Output))
			if n == 0 {
				continue
			}
			ids, weights := make([]int64, n), make([]float32, n)
			for i, id := range c.Output {
				ids[i], weights[i] = int64(id), float32(w(t, k, i))
			}
			hidden := d.HiddenAll([][]int32{slices.Concat(c.Context, c.Output)}).Narrow(0, int64(len(c.Context))-1, n)
			all := LogProbs(LogDistribution(d.Logits(hidden), 1), torch.FromInt64(ids))
			total := all.Mul(torch.FromFloat32(weights)).Sum()
			if backward {
				total.Backward()
			}
			for i, v := range all.Float64s() {
				sum += v * float64(weights[i])
			}
		}
	}
	return sum
}

// takeGradients returns all gradients in a row, and clears them.
func takeGradients(d *model.Decoder) []float64 {
	var all []float64
	for _, p := range d.Parameters() {
		s := torch.NewScope()
		if g := p.Tensor.Grad(); g != nil {
			all = append(all, g.Float64s()...)
		} else {
			all = append(all, make([]float64, p.Tensor.Numel())...)
		}
		p.Tensor.ZeroGrad()
		s.Close()
	}
	return all
}

// slope is the central difference of f along a direction in the weights.
func slope(d *model.Decoder, direction []float64, f func() float64) float64 {
	const h = 3e-3
	length := norm(direction)
	move := func(by float64) {
		at := 0
		torch.NoGrad(func() {
			for _, p := range d.Parameters() {
				s := torch.NewScope()
				part := make([]float32, p.Tensor.Numel())
				for i := range part {
					part[i] = float32(by * direction[at+i] / length)
				}
				at += len(part)
				p.Tensor.Add_(torch.FromFloat32(part, p.Tensor.Shape()...), 1)
				s.Close()
			}
		})
	}
	move(h)
	up := f()
	move(-2 * h)
	down := f()
	move(h)
	return (up - down) / (2 * h)
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// ragged are trajectories of every rule of context, of one to five calls.
func ragged(n int) []*trace.Trajectory {
	all := make([]*trace.Trajectory, n)
	for i := range all {
		c := aligntest.Small()
		c.Vocab, c.Update, c.MaxOpening = tinyVocabulary, aligntest.Updates[i%len(aligntest.Updates)], 2
		all[i] = aligntest.Random(rand.New(rand.NewPCG(uint64(i), 21)), c)
	}
	return all
}

// scored opens a run on tiny models and scores given trajectories.
func scored(t *testing.T, c PPOConfig, ts []*trace.Trajectory) (*ppoRun, *stepBatch) {
	t.Helper()
	r, err := openPPO(c, PPOParts{Initial: tinyModel(t, 1), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := torch.NewScope()
	t.Cleanup(func() {
		s.Close()
		r.free()
		r.policy.Free()
	})
	b, err := compileBatch(c, c.limits(), ts)
	if err != nil {
		t.Fatal(err)
	}
	r.score(b)
	if err := r.estimate(b); err != nil {
		t.Fatal(err)
	}
	return r, b
}

// surrogateOnly is PPO without entropy, teacher and delay: the gradient before the first
// update is that of the mean of advantage times log-prob, negated.
func surrogateOnly() PPOConfig {
	c := tinyPPO(TeacherNone)
	c.EntropyCoefficient, c.PolicyDelaySteps = 0, 0
	return c
}

// actorGradient is the policy's gradient of a batch in microbatches, and what the
// update says of the ratio.
func actorGradient(r *ppoRun, b *stepBatch, tokens int) ([]float64, updateStats) {
	var stats updateStats
	for _, micro := range microbatches(b.samples, tokens, packedLength) {
		r.backward(b, micro, minibatchTotals{actions: float64(b.actions)}, &stats)
	}
	return takeGradients(r.policy), stats
}

// TestEnvironmentTokensGetNoGradient holds the gradients of SFT and of PPO to central
// differences of a sum over sampled tokens alone: had observations or copies a part, the
// slope along the gradient would be another than its length, as it is under a mask that takes them in.
func TestEnvironmentTokensGetNoGradient(t *testing.T) {
	all := ragged(6)
	d := tinyModel(t, 1)
	n := 0
	for _, x := range all {
		n += x.SampledTokens()
	}
	loss := func() float64 { return -recordedLogProbs(d, all, once, false) / float64(n) }
	for _, c := range []struct {
		layout string
		same   bool
	}{{"aligned", true}, {"calls", true}, {"trajectory-mask", false}, {"response-mask", false}} {
		layout, err := align.LayoutNamed(c.layout)
		if err != nil {
			t.Fatal(err)
		}
		var rows []*align.Packed
		for _, x := range all {
			more, err := layout.Rows(x, align.Options{})
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, more...)
		}
		defaultCompute().BackwardNLL(d, rows, float64(n))
		g := takeGradients(d)
		along, length := slope(d, g, loss), norm(g)
		if same := math.Abs(along-length) < 3e-3*length; same != c.same {
			t.Errorf("%s: slope %g along a gradient of length %g", c.layout, along, length)
		}
	}

	config := surrogateOnly()
	r, b := scored(t, config, all)
	g, _ := actorGradient(r, b, 100)
	weights := advantagesOf(b)
	along := slope(r.policy, g, func() float64 { return -recordedLogProbs(r.policy, all, weights, false) / float64(n) })
	if length := norm(g); math.Abs(along-length) > 3e-3*length {
		t.Errorf("PPO: slope %g along a gradient of length %g", along, length)
	}
}

// advantagesOf is the advantage of each sampled token of a batch.
func advantagesOf(b *stepBatch) weight {
	of := map[*trace.Trajectory][]float32{}
	for _, x := range b.samples {
		of[x.trajectory] = x.Advantage
	}
	return func(t *trace.Trajectory, call, token int) float64 {
		for k := range call {
			token += len(t.Calls[k].Output)
		}
		return float64(of[t][token])
	}
}

// TestEachAdvantageMeetsItsToken gives one sampled token at a time an advantage: the
// gradient is that of its log-prob in its own call, so that neither ids, mask nor
// advantages are shifted against each other, also where calls share their beginning.
func TestEachAdvantageMeetsItsToken(t *testing.T) {
	all := ragged(5)
	r, b := scored(t, surrogateOnly(), all)
	for _, x := range b.samples {
		clear(x.Advantage)
	}
	checked := 0
	for _, x := range b.samples {
		for i := 0; i < len(x.Advantage); i += 1 + checked%5 {
			x.Advantage[i] = 1
			recordedLogProbs(r.policy, all, advantagesOf(b), true)
			want := takeGradients(r.policy)
			got, _ := actorGradient(r, b, 1<<30)
			x.Advantage[i] = 0
			for j := range want {
				want[j] /= -float64(b.actions)
			}
			difference := make([]float64, len(want))
			for j := range want {
				difference[j] = got[j] - want[j]
			}
			if e := norm(difference) / norm(want); !(e < 1e-4) {
				t.Errorf("action %+v: the gradient is off by %g of its length", x.packed.Actions[i], e)
			}
			checked++
		}
	}
	if checked < 20 {
		t.Errorf("only %d actions checked", checked)
	}
}

// TestRatioIsOneBeforeTheFirstUpdate holds the ratio to 1 whatever company and
// padding a trajectory has when it is scored and when it is trained on, and for log-probs that
// the sampler recorded over its own batch of unlike rows.
func TestRatioIsOneBeforeTheFirstUpdate(t *testing.T) {
	c := surrogateOnly()
	check := func(name string, r *ppoRun, b *stepBatch) {
		for _, tokens := range []int{1, 90, 1 << 30} {
			_, stats := actorGradient(r, b, tokens)
			if math.Abs(stats.RatioMax-1) > 1e-5 || stats.Clipped != 0 || stats.ApproxKL > 1e-6*float64(stats.Actions) || stats.Actions != b.actions {
				t.Errorf("%s, microbatches of %d tokens: ratio up to %g, %g clipped, KL %g over %d actions",
					name, tokens, stats.RatioMax, stats.Clipped, stats.ApproxKL, stats.Actions)
			}
		}
	}
	for _, tokens := range []int{1, 1 << 30} {
		c.TokensPerMicrobatch = tokens
		r, b := scored(t, c, ragged(9))
		check("trainer", r, b)
	}
	policy := tinyModel(t, 1)
	sampled, err := fakeRollout(7)(context.Background(), 0, policy, 3)
	if err != nil {
		t.Fatal(err)
	}
	c.Ratio = RatioSampler
	r, b := scored(t, c, sampled)
	check("sampler", r, b)
}

// inCalls is one output as calls of so many tokens each, of which each sees what was
// written before: the same states, however many calls there are.
func inCalls(id string, prefix, output []int32, each int) *trace.Trajectory {
	t := &trace.Trajectory{Schema: trace.SchemaVersion, ID: id, Prefix: prefix, End: trace.EndAnswered, Sampler: trace.Sampler{Temperature: 1, TopP: 1}, Reward: 1}
	for at := 0; at < len(output); at += each {
		k := len(t.Calls)
		spans := []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: len(prefix)}}
		for j, start := 0, len(prefix); j < k; j++ {
			end := start + len(t.Calls[j].Output)
			spans = append(spans, trace.Span{Origin: trace.OriginRetained, FromCall: j, Start: start, End: end})
			start = end
		}
		own := output[at:min(at+each, len(output))]
		t.Calls = append(t.Calls, trace.Call{Index: k, Context: slices.Concat(prefix, output[:at]), Spans: spans, Output: own, LogProbs: make([]float32, len(own))})
	}
	return t
}

// TestCallsDoNotMultiplyAnEpisode holds that an episode weighs by its sampled tokens:
// recorded as one call or as six it has the same advantages and gives the same
// gradient, beside another episode that stays as it is.
func TestCallsDoNotMultiplyAnEpisode(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 22))
	prefix, output := randomIDs(rng, 5), randomIDs(rng, 12)
	other := inCalls("other", randomIDs(rng, 4), randomIDs(rng, 9), 9)
	other.Reward = 0
	var want []float64
	var advantages []float32
	for _, each := range []int{12, 6, 2} {
		r, b := scored(t, surrogateOnly(), []*trace.Trajectory{inCalls("episode", prefix, output, each), other})
		got, stats := actorGradient(r, b, 1<<30)
		if stats.Actions != 21 || b.actions != 21 {
			t.Fatalf("%d actions, want 21", stats.Actions)
		}
		if want == nil {
			want, advantages = got, b.samples[0].Advantage
			continue
		}
		near(t, "gradient", got, want, 1e-6)
		if !slices.Equal(b.samples[0].Advantage, advantages) {
			t.Errorf("calls of %d tokens: advantages %v, want %v", each, b.samples[0].Advantage, advantages)
		}
	}
}

// TestLengthsLeaveOutObservations holds that what is recorded of lengths and calls is
// of sampled tokens and of calls, though calls share blocks and observations stand between.
func TestLengthsLeaveOutObservations(t *testing.T) {
	c := tinyPPO(TeacherNone)
	c.Steps = 1
	dir := t.TempDir()
	if _, err := runPPO(t, context.Background(), c, dir, false); err != nil {
		t.Fatal(err)
	}
	r := timeless(t, dir)[0]
	for name, want := range map[string]float64{
		"rollout/calls_mean": 3, "response_length/mean": fakeTokens, "actor/action_tokens": float64(c.EpochsPerStep * c.PromptsPerStep * 3 * fakeTokens),
	} {
		if got, _ := r.Get(name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
}

// TestNothingSampledIsAnError holds that a step whose action mask is all zero does not
// pass for one without loss.
func TestNothingSampledIsAnError(t *testing.T) {
	silent := func(ctx context.Context, step int, policy *model.Decoder, seed uint64) ([]*trace.Trajectory, error) {
		all, err := fakeRollout(2)(ctx, step, policy, seed)
		for _, x := range all {
			x.Calls = x.Calls[:1]
			x.Calls[0].Output, x.Calls[0].LogProbs = nil, nil
		}
		return all, err
	}
	c := tinyPPO(TeacherNone)
	d, err := PPO(context.Background(), c, PPOParts{Initial: tinyModel(t, 1), Rollout: silent, Dir: t.TempDir()})
	if d != nil {
		d.Free()
	}
	if err == nil || !strings.Contains(err.Error(), "none of 2 trajectories") && !strings.Contains(err.Error(), string(align.ReasonNoActions)) {
		t.Errorf("PPO: %v", err)
	}
	source := func(seed uint64) (*trace.Trajectory, error) {
		x, err := randomSource(seed)
		x.Calls = x.Calls[:1]
		x.Calls[0].Output, x.Calls[0].LogProbs = nil, nil
		return x, err
	}
	if _, err := buildPool(tinySFT(), source, 0); err == nil || !strings.Contains(err.Error(), "no_actions") {
		t.Errorf("SFT: %v", err)
	}
}

// TestLaterUpdatesAreThoseOfSeparateCalls trains two copies for some steps, one on packed
// trajectories, one on their calls in rows of their own: losses that are equal at the
// first step alone are those of a wrong gradient.
func TestLaterUpdatesAreThoseOfSeparateCalls(t *testing.T) {
	c := tinySFT()
	c.LearningRate, c.WarmupSteps, c.WeightDecay = 1e-2, 0, 0
	var losses, norms [2][]float64
	for i, layout := range []func(*trace.Trajectory) ([]*align.Packed, error){
		func(x *trace.Trajectory) ([]*align.Packed, error) {
			p, err := align.Compile(x, align.Options{})
			return []*align.Packed{p}, err
		},
		func(x *trace.Trajectory) ([]*align.Packed, error) { return align.Calls(x, align.Options{}) },
	} {
		r, err := openSFT(c, SFTParts{Model: tinyModel(t, 1), Source: randomSource, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer r.optimizer.Free()
		var rows []*align.Packed
		for _, x := range ragged(9) {
			more, err := layout(x)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, more...)
		}
		for range 6 {
			loss, norm := r.update(rows)
			losses[i], norms[i] = append(losses[i], loss), append(norms[i], norm)
		}
	}
	near(t, "loss of each step", losses[0], losses[1], 1e-4)
	near(t, "gradient norm of each step", norms[0], norms[1], 1e-3)
	if fell := losses[0][0] - losses[0][5]; fell < 0.05*losses[0][0] {
		t.Errorf("the loss fell by %g from %g: nothing was trained", fell, losses[0][0])
	}
}
