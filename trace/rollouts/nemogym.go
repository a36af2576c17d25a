package rollouts

import (
	"encoding/json"

	"github.com/memopd/memopd-bench/trace"
)

// nemoGym is NeMo-Gym's collected rollouts: a Responses object whose output items
// bear the ids of the model call that they end.
var nemoGym = Format{
	Name:        "nemo-gym",
	Description: "NeMo-Gym responses with prompt_token_ids, generation_token_ids and generation_log_probs",
	detect: func(keys map[string]json.RawMessage) bool {
		return starts(keys, "response", '{') || starts(keys, "output", '[') || starts(keys, "input", '{') && has(keys, "expected_output")
	},
	read: one(readNemoGym),
}

// one makes a reader of records that hold one run each.
func one(read func([]byte) (*run, error)) func([]byte, func(*run, error)) {
	return func(record []byte, yield func(*run, error)) { yield(read(record)) }
}

type gymRecord struct {
	Params   gymSettings           `json:"responses_create_params"`
	Response *gymResponse          `json:"response"`
	Input    json.RawMessage       `json:"input"` // of a test of conversions, which holds a response there
	Reward   float64               `json:"reward"`
	Task     label                 `json:"_ng_task_index"`
	ID       label                 `json:"id"`
	Agent    struct{ Name string } `json:"agent_ref"`
}

type gymSettings struct {
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	TopK        *int     `json:"top_k"`
	MaxTokens   *int     `json:"max_output_tokens"`
}

type gymResponse struct {
	ID         string    `json:"id"`
	Model      string    `json:"model"`
	Output     []gymItem `json:"output"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	gymSettings
}

type gymItem struct {
	Type       string `json:"type"`
	Role       string `json:"role"`
	Prompt     ids    `json:"prompt_token_ids"`
	Generation ids    `json:"generation_token_ids"`
	LogProbs   floats `json:"generation_log_probs"`
}

// fromModel says whether the model made the item, not the environment.
func (i gymItem) fromModel() bool {
	return i.Type == "reasoning" || i.Type == "function_call" || i.Type == "message" && i.Role != "user" && i.Role != "system" && i.Role != "developer"
}

func readNemoGym(record []byte) (*run, error) {
	var rec gymRecord
	if err := decode(record, &rec); err != nil {
		return nil, err
	}
	response := rec.Response
	if response == nil {
		inner := record // the record is the response
		if len(rec.Input) > 0 && rec.Input[0] == '{' {
			inner = rec.Input
		}
		response, rec.ID = &gymResponse{}, ""
		if err := decode(inner, response); err != nil {
			return nil, err
		}
	}
	r := &run{
		id: response.ID, task: string(rec.Task), agent: rec.Agent.Name, model: response.Model, reward: rec.Reward, meaning: trace.MeaningUnknown,
		temperature: or(response.Temperature, rec.Params.Temperature), topP: or(response.TopP, rec.Params.TopP), topK: or(response.TopK, rec.Params.TopK),
	}
	if r.task == "" {
		r.task = string(rec.ID)
	}
	if err := r.gymTurns(response.Output); err != nil {
		return nil, err
	}
	if response.Incomplete != nil && response.Incomplete.Reason == "max_output_tokens" {
		r.turns[len(r.turns)-1].stop = trace.StopLength
	}
	return r, nil
}

// gymTurns takes a turn from each item that bears ids. Items that the model made
// before what the environment answers, with no ids among them, are a call that is lost.
func (r *run) gymTurns(items []gymItem) error {
	open := false // items of a call whose ids have not come yet
	lost := 0
	for i, item := range items {
		switch {
		case item.Prompt != nil || item.Generation != nil:
			if item.Prompt == nil {
				return malformed("response.output", "item %d has generation_token_ids and no prompt_token_ids", i)
			}
			if item.Generation == nil {
				return malformed("response.output", "item %d has prompt_token_ids and no generation_token_ids", i)
			}
			r.turns = append(r.turns, turn{context: item.Prompt, output: item.Generation, logProbs: item.LogProbs})
			open = false
		case item.fromModel():
			open = true
		case open:
			lost++
			open = false
		}
	}
	if open {
		lost++
	}
	if len(r.turns) == 0 {
		return lacking(LackIDs, "response.output", "none of its %d items has prompt_token_ids and generation_token_ids", len(items))
	}
	if lost > 0 {
		r.lacks = append(r.lacks, LackCalls)
	}
	return nil
}

// or is the first that is there.
func or[T any](values ...*T) *T {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}
