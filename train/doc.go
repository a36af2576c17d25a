// Package train teaches decoders: supervised fine-tuning on turn-level examples
// (sft.go) and PPO with a teacher term over compact-memory trajectories (ppo.go),
// as MemOPD describes it (arXiv 2608.07068). The three variants of the paper
// differ in one value, PPOConfig.Teacher.
//
// The loops know trajectories, tensors and nothing of tasks: whoever calls them
// injects functions that give trajectories, sample rollouts and evaluate. The
// objectives (objectives.go, gae.go) are pure functions, each of which returns
// its diagnostics.
//
// Everything random is drawn from streams that are pure functions of the seed
// and of a counter (stream.go), so that a run resumed from a checkpoint draws
// what the uninterrupted run would have drawn.
//
// All functions that touch tensors use libtorch from the calling goroutine.
package train
