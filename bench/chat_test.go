package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/model/tokenizer"
)

// The places where published models keep their chat template.
func TestChatTemplateOf(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		want    string
		wantErr string
	}{
		"none":            {map[string]string{"tokenizer_config.json": `{"eos_token": "x"}`}, "", ""},
		"null":            {map[string]string{"tokenizer_config.json": `{"chat_template": null}`}, "", ""},
		"nothing at all":  {nil, "", ""},
		"a text":          {map[string]string{"tokenizer_config.json": `{"chat_template": "{{ a }}"}`}, "{{ a }}", ""},
		"several":         {map[string]string{"tokenizer_config.json": `{"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}`}, "d", ""},
		"a file":          {map[string]string{chatTemplateFile: "f", "tokenizer_config.json": `{"chat_template": "c"}`}, "f", ""},
		"another type":    {map[string]string{"tokenizer_config.json": `{"chat_template": 3}`}, "", "neither a text nor a list"},
		"not JSON":        {map[string]string{"tokenizer_config.json": `{`}, "", "tokenizer_config.json"},
		"two GGUF files":  {map[string]string{"a.gguf": "x", "b.gguf": "y"}, "", ""},
		"not a GGUF file": {map[string]string{"a.gguf": "x"}, "", "a.gguf"},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := chatTemplateOf(dir)
		if got != c.want && c.wantErr == "" || (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %q, %v; want %q, error %q", name, got, err, c.want, c.wantErr)
		}
	}
	if dir := filepath.Join(os.Getenv("MEMOPD_ASSETS"), smallModel); os.Getenv("MEMOPD_ASSETS") != "" {
		if got, err := chatTemplateOf(dir); err != nil || !strings.Contains(got, "<|im_start|>") {
			t.Errorf("%s: %q, %v", dir, got, err)
		}
	}
}

// Templates are told by their text; what they wrap is the prompt alone, and text
// that spells a mark stays text.
func TestWrap(t *testing.T) {
	tok, err := tokenizer.NewWordLevel(strings.Fields("<unk> <|im_start|> <|im_end|> system user assistant You are a helpful AI named SmolLM, trained by Hugging Face b"), "<unk>", "<|im_start|>", "<|im_end|>")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := tokenizer.NewWordLevel([]string{"<unk>", "a"}, "<unk>")
	if err != nil {
		t.Fatal(err)
	}
	const smol = `{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant' }}{% endif %}`
	const wrapped = "<|im_start|> system You are a helpful AI assistant named SmolLM, trained by Hugging Face <|im_end|> <|im_start|> user a b <|im_end|> <|im_start|> assistant"
	for _, c := range []struct {
		name, template string
		tok            *tokenizer.Tokenizer
		want           string // of the prompt "a b"; "": not wrapped
		wantErr        string
	}{
		{"auto", smol, tok, wrapped, ""},
		{"smollm2", smol, tok, wrapped, ""},
		{"qwen3", "", tok, "<|im_start|> user a b <|im_end|> <|im_start|> assistant", ""},
		{"none", smol, tok, "", ""},
		{"auto", "", tok, "", ""},
		{"auto", "[INST]", tok, "", "not among the known ones"},
		{"qwen2.5", "", plain, "", "<|im_start|>"},
		{"chatty", smol, tok, "", "known: auto, none, qwen2.5"},
	} {
		dir := t.TempDir()
		if c.template != "" {
			if err := os.WriteFile(filepath.Join(dir, chatTemplateFile), []byte(c.template), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d := newDialect(c.tok, agent.MEM1())
		err := d.wrap(c.name, dir)
		if (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s of %q: %v, want %q", c.name, c.template, err, c.wantErr)
		}
		got := ""
		if d.agent.EncodePrefix != nil {
			got = c.tok.Decode(d.agent.EncodePrefix("a b"))
		}
		if got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.name, c.template, got, c.want)
		}
		if kept := d.chatTemplate != ""; kept != (c.template != "" && c.want != "") {
			t.Errorf("%s of %q: template kept: %v", c.name, c.template, kept)
		}
	}
}
