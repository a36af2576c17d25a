package events

import "strings"

// A tag is the name that a scalar has in TensorBoard. Each metric stands under its
// own name; where CleanRL or veRL writes the same quantity under another, it stands
// under that too, so that runs of theirs lie in the same plots.
//
// Names were looked up in CleanRL's cleanrl/ppo.py, and in veRL's
// verl/trainer/ppo/metric_utils.py (critic/score, critic/rewards, timing_s, perf),
// verl/trainer/ppo/ray_trainer.py (actor/entropy, actor/reward_kl_penalty, val-aux),
// verl/trainer/ppo/core_algos.py and the actor's and critic's workers (actor/pg_loss,
// actor/pg_clipfrac, critic/vf_loss, critic/vf_clipfrac).

// Project is whose name a tag is.
type Project string

const (
	CleanRL Project = "CleanRL"
	VeRL    Project = "veRL"
)

// Name is a tag that a metric has in another project.
type Name struct {
	Metric  string // of metrics.jsonl
	Tag     string
	Project Project
	Note    string // where the quantities differ in a detail
}

// Names lists the tags that are CleanRL's or veRL's. A Tag that is the metric's own
// name is not written twice.
var Names = []Name{
	{"score/reward", "charts/episodic_return", CleanRL, "the step's mean, CleanRL writes each episode"},
	{"score/reward", "critic/score/mean", VeRL, ""},
	{"score/reward_penalised", "critic/rewards/mean", VeRL, ""},
	{"rollout/calls_mean", "charts/episodic_length", CleanRL, "a call is a step of the environment"},
	{"train/lr", "charts/learning_rate", CleanRL, ""},
	{"train/loss", "train/loss", VeRL, ""},
	{"losses/policy_loss", "losses/policy_loss", CleanRL, "the mean over mini-batches, CleanRL writes the last one's; so below"},
	{"losses/policy_loss", "actor/pg_loss", VeRL, ""},
	{"losses/value_loss", "losses/value_loss", CleanRL, ""},
	{"losses/value_loss", "critic/vf_loss", VeRL, ""},
	{"losses/value_clipfrac", "critic/vf_clipfrac", VeRL, ""},
	{"losses/entropy", "losses/entropy", CleanRL, ""},
	{"losses/entropy", "actor/entropy", VeRL, "during the update, veRL takes it before"},
	{"losses/approx_kl", "losses/approx_kl", CleanRL, ""},
	{"losses/clipfrac", "losses/clipfrac", CleanRL, "tokens where the clip acts, CleanRL counts all beyond the range"},
	{"losses/clipfrac", "actor/pg_clipfrac", VeRL, ""},
	{"losses/explained_variance", "losses/explained_variance", CleanRL, ""},
	{"losses/explained_variance", "critic/vf_explained_var", VeRL, ""},
	{"actor/reference_kl", "actor/reward_kl_penalty", VeRL, "the mean over tokens, veRL takes it over sequences"},
	{"actor/grad_norm", "actor/grad_norm", VeRL, ""},
	{"critic/grad_norm", "critic/grad_norm", VeRL, ""},
	{"response_length/mean", "response_length/mean", VeRL, "tokens a call"},
	{"perf/total_num_tokens", "perf/total_num_tokens", VeRL, ""},
	{"perf/throughput", "perf/throughput", VeRL, "action tokens a second"},
	{"timing_s/step", "timing_s/step", VeRL, ""},
	{"timing_s/step", "perf/time_per_step", VeRL, ""},
	{"timing_s/gen", "timing_s/gen", VeRL, ""},
	{"timing_s/adv", "timing_s/adv", VeRL, ""},
}

// TagsOf are the tags that a metric is written under, its own name first.
func TagsOf(metric string) []string {
	tags := []string{metric}
	for _, n := range Names {
		if n.Metric == metric && n.Tag != metric {
			tags = append(tags, n.Tag)
		}
	}
	if horizon, ok := strings.CutSuffix(metric, "_f1"); ok && strings.HasPrefix(horizon, "eval/") {
		// veRL's val-aux/SOURCE/SCORE/mean@SAMPLES, of one greedy answer a task.
		tags = append(tags, "val-aux/"+strings.TrimPrefix(horizon, "eval/")+"/f1/mean@1")
	}
	return tags
}
