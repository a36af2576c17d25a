package rollouts

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/trace"
)

// tinker is the trajectories of Tinker's cookbook: transitions of an observation,
// the whole prompt, and an action, the sampled ids.
var tinker = Format{
	Name:        "tinker",
	Description: "Tinker-style transitions: ob (prompt ids) and ac (tokens, maybe_logprobs); groups of trajectories_G",
	detect: func(keys map[string]json.RawMessage) bool {
		return starts(keys, "transitions", '[') || starts(keys, "trajectories_G", '[')
	},
	read: readTinker,
}

type tinkerRecord struct {
	tinkerTrajectory
	Group   []tinkerTrajectory `json:"trajectories_G"`
	Rewards []float64          `json:"final_rewards_G"`
}

type tinkerTrajectory struct {
	Transitions []tinkerTransition `json:"transitions"`
	Final       *tinkerPrompt      `json:"final_ob"`
}

type tinkerTransition struct {
	Prompt tinkerPrompt `json:"ob"`
	Action struct {
		IDs      ids    `json:"tokens"`
		Maybe    floats `json:"maybe_logprobs"`
		LogProbs floats `json:"logprobs"`
		Stop     string `json:"stop_reason"`
	} `json:"ac"`
	Reward float64 `json:"reward"`
}

// tinkerPrompt is a ModelInput of chunks, or its ids alone.
type tinkerPrompt struct {
	ids   []int32
	other string // the type of a chunk that has no ids
	given bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *tinkerPrompt) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	p.given = true
	if data[0] == '[' {
		return json.Unmarshal(data, (*ids)(&p.ids))
	}
	var input struct {
		Chunks []struct {
			Type   string `json:"type"`
			Tokens ids    `json:"tokens"`
		} `json:"chunks"`
	}
	if err := json.Unmarshal(data, &input); err != nil {
		return err
	}
	for _, c := range input.Chunks {
		if c.Tokens == nil {
			p.other = c.Type
		}
		p.ids = append(p.ids, c.Tokens...)
	}
	return nil
}

func readTinker(record []byte, yield func(*run, error)) {
	var rec tinkerRecord
	if err := decode(record, &rec); err != nil {
		yield(nil, err)
		return
	}
	if rec.Transitions != nil {
		yield(rec.tinkerTrajectory.run(""))
	}
	for i, t := range rec.Group {
		r, err := t.run(fmt.Sprintf("trajectories_G[%d].", i))
		if err == nil && i < len(rec.Rewards) {
			r.reward += rec.Rewards[i]
		}
		yield(r, err)
	}
}

func (t tinkerTrajectory) run(field string) (*run, error) {
	r := &run{meaning: trace.MeaningUnknown}
	for i, step := range t.Transitions {
		at := fmt.Sprintf("%stransitions[%d].", field, i)
		switch {
		case !step.Prompt.given:
			return nil, lacking(LackIDs, at+"ob", "none")
		case step.Prompt.other != "":
			return nil, lacking(LackIDs, at+"ob", "a chunk of type %q has none", step.Prompt.other)
		case step.Action.IDs == nil:
			return nil, lacking(LackIDs, at+"ac.tokens", "none")
		}
		logProbs := step.Action.Maybe
		if logProbs == nil {
			logProbs = step.Action.LogProbs
		}
		r.turns = append(r.turns, turn{context: step.Prompt.ids, output: step.Action.IDs, logProbs: logProbs, stop: finished(step.Action.Stop)})
		r.reward += step.Reward
	}
	return r, nil
}

// orNaN is NaN where there is no number.
func orNaN(x *float64) float32 {
	if x == nil {
		return float32(math.NaN())
	}
	return float32(*x)
}
