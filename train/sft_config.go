package train

import (
	"errors"
	"fmt"
	"math"
)

// SFTConfig holds the settings of supervised fine-tuning. The command line and
// --config files take its fields from the tags.
type SFTConfig struct {
	Seed  uint64 `json:"seed" flag:"seed" help:"seed of initial weights, data order and drills"`
	Steps int    `json:"steps" flag:"steps" help:"optimiser steps"`

	Compute

	TokensPerStep       int `json:"tokens_per_step" flag:"tokens-per-step" help:"tokens of one optimiser step, padding included"`
	TokensPerMicrobatch int `json:"tokens_per_microbatch" flag:"tokens-per-microbatch" help:"tokens of one forward and backward pass, padding included; 0: the whole step at once"`
	ExamplesPerPool     int `json:"examples_per_pool" flag:"examples-per-pool" help:"examples that are gathered, sorted by length and cut into steps, which are then shuffled"`
	CallsPerTrajectory  int `json:"calls_per_trajectory" flag:"calls-per-trajectory" help:"calls of one trajectory that are trained, drawn at random; 0: all"`

	FlattenedShare     float64 `json:"flattened_share" flag:"flattened-share" help:"share of trajectories that are trained as one flattened transcript instead of call by call"`
	FlattenedTokensMax int     `json:"flattened_tokens_max" flag:"flattened-tokens-max" help:"longest transcript that is trained flattened; longer trajectories are trained call by call"`
	TokensPerCallMax   int     `json:"tokens_per_call_max" flag:"tokens-per-call-max" help:"longest call that is trained, context and output; trajectories with a longer one are left out and counted; 0: no limit"`

	DrillSteps   int   `json:"drill_steps" flag:"drill-steps" help:"first steps, half of which are copy drills: random ids repeated, with loss on the repetition"`
	DrillLengths []int `json:"drill_lengths" flag:"drill-lengths" help:"lengths of what a drill repeats"`

	LearningRate      float64 `json:"learning_rate" flag:"learning-rate" help:"peak learning rate"`
	LearningRateFloor float64 `json:"learning_rate_floor" flag:"learning-rate-floor" help:"share of the peak that the cosine ends at"`
	EmbeddingRate     float64 `json:"embedding_rate" flag:"embedding-rate" help:"the embedding's learning rate, and one over the final norm's, in units of the learning rate; the square root of the width suits a new tied decoder, 1 a trained one"`
	WarmupSteps       int     `json:"warmup_steps" flag:"warmup-steps" help:"steps of linear warm-up"`
	AdamBeta1         float64 `json:"adam_beta1" flag:"adam-beta1" help:"decay of AdamW's first moment"`
	AdamBeta2         float64 `json:"adam_beta2" flag:"adam-beta2" help:"decay of AdamW's second moment"`
	AdamEpsilon       float64 `json:"adam_epsilon" flag:"adam-epsilon" help:"epsilon of AdamW"`
	WeightDecay       float64 `json:"weight_decay" flag:"weight-decay" help:"decoupled weight decay"`
	GradientNormMax   float64 `json:"gradient_norm_max" flag:"gradient-norm-max" help:"gradients are scaled down to this global norm"`

	LogEvery        int   `json:"log_every" flag:"log-every" help:"steps between metrics records; losses are means over them"`
	EvalEvery       int   `json:"eval_every" flag:"eval-every" help:"steps between evaluations; 0: none"`
	CheckpointEvery int   `json:"checkpoint_every" flag:"checkpoint-every" help:"steps between checkpoints to resume from; the last alone is kept"`
	SnapshotSteps   []int `json:"snapshot_steps" flag:"snapshot-steps" help:"steps after which the model is kept for good, beside the end"`
}

