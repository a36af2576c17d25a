package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/trace"
)

// answerVLLM serves the script as vLLM would.
func answerVLLM(w http.ResponseWriter, r request, _ int) {
	prompt := ids(r.body["prompt"])
	io.WriteString(w, vllmText(prompt, (bytesTokenizer{}).Encode(script(prompt)), "stop", "</search>"))
}

func answerSGLang(w http.ResponseWriter, r request, n int) {
	prompt := ids(r.body["input_ids"])
	output := (bytesTokenizer{}).Encode(script(prompt))
	listed := slices.Concat(prompt[len(prompt)-5:], output) // as sglang#10896
	io.WriteString(w, sglangText(prompt, output, listed, map[string]any{"type": "stop", "matched": "</search>"}, n == 0))
}

// A rollout through either server records what the scripted policy does, with the
// server's log-probs.
func TestRolloutThroughServers(t *testing.T) {
	want, err := agent.Rollout(t.Context(), agent.NewScript(bytesTokenizer{}, map[string][]string{
		"t0": {script(nil), script((bytesTokenizer{}).Encode("Doc 1("))},
		"t1": {script(nil), script((bytesTokenizer{}).Encode("Doc 1("))},
	}), noDocuments{}, agentOptions(), tasks(2)...)
	if err != nil {
		t.Fatal(err)
	}
	for kind, answer := range map[Kind]func(http.ResponseWriter, request, int){VLLM: answerVLLM, SGLang: answerSGLang} {
		o := testOptions()
		o.RequestsMax = 1 // SGLang's first answer is to be the one with the prompt's ids
		p := newPolicy(t, newFake(t, answer), kind, o)
		got, err := roll(t, p, 2)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		for i, tr := range got {
			if tr.End != trace.EndAnswered || len(tr.Calls) != 2 || !slices.Equal(tr.Answers, []string{"yes"}) {
				t.Fatalf("%s: %s, %d calls, %q: %s", kind, tr.End, len(tr.Calls), tr.Answers, tr.Error)
			}
			for k, c := range tr.Calls {
				w := want[i].Calls[k]
				if !slices.Equal(c.Context, w.Context) || !slices.Equal(c.Output, w.Output) || c.Stop != trace.StopTag || c.Seed != w.Seed {
					t.Errorf("%s: trajectory %d, call %d is not the script's", kind, i, k)
				}
				if len(c.LogProbs) != len(c.Output) || c.LogProbs[3] != float32(logProb(3)) || c.Seconds <= 0 {
					t.Errorf("%s: log-probs %v, %v seconds", kind, c.LogProbs, c.Seconds)
				}
			}
		}
		if s := p.Stats(); s.Requests != 4 || s.Failures != 0 || s.Retries != 0 || s.PromptTokens == 0 || s.OutputTokens == 0 {
			t.Errorf("%s: stats %+v", kind, s)
		}
	}
}

// The neutral settings are sent too: a server fills what lacks from the model's
// generation_config.json.
func TestWhatIsAsked(t *testing.T) {
	o := testOptions()
	o.Sampler, o.APIKey = trace.Sampler{Temperature: 0.5, TopP: 0.9}, "secret"
	r := &trace.Request{Context: []int32{1, 2, 3}, PrefixLength: 3, MaxNewTokens: 7, Seed: 1<<62 + 5}

	f := newFake(t, answerVLLM)
	p := newPolicy(t, f, VLLM, o)
	if _, err := p.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.answer(t.Context(), r)
	got := f.requests[0]
	if got.path != "/v1/completions" || got.key != "Bearer secret" || !slices.Equal(ids(got.body["prompt"]), r.Context) {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]any{
		"model": "student", "max_tokens": 7., "temperature": .5, "top_p": .9, "top_k": -1., "min_p": 0.,
		"repetition_penalty": 1., "presence_penalty": 0., "frequency_penalty": 0., "seed": float64(1<<62 + 5),
		"return_token_ids": true, "logprobs": 1., "include_stop_str_in_output": true, "skip_special_tokens": false,
	} {
		if got.body[name] != want {
			t.Errorf("vLLM: %s is %v, want %v", name, got.body[name], want)
		}
	}
	if toJSON(got.body["stop"]) != `["\u003c/search\u003e","\u003c/answer\u003e"]` || toJSON(got.body["stop_token_ids"]) != "[256,257]" {
		t.Errorf("stops %v, %v", got.body["stop"], got.body["stop_token_ids"])
	}

	f = newFake(t, answerSGLang)
	p = newPolicy(t, f, SGLang, o)
	for range 2 {
		p.answer(t.Context(), &trace.Request{Context: (bytesTokenizer{}).Encode("a prompt"), MaxNewTokens: 99, Seed: 1<<62 + 5})
	}
	sampling := f.requests[0].body["sampling_params"].(map[string]any)
	for name, want := range map[string]any{
		"max_new_tokens": 99., "temperature": .5, "top_p": .9, "top_k": -1., "min_p": 0., "repetition_penalty": 1.,
		"presence_penalty": 0., "frequency_penalty": 0., "sampling_seed": 5., "no_stop_trim": true, "skip_special_tokens": false,
	} {
		if sampling[name] != want {
			t.Errorf("SGLang: %s is %v, want %v", name, sampling[name], want)
		}
	}
	if a, b := f.requests[0].body["logprob_start_len"], f.requests[1].body["logprob_start_len"]; a != 0. || b != -1. {
		t.Errorf("logprob_start_len %v, then %v: the prompt is to be shown once", a, b)
	}
}

