// Package train teaches decoders: supervised fine-tuning on turn-level examples
// (sft.go) and PPO with a teacher term over compact-memory trajectories (ppo.go),
// as MemOPD describes it (arXiv 2608.07068). The three variants of the paper
// differ in one value, PPOConfig.Teacher; beyond the paper are other estimators of the
// teacher term (PPOConfig.TeacherEstimator) and wrong states (PPOConfig.Layout).
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
// # Metrics
//
// Each line of metrics.jsonl is a flat object. Means of losses are over the
// action tokens that the step's update went over, unless said otherwise.
//
//	training/global_step        steps finished
//
//	train/loss                  SFT: mean negative log-likelihood of output tokens since the last record
//	train/copy_loss             SFT: the same of copy drills
//	train/grad_norm             SFT: mean gradient norm before clipping
//	train/lr                    SFT: learning rate of the last step
//	train/tokens                SFT: tokens trained on so far, without padding
//	align/rejected              SFT: trajectories left out so far
//
//	score/reward                mean task reward of all trajectories
//	score/em, score/f1          mean scores, and any other that trajectories bring
//	score/reward_penalised      mean of the reward less beta times the KL to the reference
//	ends/END                    trajectories that ended so (package trace)
//	retrieval/failures          searches that could not be made and were told to the model
//	align/rejected/REASON       trajectories left out of the update (package align; failed: see ReasonFailed)
//	align/spurious_actions      tokens that the layout's mask takes for actions, and nothing sampled
//	rollout/trajectories        trajectories in the update
//	teacher/context_tokens      tokens that the teacher sees of a trajectory, which are never cut; null without a teacher
//	rollout/calls_mean          calls a trajectory
//	response_length/mean        sampled tokens a call
//	rollout/logprob_diff_mean   absolute difference of the sampler's and the trainer's log-probs; also _p99, _max
//	rollout/sequence_logprob_diff_mean   the same of a trajectory's summed log-prob, by which a ratio of whole sequences goes; also _max
//	rce/actions                 sampled tokens whose packed log-probs were compared with independent calls
//	rce/mean, rce/p99, rce/max  of the absolute differences
//	rce/flips                   tokens with another most probable id
//	rce/enforced                1 where a violation stops training, 0 where it is recorded alone: in other layouts than the aligned one
//	rce/p99_compute, rce/max_compute, rce/flips_compute   the same in bf16, in runs that compute in it; what stands above is float32 then too
//	losses/policy_loss          negated clipped surrogate
//	losses/value_loss           half the squared error, clipped
//	losses/entropy              entropy of the policy in nats
//	losses/approx_kl            k3 estimate of KL(behaviour || policy)
//	losses/clipfrac             share of tokens where the clip acts
//	losses/value_clipfrac       the same of the value loss
//	losses/explained_variance   of the returns by the critic, before the update
//	actor/reference_kl          k1 estimate of KL(behaviour || reference)
//	actor/teacher_kl            KL(student || teacher) over the teacher mask, by the run's estimator; null without a teacher
//	actor/ratio_max             largest ratio
//	actor/grad_norm             mean over mini-batches, before clipping; critic/grad_norm alike
//	actor/minibatches           optimiser steps
//	actor/action_tokens         action tokens, spurious ones too, once an epoch
//
//	perf/total_num_tokens       packed tokens of the batch
//	perf/throughput             SFT: trained tokens a second; PPO: action tokens a second, all phases
//	timing_s/PHASE              seconds of gen, compile, rce, score, adv, update, and bundle in steps with one; step is their sum
//	timing_s/data, /window      SFT: seconds since the last record for data, and in all
//
// Event files (package events) hold the same, also under CleanRL's and veRL's names.
//
// All functions that touch tensors use libtorch from the calling goroutine.
package train
