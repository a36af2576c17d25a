package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The values of PPOConfig.Teacher. They alone make the paper's variants. Under another
// layout than the aligned one, "aligned" is the state that the student is trained in.
const (
	TeacherNone       = "none"       // no teacher term: the variant "ppo"
	TeacherPersistent = "persistent" // the teacher scores the flattened persistent history
	TeacherAligned    = "aligned"    // the teacher scores the state that the rollout had: "memopd"
)

// The values of PPOConfig.Critic.
const (
	CriticDecoder = "decoder" // a decoder of its own, initialised from the reference, with a value head
	CriticHead    = "head"    // a small MLP of its own on the actor's detached hidden states
)

// The values of PPOConfig.Ratio.
const (
	RatioTrainer = "trainer" // behaviour log-probs of the frozen snapshot, recomputed in the states that are trained on
	RatioSampler = "sampler" // the log-probs that the sampler recorded
)

// The values of PPOConfig.TeacherEstimator: how KL(student || teacher) is taken at a
// position. All three have the same full-vocabulary KL in view.
const (
	EstimatorFull    = "full"    // the sum over the whole vocabulary: the paper's
	EstimatorSampled = "sampled" // the sampled token alone, see SampledReverseKL
	EstimatorTopK    = "top-k"   // the student's most probable ids, and the rest as one, see terms.TopK
)

// LayoutAligned is the layout that RCE holds in, and the only one whose violation of it
// stops training.
const LayoutAligned = "aligned"

