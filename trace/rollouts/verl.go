package rollouts

import (
	"encoding/json"

	"github.com/memopd/memopd-bench/trace"
)

// verl is veRL's rollouts: rows of a DataProto, or the text that its trainer dumps
// under rollout_data_dir, which cannot be audited.
var verl = Format{
	Name:        "verl",
	Description: "veRL rows of prompts, responses, response_mask, rollout_log_probs (a rollout_data_dir dump is text, and refused)",
	detect: func(keys map[string]json.RawMessage) bool {
		return has(keys, "prompts", "responses") ||
			starts(keys, "input", '"') && starts(keys, "output", '"') && (has(keys, "score") || has(keys, "step"))
	},
	read: one(readVerl),
}

type verlRow struct {
	Prompts   ids    `json:"prompts"`
	Responses ids    `json:"responses"`
	Mask      []int  `json:"response_mask"`
	Attention []int  `json:"attention_mask"` // over prompts and responses: 0 where there is a pad
	LogProbs  floats `json:"rollout_log_probs"`

	UID         label    `json:"uid"`
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	TopK        *int     `json:"top_k"`
	Mode        string   `json:"logprobs_mode"`
	Reward      float64  `json:"score"`
}

func readVerl(record []byte) (*run, error) {
	var keys map[string]json.RawMessage
	if err := decode(record, &keys); err != nil {
		return nil, err
	}
	if !has(keys, "prompts", "responses") {
		return nil, lacking(LackIDs, "input, output", "a dump of texts; what the sampler saw cannot be told from them")
	}
	var row verlRow
	if err := decode(record, &row); err != nil {
		return nil, err
	}
	n := len(row.Responses)
	switch {
	case row.Mask == nil:
		return nil, malformed("response_mask", "none: sampled ids cannot be told from the environment's")
	case len(row.Mask) != n:
		return nil, malformed("response_mask", "%d for %d ids of responses", len(row.Mask), n)
	case row.LogProbs != nil && len(row.LogProbs) != n:
		return nil, malformed("rollout_log_probs", "%d for %d ids of responses", len(row.LogProbs), n)
	case row.Attention != nil && len(row.Attention) != len(row.Prompts)+n:
		return nil, malformed("attention_mask", "%d for %d ids of prompts and responses", len(row.Attention), len(row.Prompts)+n)
	}
	r := &run{
		task: string(row.UID), temperature: row.Temperature, topP: row.TopP, topK: row.TopK, meaning: meaning(row.Mode), reward: row.Reward,
	}
	if row.Attention == nil {
		r.lacks = append(r.lacks, LackPadding)
	} else {
		row.unpad()
	}
	r.turns = split(row.Prompts, row.Responses, row.Mask, row.LogProbs)
	return r, nil
}

// unpad leaves out what the attention mask hides: pads, and no token that anything saw.
func (r *verlRow) unpad() {
	var prompts, responses []int32
	var mask []int
	var logProbs []float32
	for i, id := range r.Prompts {
		if r.Attention[i] != 0 {
			prompts = append(prompts, id)
		}
	}
	for i, id := range r.Responses {
		if r.Attention[len(r.Prompts)+i] == 0 {
			continue
		}
		responses, mask = append(responses, id), append(mask, r.Mask[i])
		if r.LogProbs != nil {
			logProbs = append(logProbs, r.LogProbs[i])
		}
	}
	r.Prompts, r.Responses, r.Mask, r.LogProbs = prompts, responses, mask, logProbs
}

// meaning reads vLLM's logprobs_mode.
func meaning(mode string) trace.Meaning {
	switch mode {
	case "raw_logprobs":
		return trace.MeaningRaw
	case "processed_logprobs":
		return trace.MeaningProcessed
	}
	return trace.MeaningUnknown
}
