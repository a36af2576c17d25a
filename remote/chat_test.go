package remote

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/trace"
)

func chatOptions() ChatOptions {
	o := DefaultChatOptions()
	o.Connection, o.Tokenizer, o.StopTexts = quick(), bytesTokenizer{}, []string{"</search>", "</answer>"}
	return o
}

func newChat(t *testing.T, f *fake, kind Kind, o ChatOptions) *Chat {
	t.Helper()
	c, err := NewChat(kind, f.URL+"/v1", o)
	if err != nil {
		t.Fatal(err)
	}
	f.noSleep(c.client)
	return c
}

// chatText answers as a chat server does; stop is left out for "".
func chatText(content any, finish, stop string) string {
	choice := map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": content}, "finish_reason": finish}
	switch stop {
	case "":
	case "null":
		choice["stop_reason"] = nil
	default:
		choice["stop_reason"] = stop
	}
	return toJSON(map[string]any{"choices": []any{choice}, "usage": map[string]any{"prompt_tokens": 3, "completion_tokens": 2}})
}

// lastMessage is the content of a request's last message.
func lastMessage(r request) string {
	all := r.body["messages"].([]any)
	return all[len(all)-1].(map[string]any)["content"].(string)
}

// A teacher's run is recorded as scripted, in the student's ids, with the stop tags
// that its server took off.
func TestTeacher(t *testing.T) {
	for _, layout := range Layouts {
		f := newFake(t, func(w http.ResponseWriter, r request, _ int) {
			text := script((bytesTokenizer{}).Encode(lastMessage(r)))
			text = strings.TrimSuffix(strings.TrimSuffix(text, "</search>"), "</answer>")
			io.WriteString(w, chatText(text, "stop", ""))
		})
		o := chatOptions()
		o.Layout = layout
		c := newChat(t, f, OpenAI, o)
		got, err := roll(t, c, 1)
		if err != nil {
			t.Fatal(err)
		}
		tr := got[0]
		if tr.End != trace.EndAnswered || len(tr.Calls) != 2 {
			t.Fatalf("%s: %s after %d calls: %s", layout, tr.End, len(tr.Calls), tr.Error)
		}
		if out := (bytesTokenizer{}).Decode(tr.Calls[0].Output); out != script(nil) || tr.Calls[0].LogProbs != nil || tr.Calls[0].Stop != trace.StopTag {
			t.Errorf("%s: output %q, stop %s", layout, out, tr.Calls[0].Stop)
		}
		if s := c.Stats(); s.ClosedTags != 2 || s.PromptTokens != 6 || s.OutputTokens != 4 {
			t.Errorf("%s: stats %+v", layout, s)
		}
		prompt := agentOptions().Protocol
		prefix := prompt.Prefix(tasks(1)[0].Questions)
		observation := (bytesTokenizer{}).Decode(tr.Calls[0].Observation)
		want := []any{map[string]any{"role": "user", "content": prefix + script(nil) + observation}}
		if layout == Turns {
			want = []any{
				map[string]any{"role": "user", "content": prefix},
				map[string]any{"role": "assistant", "content": script(nil)},
				map[string]any{"role": "user", "content": strings.TrimSpace(observation)},
			}
		}
		if r := f.requests[1]; r.path != "/v1/chat/completions" || toJSON(r.body["messages"]) != toJSON(want) || r.body["model"] != "student" {
			t.Errorf("%s: asked %s", layout, toJSON(r.body))
		}
	}
}

// The template's tokens around a prefix are not shown to a teacher.
func TestPromptOfATemplatedPrefix(t *testing.T) {
	o := chatOptions()
	o.Prompt = func(r *trace.Request) string { return "prompt of " + r.TaskID + "\n" }
	c := newChat(t, newFake(t, nil), OpenAI, o)
	got := c.messages(&trace.Request{TaskID: "t", Context: (bytesTokenizer{}).Encode("<|user|>x<|end|>rest"), PrefixLength: 16})
	if want := []Message{{"user", "prompt of t\nrest"}}; !slices.Equal(got, want) {
		t.Errorf("messages %q", got)
	}
}