// PPOConfig holds the settings of reinforcement learning. The command line and
// --config files take its fields from the tags.
//
// Losses of the policy, the teacher and the critic are means over the action
// tokens of a mini-batch (token-mean): a long trajectory weighs more than a
// short one, in proportion to what it sampled, and a token weighs the same in
// every call.
type PPOConfig struct {
	Seed           uint64 `json:"seed" flag:"seed" help:"seed of rollouts, mini-batches and the critic's initial weights"`
	Steps          int    `json:"steps" flag:"steps" help:"PPO steps; each samples new trajectories"`
	PromptsPerStep int    `json:"prompts_per_step" flag:"prompts-per-step" help:"tasks that are rolled out in a step, one trajectory each"`

	Teacher          string  `json:"teacher" flag:"teacher" help:"what the teacher sees: none (ppo), persistent, aligned (memopd)"`
	TeacherWeight    float64 `json:"teacher_weight" flag:"teacher-weight" help:"weight of the teacher term, KL(student || teacher)"`
	TeacherEstimator string  `json:"teacher_estimator" flag:"teacher-estimator" help:"how the teacher term is taken: full (whole vocabulary), sampled (the sampled token alone) or top-k (the student's most probable ids, the rest as one)"`
	TeacherTopK      int     `json:"teacher_top_k" flag:"teacher-top-k" help:"ids of --teacher-estimator top-k"`
	TeacherFirstCall int     `json:"teacher_first_call" flag:"teacher-first-call" help:"calls before this one are outside the teacher mask; 0: all sampled tokens are in it"`
	Layout           string  `json:"layout" flag:"layout" help:"state that the trainer scores and trains sampled tokens in: aligned (that of the rollout), or a wrong one to see what it costs: persistent, visibility, positions, both, mem1, trajectory-mask, response-mask (RCE is then recorded and stops nothing)"`

	Compute

	EpochsPerStep            int    `json:"epochs_per_step" flag:"epochs-per-step" help:"passes over a step's trajectories"`
	TokensPerMinibatch       int    `json:"tokens_per_minibatch" flag:"tokens-per-minibatch" help:"packed tokens of one optimiser step, about: a step's whole trajectories are spread evenly over total/this mini-batches"`
	TrajectoriesPerMinibatch int    `json:"trajectories_per_minibatch" flag:"trajectories-per-minibatch" help:"trajectories of one optimiser step, at most: a step's trajectories are spread evenly over as few mini-batches as that allows; 0: by --tokens-per-minibatch"`
	TokensPerMicrobatch      int    `json:"tokens_per_microbatch" flag:"tokens-per-microbatch" help:"packed tokens of one forward and backward pass; a longer trajectory stands alone"`
	PackedTokensMax          int    `json:"packed_tokens_max" flag:"packed-tokens-max" help:"longest packed trajectory; longer ones are left out whole and counted; 0: no limit"`
	TokensPerCallMax         int    `json:"tokens_per_call_max" flag:"tokens-per-call-max" help:"longest call, context and output; trajectories with a longer one are left out whole and counted; 0: no limit"`
	Ratio                    string `json:"ratio" flag:"ratio" help:"behaviour log-probs in the PPO ratio: trainer (frozen snapshot, in the states of --layout) or sampler (as recorded)"`

	OffloadFrozen bool `json:"offload_frozen" flag:"offload-frozen" help:"keep reference and teacher in the host's memory while they are not scoring, and the teacher's hidden states at all times"`

	ClipRange          float64 `json:"clip_range" flag:"clip-range" help:"PPO clip of the ratio"`
	ValueClipRange     float64 `json:"value_clip_range" flag:"value-clip-range" help:"clip of the value's change in the value loss; 0: none"`
	Gamma              float64 `json:"gamma" flag:"gamma" help:"discount per sampled action"`
	Lambda             float64 `json:"lambda" flag:"lambda" help:"GAE's lambda"`
	KLCoefficient      float64 `json:"kl_coefficient" flag:"kl-coefficient" help:"beta: weight of the token-level KL to the reference in the reward"`
	EntropyCoefficient float64 `json:"entropy_coefficient" flag:"entropy-coefficient" help:"weight of the entropy bonus"`
	Temperature        float64 `json:"temperature" flag:"temperature" help:"sampling temperature; all log-probs are of softmax(logits/temperature)"`
	PolicyDelaySteps   int     `json:"policy_delay_steps" flag:"policy-delay-steps" help:"first steps without the policy gradient, while the critic learns; the teacher term acts from the start"`

	Critic            string `json:"critic" flag:"critic" help:"critic's kind: decoder (own decoder from the SFT weights) or head (small MLP on the actor's detached hidden states)"`
	CriticHiddenUnits int    `json:"critic_hidden_units" flag:"critic-hidden-units" help:"hidden units of the critic's MLP when critic is head"`

	LearningRate       float64 `json:"learning_rate" flag:"learning-rate" help:"actor's learning rate"`
	CriticLearningRate float64 `json:"critic_learning_rate" flag:"critic-learning-rate" help:"critic's learning rate"`
	AdamBeta1          float64 `json:"adam_beta1" flag:"adam-beta1" help:"decay of AdamW's first moment"`
	AdamBeta2          float64 `json:"adam_beta2" flag:"adam-beta2" help:"decay of AdamW's second moment"`
	AdamEpsilon        float64 `json:"adam_epsilon" flag:"adam-epsilon" help:"epsilon of AdamW"`
	WeightDecay        float64 `json:"weight_decay" flag:"weight-decay" help:"decoupled weight decay"`
	GradientNormMax    float64 `json:"gradient_norm_max" flag:"gradient-norm-max" help:"gradients of actor and of critic are each scaled down to this global norm"`

	RCETrajectoriesPerStep int     `json:"rce_trajectories_per_step" flag:"rce-trajectories-per-step" help:"trajectories of each step whose packed log-probs are compared with independent calls; 0: none"`
	RCETolerance           float64 `json:"rce_tolerance" flag:"rce-tolerance" help:"training stops when the 99th percentile of that difference is above this"`

	EvalEvery           int  `json:"eval_every" flag:"eval-every" help:"steps between evaluations; 0: none"`
	CheckpointEvery     int  `json:"checkpoint_every" flag:"checkpoint-every" help:"steps between checkpoints to resume from; the last alone is kept"`
	CheckpointKeepEvery int  `json:"checkpoint_keep_every" flag:"checkpoint-keep-every" help:"checkpoints of these steps are kept for good; 0: none"`
	BundleEvery         int  `json:"bundle_every" flag:"bundle-every" help:"steps between bundles, which bench replay reruns; the first step has one; 0: none"`
	BundleWeights       bool `json:"bundle_weights" flag:"bundle-weights" help:"bundles hold weights and moments before their step, and the first microbatch's gradient, so that each can be replayed without a checkpoint"`
}

// MiniPPO is the mini preset: 100 steps of 32 Q2 episodes take some 4 minutes on
// one thread. Steps, learning rate and KL were chosen on a dev seed (docs/LOG.md).
func MiniPPO() PPOConfig {
	return PPOConfig{
		Compute: defaultCompute(),
		Steps:   100, PromptsPerStep: 32,
		Teacher: TeacherAligned, TeacherWeight: 2, TeacherEstimator: EstimatorFull, TeacherTopK: 16, Layout: LayoutAligned,
		EpochsPerStep: 1, TokensPerMinibatch: 2048, TokensPerMicrobatch: 4096, Ratio: RatioTrainer,
		ClipRange: 0.2, ValueClipRange: 0.2, Gamma: 1, Lambda: 0.95, KLCoefficient: 0.08, Temperature: 1,
		PolicyDelaySteps: 3,
		Critic:           CriticHead, CriticHiddenUnits: 128,
		LearningRate: 1.5e-4, CriticLearningRate: 1e-3,
		AdamBeta1: 0.9, AdamBeta2: 0.95, AdamEpsilon: 1e-8, GradientNormMax: 1,
		RCETrajectoriesPerStep: 4, RCETolerance: 1e-4,
		EvalEvery: 25, CheckpointEvery: 25, CheckpointKeepEvery: 0, BundleEvery: 25,
	}
}

