package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/memopd/memopd-bench/trace"
)

// sglangRequest is the body for SGLang's /generate
// (python/sglang/srt/managers/io_struct.py, GenerateReqInput).
type sglangRequest struct {
	InputIDs             []int32        `json:"input_ids"`
	SamplingParams       sglangSampling `json:"sampling_params"`
	ReturnLogProb        bool           `json:"return_logprob"`
	LogProbStartLen      int            `json:"logprob_start_len"` // 0: of the prompt too, -1: of the output
	ReturnPromptTokenIDs bool           `json:"return_prompt_token_ids"`
	Stream               bool           `json:"stream"`
}

// sglangSampling are the sampling parameters
// (python/sglang/srt/sampling/sampling_params.py, SamplingParams).
type sglangSampling struct {
	MaxNewTokens      int      `json:"max_new_tokens"`
	Temperature       float64  `json:"temperature"`
	TopP              float64  `json:"top_p"`
	TopK              int      `json:"top_k"`
	MinP              float64  `json:"min_p"`
	RepetitionPenalty float64  `json:"repetition_penalty"`
	PresencePenalty   float64  `json:"presence_penalty"`
	FrequencyPenalty  float64  `json:"frequency_penalty"`
	Stop              []string `json:"stop,omitempty"`
	StopTokenIDs      []int32  `json:"stop_token_ids"`
	NoStopTrim        bool     `json:"no_stop_trim"`
	SkipSpecialTokens bool     `json:"skip_special_tokens"` // of the text that stop is looked for in
	SamplingSeed      uint64   `json:"sampling_seed"`
}

// tokenLogProb is a row [log-prob, id, text]; the log-prob of a prompt's first id
// is null.
type tokenLogProb struct {
	logProb *float64
	id      int32
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *tokenLogProb) UnmarshalJSON(data []byte) error {
	var row []json.RawMessage
	if err := json.Unmarshal(data, &row); err != nil {
		return err
	}
	if len(row) < 2 {
		return fmt.Errorf("a log-prob is %s, not [log-prob, id, text]", excerpt(data))
	}
	return errors.Join(json.Unmarshal(row[0], &t.logProb), json.Unmarshal(row[1], &t.id))
}

// sglangAnswer is what of the answer is read.
type sglangAnswer struct {
	Error          json.RawMessage `json:"error"`
	OutputIDs      []int32         `json:"output_ids"`
	PromptTokenIDs []int32         `json:"prompt_token_ids"`
	MetaInfo       *struct {
		PromptTokens     int64   `json:"prompt_tokens"`
		CompletionTokens int64   `json:"completion_tokens"`
		PromptTokenIDs   []int32 `json:"prompt_token_ids"`
		FinishReason     *struct {
			Type    string          `json:"type"`    // "stop", "length", "abort"
			Matched json.RawMessage `json:"matched"` // an id or a text
			Message string          `json:"message"`
		} `json:"finish_reason"`
		InputTokenLogProbs  []tokenLogProb `json:"input_token_logprobs"`
		OutputTokenLogProbs []tokenLogProb `json:"output_token_logprobs"`
	} `json:"meta_info"`
}

func (p *Policy) askSGLang(ctx context.Context, r *trace.Request, tokens int) (*sampled, float64, error) {
	s := &p.options.Sampler
	body := sglangRequest{
		InputIDs: r.Context, ReturnLogProb: true, LogProbStartLen: -1, ReturnPromptTokenIDs: true,
		SamplingParams: sglangSampling{
			MaxNewTokens: tokens, Temperature: temperature(s), TopP: topP(s), TopK: topK(s), RepetitionPenalty: 1,
			Stop: p.options.StopTexts, StopTokenIDs: p.options.EOS, NoStopTrim: true, SamplingSeed: shortSeed(r.Seed),
		},
	}
	if !p.verified.Load() {
		body.LogProbStartLen = 0 // the prompt's log-probs name its ids; not always, for it runs the whole prompt again
	}
	var answer sglangAnswer
	seconds, err := p.call(ctx, "/generate", body, func(text []byte) error {
		answer = sglangAnswer{}
		if err := parse(text, &answer); err != nil {
			return err
		}
		if err := serverSaid(answer.Error); err != nil {
			return err
		}
		if answer.MetaInfo == nil || answer.MetaInfo.FinishReason == nil {
			return passing{error: errors.New("the answer has no meta_info.finish_reason")}
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	p.stats.promptTokens.Add(answer.MetaInfo.PromptTokens)
	p.stats.outputTokens.Add(answer.MetaInfo.CompletionTokens)
	if err := p.checkSGLangPrompt(r, &answer); err != nil {
		return nil, 0, err
	}
	got, err := readSGLang(&answer)
	return got, seconds, err
}

// checkSGLangPrompt compares the prompt that was run with the one that was sent, by
// its ids or, once those have been seen to agree, by their number.
func (p *Policy) checkSGLangPrompt(r *trace.Request, answer *sglangAnswer) error {
	m := answer.MetaInfo
	ran := answer.PromptTokenIDs
	if ran == nil {
		ran = m.PromptTokenIDs
	}
	if ran == nil && len(m.InputTokenLogProbs) > 0 {
		for _, row := range m.InputTokenLogProbs {
			ran = append(ran, row.id)
		}
	}
	if ran != nil {
		if err := checkPrompt(r.Context, ran); err != nil {
			return err
		}
		p.verified.Store(true)
		return nil
	}
	if !p.verified.Load() {
		return fmt.Errorf("%w: it shows neither prompt_token_ids nor log-probs of the prompt, so which ids it ran is not known", ErrRefused)
	}
	if m.PromptTokens != int64(len(r.Context)) {
		return fmt.Errorf("%w: it ran %d prompt ids, %d were sent", ErrRefused, m.PromptTokens, len(r.Context))
	}
	return nil
}

func readSGLang(answer *sglangAnswer) (*sampled, error) {
	m := answer.MetaInfo
	if m.OutputTokenLogProbs == nil {
		return nil, fmt.Errorf("%w: its answers have no output_token_logprobs, which name the sampled ids", ErrRefused)
	}
	s := &sampled{finish: m.FinishReason.Type, stoppedAt: excerpt(m.FinishReason.Matched)}
	if s.finish == "abort" {
		return nil, fmt.Errorf("the server aborted: %s", m.FinishReason.Message)
	}
	for _, row := range m.OutputTokenLogProbs {
		s.ids, s.logProbs = append(s.ids, row.id), append(s.logProbs, row.logProb)
	}
	// Ids of the prompt may stand before the output's, see the package; a stop id may lack.
	listed := answer.OutputIDs
	listed = listed[max(0, len(listed)-len(s.ids)):]
	if !slices.Equal(listed, s.ids[:len(listed)]) {
		return nil, fmt.Errorf("%w: output_ids are %d, and log-probs are of %d", ErrRefused, answer.OutputIDs, s.ids)
	}
	return s, nil
}

// shortSeed fits where a seed is 32 bits or signed.
func shortSeed(seed uint64) uint64 { return seed & (1<<31 - 1) }
