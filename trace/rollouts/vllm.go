package rollouts

import (
	"encoding/json"

	"github.com/memopd/memopd-bench/trace"
)

// vllm is an answer of vLLM's completions or chat completions that was asked with
// return_token_ids: one call, once for each choice.
var vllm = Format{
	Name:        "vllm",
	Description: "vLLM completions and chat completions with prompt_token_ids and token_ids (return_token_ids)",
	detect:      func(keys map[string]json.RawMessage) bool { return starts(keys, "choices", '[') },
	read:        readVLLM,
}

type vllmAnswer struct {
	ID      string       `json:"id"`
	Model   string       `json:"model"`
	Prompt  ids          `json:"prompt_token_ids"`
	Choices []vllmChoice `json:"choices"`
}

type vllmChoice struct {
	Prompt   ids    `json:"prompt_token_ids"`
	IDs      ids    `json:"token_ids"`
	Finish   string `json:"finish_reason"`
	LogProbs *struct {
		Tokens  floats `json:"token_logprobs"` // of completions
		Content []struct {
			LogProb *float64 `json:"logprob"`
		} `json:"content"` // of chat completions
	} `json:"logprobs"`
}

func readVLLM(record []byte, yield func(*run, error)) {
	var answer vllmAnswer
	if err := decode(record, &answer); err != nil {
		yield(nil, err)
		return
	}
	for i, choice := range answer.Choices {
		prompt := choice.Prompt
		if prompt == nil {
			prompt = answer.Prompt
		}
		switch {
		case prompt == nil:
			yield(nil, lacking(LackIDs, "prompt_token_ids", "choice %d does not say what it was sampled on", i))
			continue
		case choice.IDs == nil:
			yield(nil, lacking(LackIDs, "choices.token_ids", "choice %d has none", i))
			continue
		}
		yield(&run{
			task: answer.ID, model: answer.Model, meaning: trace.MeaningUnknown,
			turns: []turn{{context: prompt, output: choice.IDs, logProbs: choice.logProbs(), stop: finished(choice.Finish)}},
		}, nil)
	}
}

func (c vllmChoice) logProbs() []float32 {
	if c.LogProbs == nil {
		return nil
	}
	if c.LogProbs.Tokens != nil {
		return c.LogProbs.Tokens
	}
	var out []float32
	for _, token := range c.LogProbs.Content {
		out = append(out, orNaN(token.LogProb))
	}
	return out
}

// finished reads a finish_reason. "stop" is an end-of-sequence id or a stop string,
// which of them is not said.
func finished(reason string) trace.StopReason {
	if reason == "length" {
		return trace.StopLength
	}
	return ""
}
