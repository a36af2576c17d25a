package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/trace"
)

// Layout says how a call's context becomes chat messages.
type Layout string

// The layouts of chat messages.
const (
	// OneMessage puts the whole context, prompt, last response and observation, into
	// one user message, as MEM1's own client of chat servers does
	// (Mem1/inference/models.py): the teacher reads what the student will read.
	OneMessage Layout = "one-message"
	// Turns makes each retained response an assistant message and each observation
	// a user message, the form that chat models were tuned on.
	Turns Layout = "turns"
)

// Layouts are the known layouts.
var Layouts = []Layout{OneMessage, Turns}

// ChatOptions are the settings of a [Chat].
type ChatOptions struct {
	Connection

	Temperature float64 // 0: greedy
	TopP        float64 // 1: all

	// MaxNewTokens is the limit of a response in the teacher's tokens; 0: the number
	// that the request allows the student.
	MaxNewTokens int

	Layout    Layout
	Tokenizer agent.Tokenizer // the student's

	// Prompt is the text of a request's task prefix; nil: its ids decoded. It is
	// needed where the ids hold a chat template's tokens besides the text.
	Prompt func(*trace.Request) string

	// StopTexts are the protocol's stop tags, such as "</search>".
	StopTexts []string
}

// DefaultChatOptions sample at temperature 0.7. Tokenizer is still to be set.
func DefaultChatOptions() ChatOptions {
	return ChatOptions{Connection: DefaultConnection(), Temperature: 0.7, TopP: 1, Layout: OneMessage}
}

func (o *ChatOptions) validate() error {
	switch {
	case o.Tokenizer == nil:
		return errors.New("remote: a chat server gives text, and there is no tokenizer for it")
	case !slices.Contains(Layouts, o.Layout):
		return fmt.Errorf("remote: unknown layout %q (known: %v)", o.Layout, Layouts)
	case !(o.Temperature >= 0) || math.IsInf(o.Temperature, 0):
		return fmt.Errorf("remote: temperature %v", o.Temperature)
	case !(o.TopP > 0 && o.TopP <= 1):
		return fmt.Errorf("remote: top-p of %v", o.TopP)
	case o.MaxNewTokens < 0:
		return fmt.Errorf("remote: %d new tokens", o.MaxNewTokens)
	}
	return o.Connection.validate()
}

// Chat is a policy whose texts a chat server writes. They are encoded by the
// student's tokenizer and recorded as scripted: no log-probs, for the student
// did not sample them. An answer without text fails its trajectory.
type Chat struct {
	*client
	kind    Kind
	options ChatOptions
	model   string
}

var _ agent.Policy = (*Chat)(nil)

// NewChat makes a policy of a server with /v1/chat/completions at
// http://HOST:PORT (a /v1 behind it is allowed). Nothing is sent yet.
func NewChat(kind Kind, url string, o ChatOptions) (*Chat, error) {
	if kind != VLLM && kind != SGLang && kind != OpenAI {
		return nil, fmt.Errorf("remote: unknown kind of server %q (known: %s, %s, %s)", kind, VLLM, SGLang, OpenAI)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	c, err := newClient(url, o.Connection)
	if err != nil {
		return nil, err
	}
	return &Chat{client: c, kind: kind, options: o, model: o.Model}, nil
}

// Connect asks the server for its models. Generate does so by itself where no
// model was named.
func (c *Chat) Connect(ctx context.Context) (Server, error) {
	s, err := c.connect(ctx)
	if err == nil {
		c.model = s.Model
	}
	return s, err
}

// Generate implements agent.Policy.
func (c *Chat) Generate(ctx context.Context, q trace.Queue) error {
	if c.model == "" {
		if _, err := c.Connect(ctx); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
	}
	if err := c.drain(ctx, q, c.answer); err != nil {
		return fmt.Errorf("generate with %s: %w", c.shown, err)
	}
	return nil
}

// Message is one message of a chat.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// messages turns a request's context into a chat.
func (c *Chat) messages(r *trace.Request) []Message {
	tok := c.options.Tokenizer
	prompt := ""
	if c.options.Prompt != nil {
		prompt = c.options.Prompt(r)
	} else {
		prompt = tok.Decode(r.Context[:r.PrefixLength])
	}
	if c.options.Layout == OneMessage {
		return []Message{{"user", prompt + tok.Decode(r.Context[r.PrefixLength:])}}
	}
	out := []Message{{"user", prompt}}
	for _, s := range r.Spans {
		if s.Origin == trace.OriginPrefix {
			continue
		}
		role := "user"
		if s.Origin == trace.OriginRetained {
			role = "assistant"
		}
		text := strings.TrimSpace(tok.Decode(r.Context[s.Start:s.End]))
		if last := &out[len(out)-1]; last.Role == role { // some templates want them to take turns
			last.Content += "\n\n" + text
			continue
		}
		out = append(out, Message{role, text})
	}
	return out
}

// chatRequest is the body for /v1/chat/completions. The fields with omitempty are
// those of one kind of server.
type chatRequest struct {
	Model       string    `json:"model"`
	Messages    []Message `json:"messages"`
	MaxTokens   int       `json:"max_tokens"`
	Temperature float64   `json:"temperature"`
	TopP        float64   `json:"top_p"`
	Seed        uint64    `json:"seed"`
	Stop        []string  `json:"stop,omitempty"`
	Stream      bool      `json:"stream"`

	IncludeStopStrInOutput bool `json:"include_stop_str_in_output,omitempty"` // vLLM
	NoStopTrim             bool `json:"no_stop_trim,omitempty"`               // SGLang
}

// chatAnswer is what of the answer is read.
type chatAnswer struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Message struct {
			Content *string `json:"content"`
		} `json:"message"`
		FinishReason string          `json:"finish_reason"`
		StopReason   json.RawMessage `json:"stop_reason"` // vLLM: the stop text
	} `json:"choices"`
	Usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	} `json:"usage"`
}

