package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/trace"
)

// Policy samples with a model behind vLLM or SGLang, by token ids alone. See the
// package on log-probs and on what ends a run.
type Policy struct {
	*client
	kind     Kind
	options  Options
	server   Server
	verified atomic.Bool // the server has shown once which ids of a prompt it ran
}

var _ agent.Policy = (*Policy)(nil)

// New makes a policy of a server at http://HOST:PORT (a /v1 behind it is
// allowed). Nothing is sent yet.
func New(kind Kind, url string, o Options) (*Policy, error) {
	if kind != VLLM && kind != SGLang {
		return nil, fmt.Errorf("remote: a server of kind %q gives no token ids (known to: %s, %s)", kind, VLLM, SGLang)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	c, err := newClient(url, o.Connection)
	if err != nil {
		return nil, err
	}
	o.EOS, o.StopTexts = slices.Clone(o.EOS), slices.Clone(o.StopTexts)
	return &Policy{client: c, kind: kind, options: o}, nil
}

// Connect asks the server for its model and limit. Generate does so by itself if
// it was not done.
func (p *Policy) Connect(ctx context.Context) (Server, error) {
	s, err := p.connect(ctx)
	if err != nil {
		return s, err
	}
	if own := p.options.ContextTokens; own > 0 && (s.ContextTokens == 0 || own < s.ContextTokens) {
		s.ContextTokens = own
	}
	p.server = s
	return s, nil
}

// LogProbs says whether responses have log-probs, and if not, why.
func (p *Policy) LogProbs() (kept bool, why string) {
	s := &p.options.Sampler
	truncated := s.TopK > 0 || topP(s) < 1
	switch {
	case s.Greedy, s.Temperature == 1 && !truncated:
		return true, ""
	case p.kind == VLLM && p.options.ProcessedLogProbs:
		return true, ""
	case p.kind == VLLM:
		return false, fmt.Sprintf("vLLM gives log-probs of the raw logits, and this samples at temperature %g, top-k %d, top-p %g; "+
			"run it with --logprobs-mode processed_logprobs and say so", s.Temperature, s.TopK, topP(s))
	case truncated:
		return false, fmt.Sprintf("SGLang gives log-probs before top-k and top-p, and this samples with top-k %d, top-p %g", s.TopK, topP(s))
	}
	return true, ""
}

// Generate implements agent.Policy. Response.Seconds is the time that the server
// took for the answer, with whatever else it was doing.
func (p *Policy) Generate(ctx context.Context, q trace.Queue) error {
	if p.server.Model == "" {
		if _, err := p.Connect(ctx); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
	}
	if err := p.drain(ctx, q, p.answer); err != nil {
		return fmt.Errorf("generate with %s %s: %w", p.kind, p.shown, err)
	}
	return nil
}

// sampled is what a server says that it sampled.
type sampled struct {
	ids       []int32
	logProbs  []*float64 // one an id
	finish    string     // "stop", "length" or another
	stoppedAt string     // what it says it stopped at, for messages
}

// answer asks the server for one response.
func (p *Policy) answer(ctx context.Context, r *trace.Request) (*trace.Response, error) {
	if len(r.Context) == 0 || r.MaxNewTokens < 1 {
		return nil, fmt.Errorf("a request with %d context ids for %d new tokens", len(r.Context), r.MaxNewTokens)
	}
	tokens := r.MaxNewTokens
	if most := p.server.ContextTokens; most > 0 {
		if len(r.Context) >= most {
			return &trace.Response{Stop: trace.StopContext}, nil
		}
		tokens = min(tokens, most-len(r.Context))
	}
	ask := p.askVLLM
	if p.kind == SGLang {
		ask = p.askSGLang
	}
	s, seconds, err := ask(ctx, r, tokens)
	if err != nil {
		return nil, err
	}
	if s.finish == "length" {
		p.stats.truncated.Add(1)
	}
	response, err := p.finish(r, s, tokens)
	if err != nil {
		return nil, err
	}
	response.Seconds = seconds
	return response, nil
}

// finish cuts what was sampled where it ends by the request's condition or at an
// end-of-sequence id, whichever the server stopped at.
func (p *Policy) finish(r *trace.Request, s *sampled, tokens int) (*trace.Response, error) {
	if len(s.ids) == 0 || len(s.ids) > tokens {
		return nil, fmt.Errorf("the server gave %d ids, 1 to %d were asked for", len(s.ids), tokens)
	}
	n, stop := p.end(r, s.ids)
	switch {
	case stop != "":
	case s.finish == "length" && len(s.ids) == r.MaxNewTokens:
		stop = trace.StopLength
	case s.finish == "length":
		stop = trace.StopContext
	case s.finish == "stop":
		return nil, fmt.Errorf("the server stopped (at %s), and the ids end with %d: neither one of the end-of-sequence ids %d nor a stop tag "+
			"(does the server run with the same tokenizer?)", s.stoppedAt, s.ids[n-1], p.options.EOS)
	default:
		return nil, fmt.Errorf("the server ended with %q", s.finish)
	}
	response := &trace.Response{Output: s.ids[:n], Stop: stop}
	if kept, _ := p.LogProbs(); !kept {
		return response, nil
	}
	if len(s.logProbs) != len(s.ids) {
		return nil, fmt.Errorf("the server gave %d ids and %d log-probs", len(s.ids), len(s.logProbs))
	}
	for i, l := range s.logProbs[:n] {
		if l == nil || *l <= leastLogProb {
			return nil, fmt.Errorf("the server gave no log-prob of output id %d", i)
		}
		response.LogProbs = append(response.LogProbs, float32(*l))
	}
	return response, nil
}

// leastLogProb is what vLLM writes where the log-prob is minus infinity.
const leastLogProb = -9999

// end finds how many ids an output has and why it ends there; "" if it goes on.
// As in the sampler of package model, an end-of-sequence id goes before a tag.
func (p *Policy) end(r *trace.Request, ids []int32) (int, trace.StopReason) {
	for i, id := range ids {
		tag := r.Stopped != nil && r.Stopped(ids[:i+1])
		if slices.Contains(p.options.EOS, id) {
			return i + 1, trace.StopEOS
		}
		if tag {
			return i + 1, trace.StopTag
		}
	}
	return len(ids), ""
}

// checkPrompt refuses a server that ran another prompt than it was sent.
func checkPrompt(sent, ran []int32) error {
	if slices.Equal(sent, ran) {
		return nil
	}
	at := 0
	for at < min(len(sent), len(ran)) && sent[at] == ran[at] {
		at++
	}
	return fmt.Errorf("%w: it ran another prompt than it was sent: %d ids for %d, different from id %d on", ErrRefused, len(ran), len(sent), at)
}

// serverSaid makes an error of an answer's error field.
func serverSaid(field []byte) error {
	if text := excerpt(field); text != "nothing" && text != "null" {
		return errors.New("the server answered with an error: " + text)
	}
	return nil
}

// checkChoices is serverSaid, and that there is a choice; a server without one may
// have one the next time.
func checkChoices(failed []byte, choices int) error {
	if err := serverSaid(failed); err != nil {
		return err
	}
	if choices == 0 {
		return passing{error: errors.New("the answer has no choices")}
	}
	return nil
}