func TestChatAnswers(t *testing.T) {
	tok := bytesTokenizer{}
	stopper := agent.NewStopper(tok, []string{"</search>", "</answer>"})
	for _, c := range []struct {
		name    string
		kind    Kind
		content any
		finish  string
		stop    string
		text    string // of the output
		why     trace.StopReason
		err     string
	}{
		{"a tag", OpenAI, "<search> a </search>", "stop", "", "<search> a </search>", trace.StopTag, ""},
		{"text behind a tag", OpenAI, "<search> a </search> and so on", "stop", "", "<search> a </search>", trace.StopTag, ""},
		{"a tag taken off", OpenAI, "<think> <answer>? </think> <search> a ", "stop", "", "<think> <answer>? </think> <search> a </search>", trace.StopTag, ""},
		{"a tag taken off, named", VLLM, "<search> a", "stop", "</search>", "<search> a</search>", trace.StopTag, ""},
		{"a tag named and there", VLLM, "<search> a</search>", "stop", "</search>", "<search> a</search>", trace.StopTag, ""},
		{"an end that is said to be no tag", OpenAI, "<search> a", "stop", "null", "<search> a", trace.StopScript, ""},
		{"an end where tags are kept", SGLang, "<search> a", "stop", "", "<search> a", trace.StopScript, ""},
		{"no tag", OpenAI, "I do not know", "stop", "", "I do not know", trace.StopScript, ""},
		{"the server's token limit", OpenAI, "<search> a", "length", "", "<search> a", trace.StopScript, ""},
		{"the student's token limit", OpenAI, strings.Repeat("a", 70), "stop", "", strings.Repeat("a", 60), trace.StopLength, ""},
		{"null", OpenAI, nil, "stop", "", "", "", "content is null"},
		{"a tool call", OpenAI, "", "tool_calls", "", "", "", "tool_calls"},
		{"nothing", OpenAI, "", "stop", "", "", "", "no ids"},
	} {
		f := newFake(t, func(w http.ResponseWriter, _ request, _ int) {
			io.WriteString(w, chatText(c.content, c.finish, c.stop))
		})
		chat := newChat(t, f, c.kind, chatOptions())
		r, err := chat.answer(t.Context(), &trace.Request{Context: []int32{'x'}, PrefixLength: 1, MaxNewTokens: 60, Seed: 1<<40 + 9, Stopped: stopper.Condition()})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v", c.name, err)
			}
			continue
		}
		if err != nil || tok.Decode(r.Output) != c.text || r.Stop != c.why || r.LogProbs != nil {
			t.Errorf("%s: %+v, %v", c.name, r, err)
			continue
		}
		if written, _ := c.content.(string); (chat.Stats().ClosedTags == 1) != (len(written) < len(c.text)) {
			t.Errorf("%s: %d tags put back", c.name, chat.Stats().ClosedTags)
		}
		body := f.requests[0].body
		if body["include_stop_str_in_output"] != map[Kind]any{VLLM: true}[c.kind] || body["no_stop_trim"] != map[Kind]any{SGLang: true}[c.kind] ||
			body["max_tokens"] != 60. || body["seed"] != 9. || body["temperature"] != .7 || body["stream"] != false {
			t.Errorf("%s: body %v", c.name, body)
		}
	}
}

