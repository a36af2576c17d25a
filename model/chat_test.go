package model

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/model/tokenizer"
)

// TestSmolLM2Chat recognises the template of the published GGUF file and encodes
// with its tokenizer as transformers does (scripts/peers/chat_vectors.py).
func TestSmolLM2Chat(t *testing.T) {
	path := asset(t, smolLM2)
	d, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	chat, ok := tokenizer.DetectChatTemplate(d.Template)
	if !ok || chat.Name() != "smollm2" {
		t.Fatalf("recognised as %v %v: %s", chat, ok, d.Template)
	}
	tok, err := LoadTokenizer(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join("tokenizer", "testdata", "chat.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Template         string
		GenerationPrompt bool `json:"generation_prompt"`
		Messages         []tokenizer.Message
		Text             string
		IDs              []int32
	}
	if err := json.NewDecoder(z).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, c := range cases {
		if c.Template != chat.Name() || c.IDs == nil {
			continue
		}
		count++
		got, err := chat.Encode(tok, c.Messages, c.GenerationPrompt)
		if err != nil || !slices.Equal(got, c.IDs) {
			t.Errorf("%q:\ngot  %v, %v\nwant %v", c.Text, got, err, c.IDs)
		}
	}
	if count < 40 {
		t.Errorf("%d conversations", count)
	}
}
