package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/trace"
)

// bytesTokenizer has an id a byte, and two more that decode to nothing.
type bytesTokenizer struct{}

const (
	eos      = 256
	otherEOS = 257
)

func (bytesTokenizer) Encode(text string) []int32 {
	out := make([]int32, len(text))
	for i, b := range []byte(text) {
		out[i] = int32(b)
	}
	return out
}

func (bytesTokenizer) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if id < 256 {
			b.WriteByte(byte(id))
		}
	}
	return b.String()
}

// noDocuments is a searcher that finds one document.
type noDocuments struct{}

func (noDocuments) Search(_ context.Context, _, query string, _ int) ([]agent.Document, error) {
	return []agent.Document{{ID: "d", Title: query, Text: "it is so"}}, nil
}

// request is what a fake server was asked.
type request struct {
	path, key string
	body      map[string]any
	gone      <-chan struct{} // closed once the client does not wait any more
}

// fake is a server whose answers a test writes.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	pauses   []time.Duration // that the client took
}

// newFake starts a server. answer gets each request but those for the models, and
// its number.
func newFake(t *testing.T, answer func(w http.ResponseWriter, r request, n int)) *fake {
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/models" {
			io.WriteString(w, `{"object": "list", "data": [{"id": "student", "max_model_len": 100000}, {"id": "other"}]}`)
			return
		}
		got := request{path: r.URL.Path, key: r.Header.Get("Authorization"), gone: r.Context().Done()}
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away
		}
		if err := json.Unmarshal(data, &got.body); err != nil {
			t.Errorf("body %s: %v", data, err)
		}
		f.mu.Lock()
		n := len(f.requests)
		f.requests = append(f.requests, got)
		f.mu.Unlock()
		answer(w, got, n)
	}))
	t.Cleanup(f.Close)
	return f
}

// asked is how many requests came, which may still come in.
func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

// noSleep makes the client's pauses none, and notes them.
func (f *fake) noSleep(c *client) {
	c.sleep = func(ctx context.Context, d time.Duration) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.pauses = append(f.pauses, d)
		return ctx.Err()
	}
}

// ids reads a list of ids out of a request's body.
func ids(body any) []int32 {
	var out []int32
	for _, x := range body.([]any) {
		out = append(out, int32(x.(float64)))
	}
	return out
}

// script is what the fake model writes: its call is told by the text of its prompt.
func script(prompt []int32) string {
	if strings.Contains((bytesTokenizer{}).Decode(prompt), "Doc 1(") {
		return "<think> now I know </think> <answer> yes </answer>"
	}
	return "<think> I look </think> <search> it </search>"
}

func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// logProb is the log-prob that the fake servers give of output id i.
func logProb(i int) float64 { return -0.5 - float64(i)/64 }

// vllmText answers as vLLM does.
func vllmText(prompt, output []int32, finish string, stop any) string {
	var names []string
	var logProbs []float64
	for i, id := range output {
		names, logProbs = append(names, fmt.Sprintf("token_id:%d", id)), append(logProbs, logProb(i))
	}
	return toJSON(map[string]any{
		"object": "text_completion",
		"choices": []any{map[string]any{
			"index": 0, "text": "", "finish_reason": finish, "stop_reason": stop,
			"token_ids": output, "prompt_token_ids": prompt,
			"logprobs": map[string]any{"tokens": names, "token_logprobs": logProbs},
		}},
		"usage": map[string]any{"prompt_tokens": len(prompt), "completion_tokens": len(output)},
	})
}

// sglangText answers as SGLang does; echo lists the prompt's ids.
func sglangText(prompt, output, outputIDs []int32, finish any, echo bool) string {
	var rows []any
	for i, id := range output {
		rows = append(rows, []any{logProb(i), id, nil})
	}
	answer := map[string]any{
		"text": "", "output_ids": outputIDs,
		"meta_info": map[string]any{
			"finish_reason": finish, "prompt_tokens": len(prompt), "completion_tokens": len(output),
			"output_token_logprobs": rows,
		},
	}
	if echo {
		answer["prompt_token_ids"] = prompt
	}
	return toJSON(answer)
}

// quick is a connection that gives up soon.
func quick() Connection {
	c := DefaultConnection()
	c.TimeoutSeconds, c.AttemptsMax, c.RequestsMax, c.FailuresMax = 20, 3, 4, 3
	return c
}

func testOptions() Options {
	o := DefaultOptions()
	o.Connection, o.EOS, o.StopTexts = quick(), []int32{eos, otherEOS}, []string{"</search>", "</answer>"}
	return o
}

func newPolicy(t *testing.T, f *fake, kind Kind, o Options) *Policy {
	t.Helper()
	p, err := New(kind, f.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	f.noSleep(p.client)
	return p
}

// tasks are n tasks of one question.
func tasks(n int) []agent.Task {
	var out []agent.Task
	for i := range n {
		out = append(out, agent.Task{ID: fmt.Sprintf("t%d", i), Questions: []string{fmt.Sprintf("is %d so?", i)}})
	}
	return out
}

func agentOptions() agent.Options {
	p := agent.MEM1()
	p.NewTokens = 80
	return agent.Options{Protocol: p, Tokenizer: bytesTokenizer{}, Sampler: trace.Sampler{Greedy: true, TopP: 1, Seed: 3}}
}

// roll runs tasks and validates the records.
func roll(t *testing.T, p agent.Policy, n int) ([]*trace.Trajectory, error) {
	t.Helper()
	out, err := agent.Rollout(t.Context(), p, noDocuments{}, agentOptions(), tasks(n)...)
	for _, tr := range out {
		if err := tr.Validate(); err != nil {
			t.Error(err)
		}
	}
	return out, err
}
