package train

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// The tests here are of whose distribution log-probs are, and over which tokens they
// are summed.

// Sampler and trainer both divide logits by the temperature, when they score and when
// they update: the ratio is 1 at every temperature before the first update, to what the
// sampler recorded and to the snapshot, and at none but 1 are those the model's own log-probs.
func TestRatioIsOneAtEveryTemperature(t *testing.T) {
	for _, temperature := range []float64{0.6, 1, 1.7} {
		policy := tinyModel(t, 1)
		all, err := fakeRolloutAt(7, temperature)(context.Background(), 0, policy, 3)
		if err != nil {
			t.Fatal(err)
		}
		c := surrogateOnly()
		c.Temperature = temperature
		r, b := scored(t, c, all)
		for _, source := range []string{RatioSampler, RatioTrainer} {
			r.c.Ratio = source
			_, stats := actorGradient(r, b, 90)
			if math.Abs(stats.RatioMax-1) > 1e-5 || stats.ApproxKL > 1e-6*float64(stats.Actions) || stats.Clipped != 0 {
				t.Errorf("temperature %g, %s: ratio up to %g, KL %g over %d actions, %g clipped",
					temperature, source, stats.RatioMax, stats.ApproxKL, stats.Actions, stats.Clipped)
			}
		}
		recorded := 0.0
		for _, x := range b.samples {
			for _, p := range x.sampler {
				recorded += float64(p)
			}
		}
		if own := recordedLogProbs(policy, all, once, false); (math.Abs(own-recorded) < 1e-3) != (temperature == 1) {
			t.Errorf("temperature %g: log-probs sum to %g, the model's own to %g", temperature, recorded, own)
		}
	}
}

// Log-probs of another distribution than the one that PPO scores are refused: the
// ratio would be off by the temperature's scale, or by log of the share that top-p and
// top-k leave. Where temperature is 1 and nothing is left out, all meanings are one.
func TestLogProbsOfAnotherDistributionAreRefused(t *testing.T) {
	for _, c := range []struct {
		s    trace.Sampler
		says string
	}{
		{trace.Sampler{Temperature: 0.6, TopP: 1}, ""},
		{trace.Sampler{Temperature: 0.6, TopP: 1, Meaning: trace.MeaningRaw}, `said to be "raw"`},
		{trace.Sampler{Temperature: 0.6, TopP: 1, Meaning: trace.MeaningUnknown}, `said to be "unknown"`},
		{trace.Sampler{Temperature: 1, TopP: 1}, ""},
		{trace.Sampler{Temperature: 1, TopP: 1, Meaning: trace.MeaningRaw}, ""},
		{trace.Sampler{Temperature: 1, TopP: 1, Meaning: trace.MeaningUnknown}, ""},
		{trace.Sampler{Temperature: 1, TopP: 0.9}, "top-p 0.9"},
		{trace.Sampler{Temperature: 1, TopP: 1, TopK: 50}, "top-k 50"},
		{trace.Sampler{Greedy: true, Temperature: 1, TopP: 1}, "greedy true"},
	} {
		config := surrogateOnly()
		config.Temperature = c.s.Temperature
		x := ragged(1)[0]
		x.Sampler = c.s
		_, err := compileBatch(config, config.limits(), []*trace.Trajectory{x})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.s, err, c.says)
		}
	}
}

// Of differences of .012 a token, all of one sign, a hundred are a ratio of 3.3 of the
// whole sequence: records say both. Differences that cancel out are none of the sequence.
func TestSequenceDifferencesAreReported(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 23))
	var all []*trace.Trajectory
	for _, id := range []string{"one sign", "both signs"} {
		all = append(all, inCalls(id, randomIDs(rng, 4), randomIDs(rng, 100), 50))
	}
	r, b := scored(t, surrogateOnly(), all)
	for k, x := range b.samples {
		for i := range x.sampler {
			x.sampler[i] = x.behaviour[i] - 0.012
			if k == 1 && i%2 == 1 {
				x.sampler[i] = x.behaviour[i] + 0.012
			}
		}
	}
	var m Record
	r.recordBatch(&m, b)
	for name, want := range map[string]float64{
		"rollout/logprob_diff_mean": 0.012, "rollout/logprob_diff_p99": 0.012, "rollout/logprob_diff_max": 0.012,
		"rollout/sequence_logprob_diff_max": 1.2, "rollout/sequence_logprob_diff_mean": 0.6,
	} {
		got, _ := m.Get(name)
		near(t, name, []float64{got}, []float64{want}, 1e-4)
	}
}

// The KL to the reference is that of the sampled tokens: what was retrieved, and what a
// later call retains, has no part in it, nor in the penalty that rewards take.
func TestReferenceKLIsOfSampledTokensAlone(t *testing.T) {
	c := surrogateOnly()
	c.KLCoefficient = 0.5
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
	torch.NoGrad(func() { // the policy has moved away from its reference
		for _, p := range r.policy.Parameters() {
			p.Tensor.MulScalar_(1.5)
		}
	})
	all := ragged(7)
	for i, x := range all {
		x.Reward = float64(i)
	}
	b, err := compileBatch(c, c.limits(), all)
	if err != nil {
		t.Fatal(err)
	}
	r.score(b)
	if err := r.estimate(b); err != nil {
		t.Fatal(err)
	}
	reference := tinyModel(t, 1)
	sum, n := 0.0, 0
	for i, x := range all {
		one := all[i : i+1]
		kl := recordedLogProbs(r.policy, one, once, false) - recordedLogProbs(reference, one, once, false)
		near(t, "penalised reward", []float64{b.samples[i].reward}, []float64{float64(i) - 0.5*kl}, 1e-4)
		sum, n = sum+kl, n+x.SampledTokens()
	}
	var m Record
	r.recordBatch(&m, b)
	got, _ := m.Get("actor/reference_kl")
	near(t, "KL to the reference", []float64{got}, []float64{sum / float64(n)}, 1e-4)
	if math.Abs(got) < 1e-2 {
		t.Errorf("the KL is %g: the policy has not moved", got)
	}
}