// The same faults as with token ids, before a teacher's answer.
func TestTeacherFaults(t *testing.T) {
	right := func(r request) string {
		return chatText(script((bytesTokenizer{}).Encode(lastMessage(r))), "stop", "")
	}
	for name, fault := range passingFaults(right) {
		f := newFake(t, func(w http.ResponseWriter, r request, n int) {
			if n == 1 {
				fault(w, r)
				return
			}
			io.WriteString(w, right(r))
		})
		o := chatOptions()
		if name == "timeout" {
			o.TimeoutSeconds = 0.2
		}
		got, err := roll(t, newChat(t, f, OpenAI, o), 2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, tr := range got {
			if tr.End != trace.EndAnswered {
				t.Errorf("%s: %s ended %s: %s", name, tr.ID, tr.End, tr.Error)
			}
		}
	}
}

func TestChatOptionsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*ChatOptions){
		"tokenizer":   func(o *ChatOptions) { o.Tokenizer = nil },
		"layout":      func(o *ChatOptions) { o.Layout = "none" },
		"temperature": func(o *ChatOptions) { o.Temperature = -1 },
		"top-p":       func(o *ChatOptions) { o.TopP = 0 },
		"tokens":      func(o *ChatOptions) { o.MaxNewTokens = -1 },
		"requests":    func(o *ChatOptions) { o.RequestsMax = 0 },
	} {
		o := chatOptions()
		change(&o)
		if _, err := NewChat(OpenAI, "http://localhost:1", o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := NewChat("ollama", "http://localhost:1", chatOptions()); err == nil {
		t.Error("an unknown kind is taken")
	}
}

// Templates want a user's message first and turns taken from there on: whatever calls
// a context update keeps, a chat server is sent that, with nothing left out, and never
// a message alone.
func TestMessagesTakeTurns(t *testing.T) {
	o := chatOptions()
	o.Layout = Turns
	c := newChat(t, newFake(t, nil), OpenAI, o)
	tok := bytesTokenizer{}
	calls := []trace.Call{{Output: tok.Encode("y0"), Observation: tok.Encode(" o0\n")}, {Output: tok.Encode("y1"), Observation: tok.Encode(" o1")}, {Output: tok.Encode("y2"), Observation: tok.Encode("o2")}}
	const user, assistant = "user", "assistant"
	for name, want := range map[string][]Message{
		"mem1":     {{user, "p"}, {assistant, "y2"}, {user, "o2"}},
		"window:2": {{user, "p"}, {assistant, "y1"}, {user, "o1"}, {assistant, "y2"}, {user, "o2"}},
		"refresh":  {{user, "p"}, {assistant, "y0\n\ny1\n\ny2"}, {user, "o2"}},
		"full":     {{user, "p"}, {assistant, "y0"}, {user, "o0"}, {assistant, "y1"}, {user, "o1"}, {assistant, "y2"}, {user, "o2"}},
	} {
		u, err := agent.UpdateNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		ids, spans, err := agent.Assemble(tok.Encode("p"), calls, u.Retain(calls, tok))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.messages(&trace.Request{Context: ids, Spans: spans, PrefixLength: 1}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := c.messages(&trace.Request{Context: tok.Encode("p"), Spans: []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: 1}}, PrefixLength: 1}); !slices.Equal(got, []Message{{user, "p"}}) {
		t.Errorf("first call: %q", got)
	}
}

// A server's text is not read where it gives ids: of two ids that spell "hello", which
// encodes to five, both are recorded, and the text may say anything.
func TestServersTextIsNotRead(t *testing.T) {
	for kind, answer := range map[Kind]string{
		VLLM: `{"choices": [{"text": "hello", "finish_reason": "stop", "token_ids": [300, 301, 256], "prompt_token_ids": [1, 2],
			"logprobs": {"tokens": ["token_id:300", "token_id:301", "token_id:256"], "token_logprobs": [-1, -2, -3]}}]}`,
		SGLang: `{"text": "hello", "output_ids": [300, 301, 256], "prompt_token_ids": [1, 2], "meta_info": {"finish_reason": {"type": "stop", "matched": 256},
			"prompt_tokens": 2, "completion_tokens": 3, "output_token_logprobs": [[-1, 300, "he"], [-2, 301, "llo"], [-3, 256, ""]]}}`,
	} {
		p := newPolicy(t, newFake(t, func(w http.ResponseWriter, _ request, _ int) { io.WriteString(w, answer) }), kind, testOptions())
		r, err := p.answer(t.Context(), &trace.Request{Context: []int32{1, 2}, MaxNewTokens: 9})
		if err != nil || !slices.Equal(r.Output, []int32{300, 301, eos}) || !slices.Equal(r.LogProbs, []float32{-1, -2, -3}) || r.Stop != trace.StopEOS {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
	}
}
