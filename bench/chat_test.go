package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/model/tokenizer"
)

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
			if err := os.WriteFile(filepath.Join(dir, model.ChatTemplateFile), []byte(c.template), 0o644); err != nil {
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