func TestLogProbs(t *testing.T) {
	sample := func(temperature float64, topK int, topP float64) trace.Sampler {
		return trace.Sampler{Temperature: temperature, TopK: topK, TopP: topP}
	}
	for _, c := range []struct {
		kind      Kind
		sampler   trace.Sampler
		processed bool
		kept      bool
	}{
		{VLLM, sample(1, 0, 1), false, true},
		{VLLM, sample(1, 0, 0), false, true}, // 0 is all, too
		{VLLM, trace.Sampler{Greedy: true, Temperature: .3, TopP: .5}, false, true},
		{VLLM, sample(.7, 0, 1), false, false},
		{VLLM, sample(1, 50, 1), false, false},
		{VLLM, sample(1, 0, .9), false, false},
		{VLLM, sample(.7, 50, .9), true, true},
		{SGLang, sample(1, 0, 1), false, true},
		{SGLang, sample(.7, 0, 1), false, true},
		{SGLang, sample(.7, 50, 1), false, false},
		{SGLang, sample(1, 0, .9), true, false},
	} {
		f := newFake(t, func(w http.ResponseWriter, r request, _ int) {
			if c.kind == VLLM {
				io.WriteString(w, vllmText(ids(r.body["prompt"]), []int32{eos}, "stop", nil))
				return
			}
			io.WriteString(w, sglangText(ids(r.body["input_ids"]), []int32{eos}, nil, map[string]any{"type": "stop", "matched": eos}, true))
		})
		o := testOptions()
		o.Sampler, o.ProcessedLogProbs = c.sampler, c.processed
		p := newPolicy(t, f, c.kind, o)
		kept, why := p.LogProbs()
		r, err := p.answer(t.Context(), &trace.Request{Context: []int32{1}, MaxNewTokens: 1})
		if err != nil {
			t.Fatal(err)
		}
		if kept != c.kept || kept != (why == "") || kept != (r.LogProbs != nil) {
			t.Errorf("%+v: kept %t (%q), the response has %v", c, kept, why, r.LogProbs)
		}
	}
}

