package rollouts

import (
	"encoding/json"
	"fmt"

	"github.com/memopd/memopd-bench/trace"
)

// primeRL is verifiers' rollouts, a step a model call, and prime-rl's training samples.
var primeRL = Format{
	Name:        "prime-rl",
	Description: "verifiers rollouts (trajectory steps with tokens) and prime-rl samples: prompt_ids, completion_ids, completion_mask, completion_logprobs",
	detect: func(keys map[string]json.RawMessage) bool {
		return starts(keys, "trajectory", '[') || has(keys, "prompt_ids", "completion_ids")
	},
	read: one(readPrimeRL),
}

type primeRecord struct {
	ID       label       `json:"trajectory_id"`
	Example  label       `json:"example_id"`
	Reward   *float64    `json:"reward"`
	Steps    []primeStep `json:"trajectory"`
	Sampling struct {
		Temperature *float64 `json:"temperature"`
		TopP        *float64 `json:"top_p"`
		TopK        *int     `json:"top_k"`
	} `json:"sampling_args"`
	Model        string `json:"model"`
	Temperatures floats `json:"completion_temperatures"` // of a sample
	primeTokens         // of a sample
}

type primeStep struct {
	Tokens    *primeTokens `json:"tokens"`
	Truncated bool         `json:"is_truncated"`
	ID        label        `json:"trajectory_id"`
}

type primeTokens struct {
	Prompt     ids    `json:"prompt_ids"`
	Completion ids    `json:"completion_ids"`
	Mask       []int  `json:"completion_mask"`
	LogProbs   floats `json:"completion_logprobs"`
	Truncated  bool   `json:"is_truncated"`
	Overlong   bool   `json:"overlong_prompt"`
}

func readPrimeRL(record []byte) (*run, error) {
	var rec primeRecord
	if err := decode(record, &rec); err != nil {
		return nil, err
	}
	r := &run{
		id: string(rec.ID), task: string(rec.Example), model: rec.Model, meaning: trace.MeaningUnknown,
		temperature: rec.Sampling.Temperature, topP: rec.Sampling.TopP, topK: rec.Sampling.TopK,
	}
	if rec.Reward != nil {
		r.reward = *rec.Reward
	}
	if rec.Steps == nil {
		r.oneTemperature(rec.Temperatures)
		return r, r.step("", &rec.primeTokens, false)
	}
	for i, s := range rec.Steps {
		field := fmt.Sprintf("trajectory[%d].tokens", i)
		if s.Tokens == nil {
			return nil, lacking(LackIDs, field, "the client recorded none")
		}
		if err := r.step(field+".", s.Tokens, s.Truncated || s.Tokens.Truncated); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// oneTemperature takes a sample's temperature where it is one.
func (r *run) oneTemperature(each floats) {
	for _, t := range each {
		if t != each[0] {
			return
		}
	}
	if len(each) > 0 && r.temperature == nil {
		t := float64(each[0])
		r.temperature = &t
	}
}

func (r *run) step(field string, t *primeTokens, truncated bool) error {
	n := len(t.Completion)
	switch {
	case t.Prompt == nil:
		return lacking(LackIDs, field+"prompt_ids", "none")
	case t.Completion == nil:
		return lacking(LackIDs, field+"completion_ids", "none")
	case t.Overlong:
		return malformed(field+"overlong_prompt", "the prompt was cut: nothing was sampled on these ids")
	}
	if t.Mask == nil {
		t.Mask = make([]int, n)
		for i := range t.Mask {
			t.Mask[i] = 1
		}
	}
	if len(t.Mask) != n {
		return malformed(field+"completion_mask", "%d for %d completion_ids", len(t.Mask), n)
	}
	logProbs := []float32(t.LogProbs)
	if len(logProbs) == 0 && n > 0 {
		logProbs = nil // an empty list is none
	}
	all := !hasZero(t.Mask)
	if !all && logProbs != nil && len(logProbs) != n {
		return malformed(field+"completion_logprobs", "%d for %d completion_ids", len(logProbs), n)
	}
	turns := []turn{{context: t.Prompt, output: t.Completion, logProbs: logProbs}}
	if !all {
		turns = split(t.Prompt, t.Completion, t.Mask, logProbs)
	}
	if truncated && len(turns) > 0 {
		turns[len(turns)-1].stop = trace.StopLength
	}
	r.turns = append(r.turns, turns...)
	return nil
}

func hasZero(mask []int) bool {
	for _, m := range mask {
		if m == 0 {
			return true
		}
	}
	return false
}
