package remote

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// Kind is a kind of server.
type Kind string

// The kinds of servers. OpenAI stands for any server with the standard fields of
// /v1/chat/completions and no others, such as llama.cpp's; it gives no ids.
const (
	VLLM   Kind = "vllm"
	SGLang Kind = "sglang"
	OpenAI Kind = "openai"
)

// ErrRefused is wrapped by errors about a server that cannot be used as it is.
var ErrRefused = errors.New("server refused")

// Connection says how a server is spoken to.
type Connection struct {
	Model  string // name of the model on the server; "": the first that it lists
	APIKey string // sent as a bearer token; "": none

	RequestsMax       int     // under way at once
	TimeoutSeconds    float64 // of one attempt
	AttemptsMax       int     // of one request
	BackoffSeconds    float64 // longest pause before the second attempt; it doubles with each
	BackoffMaxSeconds float64 // longest pause before any; a longer Retry-After is cut to it
	FailuresMax       int     // requests that fail in a row before the run ends
}

// DefaultConnection suits a server on the same network.
func DefaultConnection() Connection {
	return Connection{
		RequestsMax: 32, TimeoutSeconds: 600, AttemptsMax: 5,
		BackoffSeconds: 1, BackoffMaxSeconds: 60, FailuresMax: 8,
	}
}

func (c *Connection) validate() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"requests", c.RequestsMax}, {"attempts", c.AttemptsMax}, {"failures", c.FailuresMax}} {
		if n.value < 1 {
			return fmt.Errorf("remote: %d %s, want 1 or more", n.value, n.name)
		}
	}
	for _, s := range []struct {
		name  string
		value float64
	}{{"timeout", c.TimeoutSeconds}, {"backoff", c.BackoffSeconds}, {"longest backoff", c.BackoffMaxSeconds}} {
		if !(s.value > 0) || s.value > 1e6 {
			return fmt.Errorf("remote: %s of %v seconds, want above 0 and at most a million", s.name, s.value)
		}
	}
	return nil
}

// Options are the settings of a [Policy].
type Options struct {
	Connection

	Sampler trace.Sampler // Seed is not used: each request brings its own

	// EOS are the ids that end an output. The server is told to stop at them.
	EOS []int32

	// StopTexts let the server stop early, such as the protocol's stop tags. What
	// ends an output is the request's own condition, over the ids.
	StopTexts []string

	// ContextTokens is the most that context and output may hold together; 0: what
	// the server says.
	ContextTokens int

	// ProcessedLogProbs says that a vLLM server runs with
	// --logprobs-mode processed_logprobs.
	ProcessedLogProbs bool
}

// DefaultOptions decode greedily. EOS is still to be set.
func DefaultOptions() Options {
	return Options{Connection: DefaultConnection(), Sampler: trace.Sampler{Greedy: true, Temperature: 1, TopP: 1}}
}

func (o *Options) validate() error {
	if len(o.EOS) == 0 {
		return errors.New("remote: no end-of-sequence ids: an output's end could not be told")
	}
	if o.ContextTokens < 0 {
		return fmt.Errorf("remote: %d context tokens", o.ContextTokens)
	}
	if err := checkSampler(&o.Sampler); err != nil {
		return err
	}
	return o.Connection.validate()
}

func checkSampler(s *trace.Sampler) error {
	switch {
	case !s.Greedy && (!(s.Temperature > 0) || math.IsInf(s.Temperature, 0)):
		return fmt.Errorf("remote: sampling at temperature %v", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("remote: top-k of %d", s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return fmt.Errorf("remote: top-p of %v", s.TopP)
	}
	return nil
}

// temperature is what a server is told; 0 is greedy for all of them.
func temperature(s *trace.Sampler) float64 {
	if s.Greedy {
		return 0
	}
	return s.Temperature
}

// topP is the share that a server is told, 1 for all.
func topP(s *trace.Sampler) float64 {
	if s.Greedy || s.TopP == 0 {
		return 1
	}
	return s.TopP
}

// topK is the number that a server is told, -1 for all.
func topK(s *trace.Sampler) int {
	if s.Greedy || s.TopK == 0 {
		return -1
	}
	return s.TopK
}

// baseURL is the part of a server's URL before /v1 and /generate, and how it is
// shown: without a password.
func baseURL(text string) (base, shown string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", fmt.Errorf("remote: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", fmt.Errorf("remote: %q is no server's URL: want http://HOST:PORT", u.Redacted())
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	return u.String(), u.Redacted(), nil
}