// Where an output ends, whatever the server says, and what is no answer.
func TestEnds(t *testing.T) {
	tok := bytesTokenizer{}
	stopper := agent.NewStopper(tok, []string{"</search>", "</answer>"})
	tagged := tok.Encode("<search> a </search>")
	plain := tok.Encode("thinking")
	for _, c := range []struct {
		name   string
		output []int32
		finish string
		most   int // new tokens of the request
		limit  int // context tokens of the server, the prompt has 10
		ids    int
		stop   trace.StopReason
		err    string
	}{
		{"a tag ends the ids", tagged, "stop", 50, 0, len(tagged), trace.StopTag, ""},
		{"ids behind the tag", slices.Concat(tagged, plain), "length", 28, 0, len(tagged), trace.StopTag, ""},
		{"an eos id", append(slices.Clone(plain), eos), "stop", 50, 0, len(plain) + 1, trace.StopEOS, ""},
		{"another eos id", append(slices.Clone(plain), otherEOS), "stop", 50, 0, len(plain) + 1, trace.StopEOS, ""},
		{"an eos id that the server went on from", slices.Concat(plain, []int32{eos}, plain), "length", 17, 0, len(plain) + 1, trace.StopEOS, ""},
		{"a tag on the last id allowed", tagged, "length", len(tagged), 0, len(tagged), trace.StopTag, ""},
		{"the token limit", plain, "length", len(plain), 0, len(plain), trace.StopLength, ""},
		{"the context limit", plain, "length", 50, 10 + len(plain), len(plain), trace.StopContext, ""},
		{"no room", nil, "", 50, 10, 0, trace.StopContext, ""},
		{"an eos id that the server took off", plain, "stop", 50, 0, 0, "", "neither one of the end-of-sequence ids"},
		{"no ids", nil, "stop", 50, 0, 0, "", "gave 0 ids"},
		{"too many ids", plain, "length", 5, 0, 0, "", "gave 8 ids, 1 to 5"},
		{"an abort", plain, "abort", 50, 0, 0, "", "abort"},
		{"no reason", plain, "", 50, 0, 0, "", "ended with"},
	} {
		for _, kind := range []Kind{VLLM, SGLang} {
			f := newFake(t, func(w http.ResponseWriter, r request, _ int) {
				if kind == VLLM {
					output := c.output
					if output == nil {
						output = []int32{}
					}
					io.WriteString(w, vllmText(ids(r.body["prompt"]), output, c.finish, nil))
					return
				}
				text := sglangText(ids(r.body["input_ids"]), c.output, c.output, map[string]any{"type": c.finish, "message": "abort"}, true)
				io.WriteString(w, strings.ReplaceAll(text, `"output_token_logprobs":null`, `"output_token_logprobs":[]`))
			})
			o := testOptions()
			o.ContextTokens = c.limit
			p := newPolicy(t, f, kind, o)
			if _, err := p.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, err := p.answer(t.Context(), &trace.Request{Context: make([]int32, 10), MaxNewTokens: c.most, Stopped: stopper.Condition()})
			if c.limit > 10 && kind == VLLM && f.requests[0].body["max_tokens"] != float64(c.limit-10) {
				t.Errorf("%s: max_tokens %v, with room for %d", c.name, f.requests[0].body["max_tokens"], c.limit-10)
			}
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || errors.Is(err, ErrRefused) {
					t.Errorf("%s, %s: error %v", kind, c.name, err)
				}
				continue
			}
			if err != nil || r.Stop != c.stop || len(r.Output) != c.ids || !slices.Equal(r.Output, c.output[:c.ids]) ||
				c.ids > 0 && len(r.LogProbs) != c.ids {
				t.Errorf("%s, %s: %+v, %v", kind, c.name, r, err)
			}
		}
	}
}

// What makes a server unusable ends the run at once; nothing is asked twice.
func TestRefusals(t *testing.T) {
	write := func(text string) func(http.ResponseWriter, request, int) {
		return func(w http.ResponseWriter, _ request, _ int) { io.WriteString(w, text) }
	}
	status := func(code int) func(http.ResponseWriter, request, int) {
		return func(w http.ResponseWriter, _ request, _ int) { w.WriteHeader(code) }
	}
	stop := map[string]any{"type": "stop"}
	for _, c := range []struct {
		name   string
		kind   Kind
		answer func(http.ResponseWriter, request, int)
		says   string
	}{
		{"no ids", VLLM, write(`{"choices": [{"text": "hello", "finish_reason": "stop", "prompt_token_ids": [1]}]}`), "0.10.2"},
		{"ids null", VLLM, write(`{"choices": [{"text": "hello", "finish_reason": "stop", "token_ids": null, "prompt_token_ids": [1]}]}`), "0.10.2"},
		{"no echo", VLLM, write(`{"choices": [{"token_ids": [1], "finish_reason": "stop"}]}`), "no token_ids or no prompt_token_ids"},
		{"another prompt", VLLM, write(vllmText([]int32{1, 9}, []int32{eos}, "stop", nil)), "another prompt"},
		{"other ids than the log-probs'", VLLM, func(w http.ResponseWriter, r request, _ int) {
			text := vllmText(ids(r.body["prompt"]), []int32{eos}, "stop", nil)
			io.WriteString(w, strings.Replace(text, "token_id:256", "token_id:25", 1))
		}, "token_id:25"},
		{"nothing of the prompt", SGLang, func(w http.ResponseWriter, r request, _ int) {
			io.WriteString(w, sglangText(ids(r.body["input_ids"]), []int32{eos}, nil, stop, false))
		}, "which ids it ran is not known"},
		{"another prompt", SGLang, write(sglangText([]int32{1, 9}, []int32{eos}, nil, stop, true)), "another prompt"},
		{"another prompt in the log-probs", SGLang, write(`{"meta_info": {"finish_reason": {"type": "stop"},
			"input_token_logprobs": [[null, 1, null], [-1, 9, null]], "output_token_logprobs": [[-1, 256, null]]}}`), "another prompt"},
		{"another length of the prompt", SGLang, func(w http.ResponseWriter, r request, n int) {
			prompt := ids(r.body["input_ids"])
			if n == 0 {
				answerSGLang(w, r, n)
				return
			}
			io.WriteString(w, sglangText(prompt[1:], []int32{eos}, nil, stop, false))
		}, "prompt ids"},
		{"no log-probs", SGLang, func(w http.ResponseWriter, r request, _ int) {
			io.WriteString(w, toJSON(map[string]any{"output_ids": []int32{eos}, "prompt_token_ids": ids(r.body["input_ids"]), "meta_info": map[string]any{"finish_reason": stop}}))
		}, "output_token_logprobs"},
		{"other output_ids", SGLang, func(w http.ResponseWriter, r request, _ int) {
			io.WriteString(w, sglangText(ids(r.body["input_ids"]), []int32{7, eos}, []int32{8, eos}, stop, true))
		}, "output_ids"},
		{"no key", VLLM, status(401), "status 401"},
		{"no such path", SGLang, status(404), "status 404"},
		{"another method", VLLM, status(405), "status 405"},
	} {
		f := newFake(t, c.answer)
		o := testOptions()
		o.RequestsMax = 1
		got, err := roll(t, newPolicy(t, f, c.kind, o), 2)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.says) || errors.Is(err, context.Canceled) {
			t.Errorf("%s, %s: error %v", c.kind, c.name, err)
		}
		if f.asked() > 2 || got[0].End != trace.EndModelError && got[0].End != trace.EndAnswered {
			t.Errorf("%s, %s: %d requests, end %s", c.kind, c.name, f.asked(), got[0].End)
		}
	}
	p := newPolicy(t, newFake(t, answerVLLM), VLLM, Options{Connection: Connection{Model: "nobody", RequestsMax: 1, TimeoutSeconds: 9, AttemptsMax: 1, BackoffSeconds: 1, BackoffMaxSeconds: 1, FailuresMax: 1}, EOS: []int32{1}, Sampler: trace.Sampler{Greedy: true}})
	if _, err := roll(t, p, 1); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `"student"`) {
		t.Errorf("an unknown model: %v", err)
	}
}

