package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// Script is a policy that writes given texts: oracle trajectories for SFT, tests,
// retrieval trials. Its outputs are the encoded texts, cut at the stop tag or the
// token limit as a sampler would. Nothing is sampled, so there are no log-probs.
type Script struct {
	tok  Tokenizer
	text func(*trace.Request) (string, error)
}

var _ Policy = (*Script)(nil)

// NewScript makes a policy that answers call k of a task with responses[task id][k].
// A call without one fails the rollout.
func NewScript(tok Tokenizer, responses map[string][]string) *Script {
	return &Script{tok: tok, text: func(r *trace.Request) (string, error) {
		texts := responses[r.TaskID]
		if r.Call >= len(texts) {
			return "", fmt.Errorf("task %q: call %d of a script of %d", r.TaskID, r.Call, len(texts))
		}
		return texts[r.Call], nil
	}}
}

// NewSearchEach makes a policy that searches for each question of its task as it
// stands, in turn, and then answers nothing: what it finds is what retrieval alone
// can find. It is for the given tasks only.
func NewSearchEach(tok Tokenizer, tasks ...Task) *Script {
	// A tag within a question would end the search in the middle.
	var pairs []string
	for _, tag := range []string{thinkOpen, thinkClose, searchOpen, searchClose, answerOpen, answerClose, infoOpen, infoClose} {
		pairs = append(pairs, tag, " ")
	}
	plain := strings.NewReplacer(pairs...)
	responses := make(map[string][]string, len(tasks))
	for _, task := range tasks {
		var texts []string
		for _, question := range task.Questions {
			texts = append(texts, fmt.Sprintf("%s %s %s %s %s",
				thinkOpen, thinkClose, searchOpen, joinFields(plain.Replace(question)), searchClose))
		}
		responses[task.ID] = append(texts, fmt.Sprintf("%s %s %s %s", thinkOpen, thinkClose, answerOpen, answerClose))
	}
	return NewScript(tok, responses)
}

// Generate implements Policy.
func (s *Script) Generate(ctx context.Context, q trace.Queue) error {
	for ctx.Err() == nil {
		r, ok := q.Next()
		if !ok {
			break
		}
		resp, err := s.respond(r)
		if err != nil {
			return fmt.Errorf("script: %w", err)
		}
		q.Done(r, resp)
	}
	return ctx.Err()
}

func (s *Script) respond(r *trace.Request) (*trace.Response, error) {
	text, err := s.text(r)
	if err != nil {
		return nil, err
	}
	resp := ScriptResponse(s.tok, r, text)
	if len(resp.Output) == 0 {
		return nil, fmt.Errorf("task %q, call %d: the text has no ids", r.TaskID, r.Call)
	}
	return resp, nil
}

// ScriptResponse answers a request with a text that was not sampled: its ids, cut
// where a sampler would have stopped, and no log-probs. Of a text without ids the
// output is empty.
func ScriptResponse(tok Tokenizer, r *trace.Request, text string) *trace.Response {
	ids := tok.Encode(text)
	for n := 1; n <= len(ids); n++ {
		if r.Stopped != nil && r.Stopped(ids[:n]) {
			return &trace.Response{Output: ids[:n], Stop: trace.StopTag}
		}
		if n == r.MaxNewTokens {
			return &trace.Response{Output: ids[:n], Stop: trace.StopLength}
		}
	}
	return &trace.Response{Output: ids, Stop: trace.StopScript}
}
