package train

// The presets small and paper. Mini and smoke stand with the configurations.

// SmallSFT teaches SmolLM2-135M on two CPU cores, where a thousand tokens of
// forward and backward take some ten seconds. Learning rate, warm-up and decay are
// in the range that fine-tuning of small published models uses (TRL's SFT example
// for SmolLM2 and its defaults: 2e-5 to 5e-5); there are no drills, since the
// checkpoint copies already.
func SmallSFT() SFTConfig {
	return SFTConfig{
		Compute: Compute{Device: "cpu", DType: Float32, LogitsPerChunk: 256},
		Steps:   200, TokensPerStep: 2048, TokensPerMicrobatch: 2048, ExamplesPerPool: 64, CallsPerTrajectory: 2,
		TokensPerCallMax: 4096,
		LearningRate:     3e-5, LearningRateFloor: 0.1, EmbeddingRate: 1, WarmupSteps: 10,
		AdamBeta1: 0.9, AdamBeta2: 0.95, AdamEpsilon: 1e-8, WeightDecay: 0.01, GradientNormMax: 1,
		LogEvery: 5, EvalEvery: 0, CheckpointEvery: 50,
	}
}

// SmallPPO trains SmolLM2-135M on two CPU cores: few trajectories a step, one
// optimiser step of them, the critic a head. Rates are those of the paper's
// preset for the actor times 5, for so much shorter a run.
func SmallPPO() PPOConfig {
	c := PaperPPO()
	c.Compute = Compute{Device: "cpu", DType: Float32, LogitsPerChunk: 256}
	c.Steps, c.PromptsPerStep = 20, 4
	c.TokensPerMicrobatch, c.TrajectoriesPerMinibatch = 2048, 4
	c.TokensPerCallMax, c.PackedTokensMax = 4096, 8192
	c.Critic, c.CriticHiddenUnits, c.OffloadFrozen = CriticHead, 256, false
	c.LearningRate, c.CriticLearningRate = 5e-6, 1e-4
	c.RCETrajectoriesPerStep = 1
	c.EvalEvery, c.CheckpointEvery, c.BundleEvery = 0, 10, 10
	return c
}

// PaperSFT is the first stage of the paper for Qwen2.5-3B (arXiv 2608.07068):
// 20,036 turn-level examples, each a call with loss on its output. How they were
// trained is not stated. The values are those of veRL's SFT trainer (learning rate
// 1e-5, betas 0.9 and 0.95, decay 0.01, clip 1, warm-up over a tenth, cosine,
// bf16 with f32 weights). An optimiser step counts tokens here: 131,072 of them
// are about 128 turns of 1,000 tokens, and 470 steps about three epochs.
func PaperSFT() SFTConfig {
	return SFTConfig{
		Compute: Compute{Device: "cuda", DType: BFloat16, CheckpointLayers: true, LogitsPerChunk: 1024},
		Steps:   470, TokensPerStep: 131072, TokensPerMicrobatch: 16384, ExamplesPerPool: 4096,
		TokensPerCallMax: paperCallTokens,
		LearningRate:     1e-5, EmbeddingRate: 1, WarmupSteps: 47,
		AdamBeta1: 0.9, AdamBeta2: 0.95, AdamEpsilon: 1e-8, WeightDecay: 0.01, GradientNormMax: 1,
		LogEvery: 1, EvalEvery: 0, CheckpointEvery: 50,
	}
}

// The paper's limits of a call, in tokens (MEM1's data.max_prompt_length and
// data.max_response_length). The third, 1,000 tokens of an observation, is the
// protocol's.
const (
	paperPromptTokens   = 4096
	paperResponseTokens = 1000
	paperCallTokens     = paperPromptTokens + paperResponseTokens
)

// PaperPPO is the paper's second stage: Qwen2.5-3B as the student, a 7B teacher.
//
// From the paper and MEM1's train_ppo.sh: 500 steps of 128 trajectories, optimiser
// steps of 64, learning rates 1e-6 and 1e-5, KL coefficient 0.001 in the reward,
// GAE, temperature 1, gradient checkpointing, a critic with a decoder of its own,
// frozen models off the device while they rest, checkpoints every 20 and evaluation
// every 150 steps.
// From veRL's ppo_trainer.yaml, which MEM1 builds on: one epoch, clip 0.2, value
// clip 0.5, gamma and lambda 1, no entropy bonus, decay 0.01, clip of the
// gradients at 1, token-mean losses, 16,384 tokens a microbatch; AdamW's betas
// are PyTorch's defaults.
// The teacher's weight is not stated; 1 is this project's choice. MEM1 warms the
// learning rates up over 25 and 8 steps, which is left out here. MEM1 limits
// context and response apart (4,096 and 1,000 tokens), we their sum.
func PaperPPO() PPOConfig {
	return PPOConfig{
		Compute: Compute{Device: "cuda", DType: BFloat16, CheckpointLayers: true, LogitsPerChunk: 1024},
		Steps:   500, PromptsPerStep: 128,
		Teacher: TeacherAligned, TeacherWeight: 1, TeacherEstimator: EstimatorFull, TeacherTopK: 16, Layout: LayoutAligned,
		EpochsPerStep: 1, TrajectoriesPerMinibatch: 64, TokensPerMinibatch: 131072, TokensPerMicrobatch: 16384,
		TokensPerCallMax: paperCallTokens, Ratio: RatioTrainer, OffloadFrozen: true,
		ClipRange: 0.2, ValueClipRange: 0.5, Gamma: 1, Lambda: 1, KLCoefficient: 0.001, Temperature: 1,
		Critic: CriticDecoder, CriticHiddenUnits: 256,
		LearningRate: 1e-6, CriticLearningRate: 1e-5,
		AdamBeta1: 0.9, AdamBeta2: 0.999, AdamEpsilon: 1e-8, WeightDecay: 0.01, GradientNormMax: 1,
		RCETrajectoriesPerStep: 4, RCETolerance: 1e-4,
		EvalEvery: 150, CheckpointEvery: 20, CheckpointKeepEvery: 100, BundleEvery: 20,
	}
}
