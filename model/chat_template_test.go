package model

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The places where published models keep their chat template.
func TestChatTemplate(t *testing.T) {
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
		"a file":          {map[string]string{ChatTemplateFile: "f", "tokenizer_config.json": `{"chat_template": "c"}`}, "f", ""},
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
		got, err := ChatTemplate(dir)
		if got != c.want && c.wantErr == "" || (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %q, %v; want %q, error %q", name, got, err, c.want, c.wantErr)
		}
	}
}
