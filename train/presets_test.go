package train

import (
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch"
)

// The numbers that the paper and MEM1 state (paper settings, PPO).
func TestPaperPresetHasThePapersNumbers(t *testing.T) {
	c := PaperPPO()
	for _, f := range []struct {
		name      string
		got, want float64
	}{
		{"steps", float64(c.Steps), 500}, {"train batch", float64(c.PromptsPerStep), 128},
		{"mini-batch", float64(c.TrajectoriesPerMinibatch), 64}, {"actor rate", c.LearningRate, 1e-6},
		{"critic rate", c.CriticLearningRate, 1e-5}, {"KL coefficient", c.KLCoefficient, 0.001},
		{"call tokens", float64(c.TokensPerCallMax), 4096 + 1000},
	} {
		if f.got != f.want {
			t.Errorf("%s is %g, want %g", f.name, f.got, f.want)
		}
	}
	if p := c.Trained(); p.Weights != torch.Float32 || p.Compute != torch.BFloat16 || p.Device != "cuda" {
		t.Errorf("trained weights have the placement %+v", p)
	}
	if p := c.Frozen(); p.Weights != torch.BFloat16 || p.Compute != torch.BFloat16 {
		t.Errorf("frozen weights have the placement %+v", p)
	}
	if c.Critic != CriticDecoder || !c.CheckpointLayers {
		t.Errorf("critic %s, checkpointing %v", c.Critic, c.CheckpointLayers)
	}
}

func TestUnknownDeviceAndDTypeListTheKnown(t *testing.T) {
	for _, c := range []struct {
		edit func(*Compute)
		want []string
	}{
		{func(c *Compute) { c.Device = "tpu" }, []string{`"tpu"`, "cpu", "cuda", "cuda:N"}},
		{func(c *Compute) { c.Device = "cuda:x" }, []string{`"cuda:x"`, "cuda:N"}},
		{func(c *Compute) { c.Device = "cpu:1" }, []string{`"cpu:1"`, "cuda:N"}},
		{func(c *Compute) { c.DType = "fp16" }, []string{`"fp16"`, "f32", "bf16"}},
		{func(c *Compute) { c.LogitsPerChunk = -1 }, []string{"logits_per_chunk is -1"}},
	} {
		ppo, sft := MiniPPO(), MiniSFT()
		c.edit(&ppo.Compute)
		c.edit(&sft.Compute)
		for _, err := range []error{ppo.Validate(), sft.Validate()} {
			if err == nil {
				t.Fatalf("accepted: %+v", ppo.Compute)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q", err, want)
				}
			}
		}
	}
	for _, device := range []string{"cpu", "cuda", "cuda:0", "cuda:7"} {
		c := MiniPPO()
		c.Device = device
		if err := c.Validate(); err != nil {
			t.Errorf("device %s: %v", device, err)
		}
	}
}

// Where no such device answers, a run says so before it starts.
func TestMissingDeviceIsRefused(t *testing.T) {
	err := Compute{Device: "cuda:99", DType: Float32}.available()
	if err == nil || !strings.Contains(err.Error(), "known here: cpu") {
		t.Errorf("device cuda:99: %v", err)
	}
	if err := defaultCompute().available(); err != nil {
		t.Error(err)
	}
}

// 128 trajectories are cut into two mini-batches of 64; 70 into two of 35, not
// into 64 and 6; each trajectory is in one of them.
func TestMinibatchesByTrajectories(t *testing.T) {
	c := MiniPPO()
	c.TrajectoriesPerMinibatch = 64
	for n, want := range map[int][]int{1: {1}, 64: {64}, 128: {64, 64}, 70: {35, 35}, 129: {43, 43, 43}} {
		samples := make([]*sample, n)
		for i := range samples {
			samples[i] = &sample{first: i}
		}
		cuts := minibatches(c, samples, newRand(1, streamMinibatch))
		seen := map[int]bool{}
		for i, cut := range cuts {
			if len(cuts) != len(want) || len(cut) != want[i] {
				t.Fatalf("%d trajectories: mini-batch %d of %d has %d, want sizes %v", n, i, len(cuts), len(cut), want)
			}
			for _, s := range cut {
				seen[s.first] = true
			}
		}
		if len(seen) != n {
			t.Errorf("%d of %d trajectories are in a mini-batch", len(seen), n)
		}
	}
}