// SmokePPO is the smoke preset: a minute in which the student visibly moves
// towards the teacher.
func SmokePPO() PPOConfig {
	c := MiniPPO()
	c.Steps, c.PromptsPerStep, c.LearningRate, c.KLCoefficient = 25, 16, 8e-4, 0.02
	c.TokensPerMinibatch = 1024
	c.EvalEvery, c.CheckpointEvery = 0, 25
	return c
}

// since gives settings that an earlier configuration lacked what runs did then.
func (c *PPOConfig) since() {
	if c.TeacherEstimator == "" {
		c.TeacherEstimator, c.TeacherTopK = EstimatorFull, 16
	}
	if c.Layout == "" {
		c.Layout = LayoutAligned
	}
}

// Validate names every field that is out of range.
func (c PPOConfig) Validate() error {
	errs := c.Compute.problems()
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	oneOf := func(name, value string, known ...string) {
		bad(slices.Contains(known, value), "%s is %q, want one of %s", name, value, strings.Join(known, ", "))
	}
	oneOf("teacher", c.Teacher, TeacherNone, TeacherPersistent, TeacherAligned)
	oneOf("teacher_estimator", c.TeacherEstimator, EstimatorFull, EstimatorSampled, EstimatorTopK)
	oneOf("layout", c.Layout, trainLayouts()...)
	if c.invents() {
		bad(c.Ratio != RatioSampler, "ratio is %q, and the sampler knows nothing of what layout %s takes for actions beside its own", c.Ratio, c.Layout)
		bad(c.Teacher != TeacherPersistent, "teacher is %q, whose row lacks what layout %s takes for actions beside the sampled ones", c.Teacher, c.Layout)
	}
	oneOf("critic", c.Critic, CriticDecoder, CriticHead)
	oneOf("ratio", c.Ratio, RatioTrainer, RatioSampler)
	for _, f := range []struct {
		name  string
		value int
		least int
	}{
		{"steps", c.Steps, 1}, {"prompts_per_step", c.PromptsPerStep, 1}, {"epochs_per_step", c.EpochsPerStep, 1},
		{"tokens_per_minibatch", c.TokensPerMinibatch, 1}, {"trajectories_per_minibatch", c.TrajectoriesPerMinibatch, 0}, {"tokens_per_microbatch", c.TokensPerMicrobatch, 1},
		{"packed_tokens_max", c.PackedTokensMax, 0}, {"tokens_per_call_max", c.TokensPerCallMax, 0},
		{"policy_delay_steps", c.PolicyDelaySteps, 0}, {"teacher_first_call", c.TeacherFirstCall, 0}, {"teacher_top_k", c.TeacherTopK, 1}, {"critic_hidden_units", c.CriticHiddenUnits, 1},
		{"rce_trajectories_per_step", c.RCETrajectoriesPerStep, 0}, {"eval_every", c.EvalEvery, 0},
		{"checkpoint_every", c.CheckpointEvery, 1}, {"checkpoint_keep_every", c.CheckpointKeepEvery, 0},
		{"bundle_every", c.BundleEvery, 0},
	} {
		bad(f.value >= f.least, "%s is %d, want at least %d", f.name, f.value, f.least)
	}
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"clip_range", c.ClipRange}, {"temperature", c.Temperature}, {"learning_rate", c.LearningRate},
		{"critic_learning_rate", c.CriticLearningRate}, {"gradient_norm_max", c.GradientNormMax}, {"rce_tolerance", c.RCETolerance},
	} {
		bad(f.value > 0, "%s is %g, want more than 0", f.name, f.value)
	}
	for _, f := range []struct {
		name        string
		value, most float64
	}{
		{"gamma", c.Gamma, 1}, {"lambda", c.Lambda, 1}, {"value_clip_range", c.ValueClipRange, 1e9},
		{"kl_coefficient", c.KLCoefficient, 1e9}, {"entropy_coefficient", c.EntropyCoefficient, 1e9},
		{"teacher_weight", c.TeacherWeight, 1e9}, {"adam_beta1", c.AdamBeta1, 0.999999}, {"adam_beta2", c.AdamBeta2, 0.999999},
		{"weight_decay", c.WeightDecay, 1e9},
	} {
		bad(f.value >= 0 && f.value <= f.most, "%s is %g, want 0 to %g", f.name, f.value, f.most)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ppo config: %w", err)
	}
	return nil
}