func (c *Chat) answer(ctx context.Context, r *trace.Request) (*trace.Response, error) {
	o := &c.options
	body := chatRequest{
		Model: c.model, Messages: c.messages(r), MaxTokens: r.MaxNewTokens,
		Temperature: o.Temperature, TopP: o.TopP, Seed: shortSeed(r.Seed), Stop: o.StopTexts,
		IncludeStopStrInOutput: c.kind == VLLM, NoStopTrim: c.kind == SGLang,
	}
	if o.MaxNewTokens > 0 {
		body.MaxTokens = o.MaxNewTokens
	}
	var answer chatAnswer
	seconds, err := c.call(ctx, "/v1/chat/completions", body, func(text []byte) error {
		answer = chatAnswer{}
		if err := parse(text, &answer); err != nil {
			return err
		}
		return checkChoices(answer.Error, len(answer.Choices))
	})
	if err != nil {
		return nil, err
	}
	c.stats.promptTokens.Add(answer.Usage.PromptTokens)
	c.stats.outputTokens.Add(answer.Usage.CompletionTokens)
	text, err := c.text(&answer)
	if err != nil {
		return nil, err
	}
	response := agent.ScriptResponse(o.Tokenizer, r, text)
	if len(response.Output) == 0 {
		return nil, fmt.Errorf("the answer's text has no ids: %q", text)
	}
	response.Seconds = seconds
	return response, nil
}

// text takes the written text out of an answer, with the stop tag that ended it.
func (c *Chat) text(answer *chatAnswer) (string, error) {
	choice := &answer.Choices[0]
	content := choice.Message.Content
	if content == nil {
		return "", fmt.Errorf("the answer's content is null, finish reason %q (a server that takes the reasoning or tool calls out of the text?)", choice.FinishReason)
	}
	switch choice.FinishReason {
	case "length":
		c.stats.truncated.Add(1)
		return *content, nil
	case "stop":
	default:
		return "", fmt.Errorf("the server ended with %q", choice.FinishReason)
	}
	tag := ""
	switch {
	case choice.StopReason != nil: // the stop text, or an id or null for an end-of-sequence id
		var named string
		if json.Unmarshal(choice.StopReason, &named) == nil && slices.Contains(c.options.StopTexts, named) && !strings.HasSuffix(*content, named) {
			tag = named
		}
	case c.kind == OpenAI:
		tag = openTag(*content, c.options.StopTexts)
	}
	if tag != "" {
		c.stats.closed.Add(1)
	}
	return *content + tag, nil
}

// openTag is the stop tag that a server must have taken off the end of a text: that
// whose opening tag stands last, when none is closed. A text that ended by itself
// within a tag is closed too, for such a server does not tell the two apart.
func openTag(text string, tags []string) string {
	found, at := "", -1
	for _, tag := range tags {
		if strings.Contains(text, tag) {
			return ""
		}
		opening := strings.Replace(tag, "</", "<", 1)
		if i := strings.LastIndex(text, opening); opening != tag && i > at {
			found, at = tag, i
		}
	}
	return found
}
