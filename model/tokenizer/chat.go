package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // "system", "user" or "assistant"
	Content string
}

// ChatTemplate is a named way of writing a conversation as one text, as the Jinja
// template of a published model does. Tools are not covered. The zero value is the
// template "none", which adds nothing to the contents.
type ChatTemplate struct{ name string }

// chatTemplate is what stands behind a name.
type chatTemplate struct {
	name  string
	write func(s *script, messages []Message, generationPrompt bool)
	// Signs of its published Jinja text: what that has, what its relatives have that
	// write otherwise, and a length (bytes) that it stays below.
	has, lacks []string
	below      int
}

var chatTemplates = []chatTemplate{
	{name: "none", write: writeNone},
	{
		name: "qwen2.5", write: writeQwen25, below: 2700,
		has: []string{"<|im_start|>", `system\n` + qwen25System + "<|im_end|>", "messages[0]['role'] == 'system'", "<tool_response>",
			"add_generation_prompt", `'<|im_start|>assistant\n'`},
		lacks: []string{"think", "vision", "boxed"},
	},
	{
		name: "qwen3", write: writeQwen3, below: 4600,
		has: []string{"<|im_start|>", "ns.last_query_index", "reasoning_content", "enable_thinking is defined and enable_thinking is false",
			"<tool_response>", "add_generation_prompt", `'<|im_start|>assistant\n'`},
		lacks: []string{"helpful", "vision", `assistant\n<think>`},
	},
	{
		name: "smollm2", write: writeSmolLM2, below: 450,
		has: []string{"<|im_start|>", smolLM2System + "<|im_end|>", "loop.first", "messages[0]['role'] != 'system'", "add_generation_prompt",
			"<|im_start|>assistant"},
		lacks: []string{"tools", "think"},
	},
	{
		name: "llama3", write: writeLlama3, below: 450,
		has: []string{"<|start_header_id|>' + message['role'] + '<|end_header_id|>", "message['content'] | trim + '<|eot_id|>'",
			"loop.index0 == 0", "bos_token + content", "<|start_header_id|>assistant<|end_header_id|>"},
		lacks: []string{"tools", "Knowledge", "{%- if"},
	},
}

// ChatTemplateNames lists the names that ChatTemplateNamed takes.
func ChatTemplateNames() []string {
	var names []string
	for _, c := range chatTemplates {
		names = append(names, c.name)
	}
	return names
}

// ChatTemplateNamed returns the template of a name.
func ChatTemplateNamed(name string) (ChatTemplate, error) {
	for _, c := range chatTemplates {
		if c.name == name {
			return ChatTemplate{name}, nil
		}
	}
	return ChatTemplate{}, fmt.Errorf("chat template %q is not known, only %s", name, strings.Join(ChatTemplateNames(), ", "))
}

// DetectChatTemplate recognises the Jinja text that a published model brings by
// signs in it, and is false for the relatives known to write otherwise than one of
// the named templates. It does not run the text, so a copy that was altered
// between the signs can pass for the published one.
func DetectChatTemplate(jinja string) (ChatTemplate, bool) {
	jinja = strings.TrimSpace(jinja)
	for _, c := range chatTemplates {
		if len(jinja) < c.below && containsAll(jinja, c.has) && !containsAny(jinja, c.lacks) {
			return ChatTemplate{c.name}, true
		}
	}
	return ChatTemplate{}, false
}

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// Name is the template's name.
func (c ChatTemplate) Name() string {
	if c.name == "" {
		return "none"
	}
	return c.name
}

// Render writes a conversation as text, for looking at: marks that stand in a
// content look as the template's own do. With generationPrompt the text ends where
// the assistant's answer begins.
func (c ChatTemplate) Render(messages []Message, generationPrompt bool) (string, error) {
	s, err := c.script(messages, generationPrompt)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range s {
		b.WriteString(p.text)
	}
	return b.String(), nil
}