// MiniSFT is the mini preset: a decoder of 819k parameters learns the mini-wiki's
// format and skill in some 40 minutes on one thread.
func MiniSFT() SFTConfig {
	return SFTConfig{
		Compute: defaultCompute(),
		Steps:   4000, TokensPerStep: 3072, ExamplesPerPool: 1024, CallsPerTrajectory: 4,
		FlattenedShare: 0.1, FlattenedTokensMax: 512,
		DrillSteps: 1500, DrillLengths: []int{16, 24, 32, 48, 64},
		LearningRate: 2e-3, LearningRateFloor: 0.1, EmbeddingRate: math.Sqrt(128), WarmupSteps: 50,
		AdamBeta1: 0.9, AdamBeta2: 0.98, AdamEpsilon: 1e-8, WeightDecay: 0.01, GradientNormMax: 1,
		LogEvery: 50, EvalEvery: 500, CheckpointEvery: 250,
		SnapshotSteps: []int{1000, 1200, 1400, 1600, 1700, 1800, 1900, 2000, 2100, 2200, 2300, 2400, 2500, 3000, 3500},
	}
}

// SmokeSFT trains a small decoder for seconds: tests use it.
func SmokeSFT() SFTConfig {
	c := MiniSFT()
	c.Steps, c.TokensPerStep, c.ExamplesPerPool = 40, 512, 128
	c.DrillSteps, c.DrillLengths = 10, []int{8, 16}
	c.LogEvery, c.EvalEvery, c.CheckpointEvery, c.SnapshotSteps = 5, 0, 20, nil
	return c
}

// Validate names every field that is out of range.
func (c SFTConfig) Validate() error {
	errs := c.Compute.problems()
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(c.Steps > 0, "steps is %d, want at least 1", c.Steps)
	bad(c.TokensPerStep > 0, "tokens_per_step is %d, want at least 1", c.TokensPerStep)
	bad(c.TokensPerMicrobatch >= 0, "tokens_per_microbatch is %d, want 0 or more", c.TokensPerMicrobatch)
	bad(c.ExamplesPerPool > 0, "examples_per_pool is %d, want at least 1", c.ExamplesPerPool)
	bad(c.CallsPerTrajectory >= 0, "calls_per_trajectory is %d, want 0 or more", c.CallsPerTrajectory)
	bad(c.FlattenedShare >= 0 && c.FlattenedShare <= 1, "flattened_share is %g, want 0 to 1", c.FlattenedShare)
	bad(c.FlattenedShare == 0 || c.FlattenedTokensMax > 0, "flattened_tokens_max is %d, want at least 1 with a flattened share", c.FlattenedTokensMax)
	bad(c.DrillSteps == 0 || len(c.DrillLengths) > 0, "drill_lengths is empty with %d drill steps", c.DrillSteps)
	for _, n := range c.DrillLengths {
		bad(n >= 2, "drill_lengths has %d, want at least 2", n)
	}
	bad(c.LearningRate > 0, "learning_rate is %g, want more than 0", c.LearningRate)
	bad(c.EmbeddingRate > 0, "embedding_rate is %g, want more than 0", c.EmbeddingRate)
	bad(c.LearningRateFloor >= 0 && c.LearningRateFloor <= 1, "learning_rate_floor is %g, want 0 to 1", c.LearningRateFloor)
	bad(c.AdamBeta1 >= 0 && c.AdamBeta1 < 1, "adam_beta1 is %g, want 0 to 1", c.AdamBeta1)
	bad(c.AdamBeta2 >= 0 && c.AdamBeta2 < 1, "adam_beta2 is %g, want 0 to 1", c.AdamBeta2)
	bad(c.GradientNormMax > 0, "gradient_norm_max is %g, want more than 0", c.GradientNormMax)
	bad(c.LogEvery > 0, "log_every is %d, want at least 1", c.LogEvery)
	bad(c.CheckpointEvery > 0, "checkpoint_every is %d, want at least 1", c.CheckpointEvery)
	bad(c.EvalEvery >= 0, "eval_every is %d, want 0 or more", c.EvalEvery)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sft config: %w", err)
	}
	return nil
}
