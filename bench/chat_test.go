package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
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

// nothingFound is a searcher without documents.
type nothingFound struct{}

func (nothingFound) Search(context.Context, string, string, int) ([]agent.Document, error) {
	return nil, nil
}

// A template that drops earlier thoughts, or writes empty ones, when it renders a
// conversation anew changes no prompt: it writes the first message and the opening of
// the answer, once, and what was sampled and found goes on behind it as ids.
func TestThinkingTemplateRewritesNoHistory(t *testing.T) {
	tok, err := tokenizer.Parse(tinyBPE(t, "the search goes on and on, and the answer is the answer", 30))
	if err != nil {
		t.Fatal(err)
	}
	script := []string{
		"<think>\nOne thought.\n</think>\n\n\n<search>a</search>", // the template would trim it
		"no opening\n</think>\n<search>b</search>",                // and give this one an opening
		"<search>c</search>",                                      // and this one an empty thought
		"<answer>d</answer>",
	}
	for _, name := range []string{"qwen3", "qwen2.5", "smollm2"} {
		d := newDialect(tok, agent.MEM1())
		if err := d.wrap(name, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		o := d.agent
		o.Update = agent.FullUpdate{}
		all, err := agent.Rollout(t.Context(), agent.NewScript(tok, map[string][]string{"t": script}), nothingFound{}, o,
			agent.Task{ID: "t", Questions: []string{"who?", "where?"}})
		if err != nil || len(all[0].Calls) != len(script) {
			t.Fatalf("%s: %v, %s %s", name, err, all[0].End, all[0].Error)
		}
		prompt := tok.Decode(all[0].Prefix)
		if !strings.HasSuffix(prompt, "<|im_end|>\n<|im_start|>assistant\n") || strings.Count(prompt, "<|im_start|>assistant") != 1 {
			t.Errorf("%s: prompt %q", name, prompt)
		}
		whole := slices.Clone(all[0].Prefix)
		for k, c := range all[0].Calls {
			if !slices.Equal(c.Context, whole) || tok.Decode(c.Output) != script[k] {
				t.Errorf("%s: call %d saw %q and wrote %q", name, k, tok.Decode(c.Context), tok.Decode(c.Output))
			}
			whole = slices.Concat(whole, c.Output, c.Observation)
		}
	}
}
