package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// vllmRequest is the body for vLLM's /v1/completions
// (vllm/entrypoints/openai/completion/protocol.py, CompletionRequest).
type vllmRequest struct {
	Model                  string   `json:"model"`
	Prompt                 []int32  `json:"prompt"`
	MaxTokens              int      `json:"max_tokens"`
	Temperature            float64  `json:"temperature"`
	TopP                   float64  `json:"top_p"`
	TopK                   int      `json:"top_k"`
	MinP                   float64  `json:"min_p"`
	RepetitionPenalty      float64  `json:"repetition_penalty"`
	PresencePenalty        float64  `json:"presence_penalty"`
	FrequencyPenalty       float64  `json:"frequency_penalty"`
	Seed                   uint64   `json:"seed"`
	Stop                   []string `json:"stop,omitempty"`
	StopTokenIDs           []int32  `json:"stop_token_ids"`
	IncludeStopStrInOutput bool     `json:"include_stop_str_in_output"`
	SkipSpecialTokens      bool     `json:"skip_special_tokens"` // of the text that stop is looked for in
	LogProbs               int      `json:"logprobs"`
	ReturnTokenIDs         bool     `json:"return_token_ids"`
	ReturnTokensAsTokenIDs bool     `json:"return_tokens_as_token_ids"`
}

// vllmAnswer is what of the answer is read.
type vllmAnswer struct {
	Error          json.RawMessage `json:"error"`
	PromptTokenIDs []int32         `json:"prompt_token_ids"` // some versions have it here
	Choices        []struct {
		TokenIDs       []int32         `json:"token_ids"`
		PromptTokenIDs []int32         `json:"prompt_token_ids"`
		FinishReason   string          `json:"finish_reason"`
		StopReason     json.RawMessage `json:"stop_reason"` // null: an end-of-sequence id; else the id or text
		LogProbs       *struct {
			Tokens        []string   `json:"tokens"` // "token_id:N"
			TokenLogProbs []*float64 `json:"token_logprobs"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	} `json:"usage"`
}

func (p *Policy) askVLLM(ctx context.Context, r *trace.Request, tokens int) (*sampled, float64, error) {
	s := &p.options.Sampler
	body := vllmRequest{
		Model: p.server.Model, Prompt: r.Context, MaxTokens: tokens,
		Temperature: temperature(s), TopP: topP(s), TopK: topK(s), RepetitionPenalty: 1,
		Seed: r.Seed, Stop: p.options.StopTexts, StopTokenIDs: p.options.EOS, IncludeStopStrInOutput: true,
		LogProbs: 1, ReturnTokenIDs: true, ReturnTokensAsTokenIDs: true,
	}
	var answer vllmAnswer
	seconds, err := p.call(ctx, "/v1/completions", body, func(text []byte) error {
		answer = vllmAnswer{}
		if err := parse(text, &answer); err != nil {
			return err
		}
		return checkChoices(answer.Error, len(answer.Choices))
	})
	if err != nil {
		return nil, 0, err
	}
	p.stats.promptTokens.Add(answer.Usage.PromptTokens)
	p.stats.outputTokens.Add(answer.Usage.CompletionTokens)
	got, err := readVLLM(r, &answer)
	return got, seconds, err
}

func readVLLM(r *trace.Request, answer *vllmAnswer) (*sampled, error) {
	choice := &answer.Choices[0]
	ran := choice.PromptTokenIDs
	if ran == nil {
		ran = answer.PromptTokenIDs
	}
	if choice.TokenIDs == nil || ran == nil {
		return nil, fmt.Errorf("%w: its answers have no token_ids or no prompt_token_ids (vLLM has return_token_ids since 0.10.2)", ErrRefused)
	}
	if err := checkPrompt(r.Context, ran); err != nil {
		return nil, err
	}
	s := &sampled{ids: choice.TokenIDs, finish: choice.FinishReason, stoppedAt: excerpt(choice.StopReason)}
	if choice.LogProbs == nil {
		return s, nil
	}
	s.logProbs = choice.LogProbs.TokenLogProbs
	for i, name := range choice.LogProbs.Tokens {
		id, named := strings.CutPrefix(name, "token_id:")
		if named && (i >= len(s.ids) || id != fmt.Sprint(s.ids[i])) {
			return nil, fmt.Errorf("%w: log-prob %d is of %s, and token_ids are %d", ErrRefused, i, name, s.ids)
		}
	}
	return s, nil
}