// Log-probs that are not there are no zeros.
func TestFaultyLogProbs(t *testing.T) {
	for name, edit := range map[string][2]string{
		"null":           {"-0.515625", "null"},
		"minus infinity": {"-0.515625", "-9999"},
		"too few":        {"-0.515625,", ""},
	} {
		f := newFake(t, func(w http.ResponseWriter, r request, _ int) {
			text := vllmText(ids(r.body["prompt"]), []int32{1, 2, eos}, "stop", nil)
			if !strings.Contains(text, edit[0]) {
				t.Fatal(text)
			}
			io.WriteString(w, strings.Replace(text, edit[0], edit[1], 1))
		})
		p := newPolicy(t, f, VLLM, testOptions())
		if r, err := p.answer(t.Context(), &trace.Request{Context: []int32{1}, MaxNewTokens: 5}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"eos":           func(o *Options) { o.EOS = nil },
		"context":       func(o *Options) { o.ContextTokens = -1 },
		"temperature 0": func(o *Options) { o.Sampler = trace.Sampler{TopP: 1} },
		"top-k":         func(o *Options) { o.Sampler.TopK = -1 },
		"top-p":         func(o *Options) { o.Sampler.TopP = 1.5 },
		"requests":      func(o *Options) { o.RequestsMax = 0 },
		"attempts":      func(o *Options) { o.AttemptsMax = 0 },
		"failures":      func(o *Options) { o.FailuresMax = 0 },
		"timeout":       func(o *Options) { o.TimeoutSeconds = 0 },
		"backoff":       func(o *Options) { o.BackoffMaxSeconds = -1 },
	} {
		o := testOptions()
		change(&o)
		if _, err := New(VLLM, "http://localhost:1", o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(OpenAI, "http://localhost:1", testOptions()); err == nil {
		t.Error("a chat server gives no ids")
	}
	for text, want := range map[string]string{
		"http://h:8000": "http://h:8000", "http://h:8000/": "http://h:8000", "http://h:8000/v1": "http://h:8000",
		"https://h/api/v1/": "https://h/api", "h:8000": "", "ftp://h": "", "http://": "", "http://h?x=1": "", "": "", "http://h\n": "",
	} {
		if got, _, err := baseURL(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// A server that lists no model is refused in so many words.
func TestServerWithoutModels(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"data": []}`)
	}))
	defer s.Close()
	p, err := New(VLLM, s.URL, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Connect(t.Context()); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "it lists no model") {
		t.Errorf("error %v", err)
	}
}
