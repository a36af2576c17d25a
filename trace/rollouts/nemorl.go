package rollouts

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// nemoRL is NeMo-RL's message logs, and its pairs of what the model saw and what
// the template made of it.
var nemoRL = Format{
	Name:        "nemo-rl",
	Description: "NeMo-RL message logs with token_ids and generation_logprobs; pairs of seen and rendered ids",
	detect: func(keys map[string]json.RawMessage) bool {
		return starts(keys, "message_log", '[') || starts(keys, "expected_output", '[') && has(keys, "input") ||
			has(keys, "seen_token_ids", "output_prompt_token_ids") || has(keys, "model_token_ids", "template_token_ids")
	},
	read: readNemoRL,
}

type nemoRecord struct {
	nemoLog
	Expected []nemoLog `json:"expected_output"` // of a test of conversions

	// A pair: the ids up to the end of a generation, and the next prompt as rendered.
	Seen     ids `json:"seen_token_ids"`
	Rendered ids `json:"output_prompt_token_ids"`
	Model    ids `json:"model_token_ids"`
	Template ids `json:"template_token_ids"`
}

type nemoLog struct {
	Log    []nemoMessage `json:"message_log"`
	Input  []nemoMessage `json:"input_message_log"` // what the rollout began with
	Reward float64       `json:"total_reward"`
	Task   label         `json:"idx"`
}

type nemoMessage struct {
	Role     string `json:"role"`
	IDs      ids    `json:"token_ids"`
	LogProbs floats `json:"generation_logprobs"`
}

func readNemoRL(record []byte, yield func(*run, error)) {
	var rec struct {
		Seen json.RawMessage `json:"seen_token_ids"`
		Tmpl json.RawMessage `json:"template_token_ids"`
	}
	if err := decode(record, &rec); err != nil {
		yield(nil, err)
		return
	}
	var full nemoRecord
	if rec.Seen != nil || rec.Tmpl != nil {
		var pair struct { // expected_output is a list of ids here
			Seen     ids `json:"seen_token_ids"`
			Rendered ids `json:"output_prompt_token_ids"`
			Model    ids `json:"model_token_ids"`
			Template ids `json:"template_token_ids"`
		}
		if err := decode(record, &pair); err != nil {
			yield(nil, err)
			return
		}
		if pair.Seen == nil {
			pair.Seen, pair.Rendered = pair.Model, pair.Template
		}
		yield(readPair(pair.Seen, pair.Rendered))
		return
	}
	if err := decode(record, &full); err != nil {
		yield(nil, err)
		return
	}
	if full.Log != nil {
		yield(full.nemoLog.run())
	}
	for _, log := range full.Expected {
		yield(log.run())
	}
}

// run reads a message log. Only messages with log-probs were sampled: an assistant's
// words in the prompt are none of the policy's. Where no message has any, those of
// assistants after the input are taken, which is a guess.
func (l nemoLog) run() (*run, error) {
	r := &run{task: string(l.Task), reward: l.Reward, meaning: trace.MeaningUnknown}
	scored := slices.ContainsFunc(l.Log, func(m nemoMessage) bool { return m.LogProbs != nil })
	if !scored {
		r.lacks = append(r.lacks, LackBoundaries)
	}
	var history []int32
	for i, m := range l.Log {
		if m.IDs == nil {
			return nil, lacking(LackIDs, fmt.Sprintf("message_log[%d].token_ids", i), "the history is not known from there on")
		}
		sampled := m.Role == "assistant" && (m.LogProbs != nil || !scored && i >= len(l.Input))
		switch {
		case sampled && len(m.IDs) > 0:
			r.turns = append(r.turns, turn{context: slices.Clone(history), output: m.IDs, logProbs: m.LogProbs})
		case len(r.turns) > 0:
			last := &r.turns[len(r.turns)-1]
			last.observation = append(last.observation, m.IDs...)
		}
		history = append(history, m.IDs...)
	}
	if len(r.turns) == 0 {
		return nil, lacking(LackIDs, "message_log", "none of its %d messages holds sampled ids", len(l.Log))
	}
	return r, nil
}

// readPair makes of what the model saw, and of the next prompt as a template
// rendered it, a call and a prompt without output. Both are chats whose turns begin
// with the same id; the rendered one ends where the assistant is to begin.
func readPair(seen, rendered []int32) (*run, error) {
	if len(seen) == 0 || len(rendered) == 0 || seen[0] != rendered[0] {
		return nil, malformed("", "a pair of %d and %d ids that do not begin alike", len(seen), len(rendered))
	}
	turnStart := seen[0]
	opening := rendered[lastIndex(rendered, turnStart):]
	start := -1
	for i := range seen[:len(seen)-len(opening)+1] {
		if n := i + len(opening); n < len(seen) && slices.Equal(seen[i:n], opening) {
			start = n
		}
	}
	if start < 0 {
		return nil, malformed("", "the ids that open the assistant's turn, %v, stand nowhere in what was seen", opening)
	}
	end := len(seen)
	if i := slices.Index(seen[start:], turnStart); i >= 0 {
		end = start + i - separator(seen)
	}
	if end <= start {
		return nil, malformed("", "the assistant's turn at %d is empty", start)
	}
	return &run{
		meaning: trace.MeaningUnknown, lacks: []string{LackBoundaries},
		turns: []turn{{context: seen[:start], output: seen[start:end]}, {context: rendered}},
	}, nil
}

// separator is how many ids stand between the end of a turn and the next: all but
// the first of those that stand before every turn.
func separator(chat []int32) int {
	var before [][]int32
	for i := 1; i < len(chat); i++ {
		if chat[i] == chat[0] {
			before = append(before, chat[:i])
		}
	}
	n := len(before[0])
	for _, b := range before[1:] {
		k := 0
		for k < min(n, len(b)) && b[len(b)-1-k] == before[0][len(before[0])-1-k] {
			k++
		}
		n = min(n, k)
	}
	if len(before) == 1 {
		return 0
	}
	return max(0, n-1)
}

func lastIndex(ids []int32, id int32) int {
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] == id {
			return i
		}
	}
	return -1
}