// Encode writes a conversation as ids. The template's marks become special tokens,
// a content never does, whatever it says; where contents hold no special token's
// text the ids are those of the rendered text. It is an error where t lacks a mark.
func (c ChatTemplate) Encode(t *Tokenizer, messages []Message, generationPrompt bool) ([]int32, error) {
	s, err := c.script(messages, generationPrompt)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, p := range s {
		if !p.mark {
			ids = append(ids, t.plain(p.text)...)
			continue
		}
		id, ok := t.ID(p.text)
		if !ok || !t.Special(id) {
			// One that is not special could also be made of a content.
			return nil, fmt.Errorf("chat template %s: the tokenizer has no special token %s", c.Name(), p.text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// plain is Encode without what that makes of the word-level kind's special tokens:
// they are unknown words here.
func (t *Tokenizer) plain(text string) []int32 {
	ids := t.encode(text, false)
	if words, ok := t.model.(*wordLevel); ok {
		for i, id := range ids {
			if t.Special(id) {
				ids[i] = words.unkID
			}
		}
	}
	return ids
}

func (c ChatTemplate) script(messages []Message, generationPrompt bool) (script, error) {
	if len(messages) == 0 {
		return nil, errors.New("a chat without messages")
	}
	for i, m := range messages {
		switch m.Role {
		case "system", "user", "assistant":
		case "tool":
			return nil, fmt.Errorf("message %d of a chat: role \"tool\" is not supported", i+1)
		default:
			return nil, fmt.Errorf("message %d of a chat: role %q is not known, only system, user and assistant", i+1, m.Role)
		}
	}
	var s script
	for _, t := range chatTemplates {
		if t.name == c.Name() {
			t.write(&s, messages, generationPrompt)
		}
	}
	return s, nil
}

// script is a conversation as it is written: marks, and the text between them in
// one piece, since a tokenizer may join the template's text with a content.
type script []piece

type piece struct {
	text string
	mark bool
}

func (s *script) mark(token string) { *s = append(*s, piece{token, true}) }

func (s *script) text(text string) {
	if last := len(*s) - 1; last >= 0 && !(*s)[last].mark {
		(*s)[last].text += text
	} else if text != "" {
		*s = append(*s, piece{text, false})
	}
}

func writeNone(s *script, messages []Message, _ bool) {
	for _, m := range messages {
		s.text(m.Content)
	}
}

// The system messages of models that put one where there is none.
const (
	qwen25System  = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
	smolLM2System = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
)

func writeQwen25(s *script, messages []Message, generationPrompt bool) {
	writeChatML(s, messages, qwen25System, generationPrompt)
}

func writeSmolLM2(s *script, messages []Message, generationPrompt bool) {
	writeChatML(s, messages, smolLM2System, generationPrompt)
}

func writeChatML(s *script, messages []Message, system string, generationPrompt bool) {
	if messages[0].Role != "system" {
		s.turn("system", system)
	}
	for _, m := range messages {
		s.turn(m.Role, m.Content)
	}
	s.answer(generationPrompt)
}

func (s *script) turn(role, content string) {
	s.mark("<|im_start|>")
	s.text(role + "\n" + content)
	s.mark("<|im_end|>")
	s.text("\n")
}

func (s *script) answer(generationPrompt bool) {
	if generationPrompt {
		s.mark("<|im_start|>")
		s.text("assistant\n")
	}
}

// writeQwen3 drops what the assistant thought before the last question, and writes
// what it thought after that in one form. <think> is text to this template, as it
// is no special token of the published tokenizers.
func writeQwen3(s *script, messages []Message, generationPrompt bool) {
	question := len(messages) - 1
	for i, m := range messages {
		if m.Role == "user" && !(strings.HasPrefix(m.Content, "<tool_response>") && strings.HasSuffix(m.Content, "</tool_response>")) {
			question = i
		}
	}
	for i, m := range messages {
		content := m.Content
		if m.Role == "assistant" {
			var thought string
			thought, content = splitThought(content)
			if i > question && (i == len(messages)-1 || thought != "") {
				content = "<think>\n" + thought + "\n</think>\n\n" + strings.TrimLeft(content, "\n")
			}
		}
		s.turn(m.Role, content)
	}
	s.answer(generationPrompt)
}

// splitThought parts what stands within the first <think>…</think> from what stands
// behind the last.
func splitThought(content string) (thought, answer string) {
	const begin, end = "<think>", "</think>"
	thought, _, ok := strings.Cut(content, end)
	if !ok {
		return "", content
	}
	if at := strings.LastIndex(thought, begin); at >= 0 {
		thought = thought[at+len(begin):]
	}
	answer = content[strings.LastIndex(content, end)+len(end):]
	return strings.Trim(thought, "\n"), strings.TrimLeft(answer, "\n")
}

// writeLlama3 takes generationPrompt as Meta's later template does; the first one
// wrote the prompt always.
func writeLlama3(s *script, messages []Message, generationPrompt bool) {
	head := func(role string) {
		s.mark("<|start_header_id|>")
		s.text(role)
		s.mark("<|end_header_id|>")
		s.text("\n\n")
	}
	s.mark("<|begin_of_text|>")
	for _, m := range messages {
		head(m.Role)
		s.text(strings.TrimFunc(m.Content, pythonSpace))
		s.mark("<|eot_id|>")
	}
	if generationPrompt {
		head("assistant")
	}
}

// pythonSpace is Python's str.isspace, which Jinja's trim goes by.
func pythonSpace(r rune) bool { return unicode.IsSpace(r) || '\x1c' <= r && r <= '\x1f' }
