package results

// PublishedSource names where the published numbers come from.
const PublishedSource = "MemOPD, arXiv 2608.07068"

// The units of published numbers.
const (
	UnitChange  = "change_percent" // change of the variant against the baseline
	UnitCount   = "count"
	UnitPercent = "percent"
	UnitNats    = "nats" // absolute difference of log-probabilities, or KL
	UnitFactor  = "factor"
)

// Published is one number of the paper. It is never ours, and every table that
// shows it says so.
type Published struct {
	Table    string  `json:"table"`
	Variant  string  `json:"variant,omitempty"`
	Baseline string  `json:"baseline,omitempty"`
	Horizon  string  `json:"horizon,omitempty"`
	Metric   string  `json:"metric"` // a key of Metrics for changes
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
}

func change(table, variant, baseline, horizon, metric string, percent float64) Published {
	return Published{table, variant, baseline, horizon, metric, percent, UnitChange}
}

func fact(table, variant, metric string, value float64, unit string) Published {
	return Published{Table: table, Variant: variant, Metric: metric, Value: value, Unit: unit}
}

// PublishedNumbers lists the paper's numbers. Tables: T1 main results, T2
// Wiki-RAG, T3 audit of states, T3b audit of the teacher, T5 control of the
// teacher's state, T6 corruptions, T7 masks, T8 packing. T4 (five context
// updates, all equal to independent calls) has no number.
func PublishedNumbers() []Published {
	return append(publishedChanges(), publishedAudits()...)
}

func publishedChanges() []Published {
	return []Published{
		change("T1", "memopd", "ppo", "q2", "f1", 14.3),
		change("T1", "memopd", "ppo", "q8", "f1", 283.2),
		change("T1", "memopd", "ppo", "q16", "f1", 416.2),
		change("T1", "memopd", "ppo", "q16", "peak_context", -33),
		change("T1", "memopd", "ppo", "q16", "inference_seconds", -14),
		change("T2", "memopd", "ppo", "wikirag", "em", 6.1),
		change("T2", "memopd", "ppo", "wikirag", "f1", 7.4),
		change("T2", "memopd", "ppo", "wikirag", "dependency", -31.6),
		change("T2", "memopd", "ppo", "wikirag", "inference_seconds", -28.5),
		change("T2", "memopd", "ppo", "wikirag", "peak_context", 2.2),
		change("T5", "persistent", "ppo", "q2", "f1", 5.6),
		change("T5", "persistent", "ppo", "q2", "em", 4.4),
		change("T5", "memopd", "persistent", "q2", "f1", 7),
		change("T5", "memopd", "persistent", "q2", "em", 10),
		change("T5", "memopd", "ppo", "q2", "f1", 13),
		change("T5", "memopd", "ppo", "q2", "em", 14.8),
	}
}

func publishedAudits() []Published {
	return []Published{
		fact("T3", "", "trajectories", 64, UnitCount),
		fact("T3", "", "calls", 199, UnitCount),
		fact("T3", "", "sampled_action_tokens", 12083, UnitCount),
		fact("T3", "persistent", "p99_logprob_error", 1.774, UnitNats),
		fact("T3", "persistent", "top1_flips", 651, UnitCount),
		fact("T3", "persistent", "false_ppo_clips", 13.29, UnitPercent),
		fact("T3", "packed", "p99_logprob_error", 3.43e-5, UnitNats),
		fact("T3b", "persistent", "top1_agreement_later_calls", 81.2, UnitPercent),
		fact("T3b", "persistent", "p99_logprob_difference", 19.854, UnitNats),
		fact("T3b", "persistent", "mean_kl", 0.793, UnitNats),
		fact("T3b", "persistent", "top1_flips", 444, UnitCount),
		fact("T6", "positions_only", "top1_flips", 260, UnitCount),
		fact("T6", "positions_only", "false_ppo_clips", 4.97, UnitPercent),
		fact("T7", "action_mask", "positions", 12083, UnitCount),
		fact("T7", "trajectory_mask", "spurious_positions", 66830, UnitCount),
		fact("T7", "response_mask", "spurious_positions", 74357, UnitCount),
		fact("T8", "packed", "actor_update_speedup", 1.63, UnitFactor),
	}
}
