package gguf

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// vocabularyFile is a file whose metadata is the given keys.
func vocabularyFile(t *testing.T, keys map[string]any) *File {
	t.Helper()
	f := header(0, uint64(len(keys)))
	for key, value := range keys {
		f.str(key)
		switch v := value.(type) {
		case string:
			f.u32(kindString).str(v)
		case uint32:
			f.u32(kindUint32).u32(v)
		case []string:
			f.u32(kindArray).u32(kindString).u64(uint64(len(v)))
			for _, s := range v {
				f.str(s)
			}
		case []uint32:
			f.u32(kindArray).u32(kindInt32).u64(uint64(len(v)))
			for _, n := range v {
				f.u32(n)
			}
		}
	}
	g, err := New(bytes.NewReader(f.b.Bytes()), int64(f.b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func vocabularyKeys() map[string]any {
	return map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": []string{"a", "b", "ab", "<x>"},
		"tokenizer.ggml.merges": []string{"a b"}, "tokenizer.ggml.token_type": []uint32{1, 1, 1, 3},
		"tokenizer.ggml.eos_token_id": uint32(3), "tokenizer.chat_template": "{{ x }}",
	}
}

func TestVocabulary(t *testing.T) {
	eos := int32(3)
	want := &Vocabulary{PreTokenizer: "qwen2", Tokens: []string{"a", "b", "ab", "<x>"}, Types: []TokenType{1, 1, 1, 3},
		Merges: []string{"a b"}, ChatTemplate: "{{ x }}", EOS: &eos}
	got, err := vocabularyFile(t, vocabularyKeys()).Vocabulary()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	for _, c := range []struct {
		key   string
		value any // nil: without the key
		want  string
	}{
		{"tokenizer.ggml.model", "llama", `"llama", only byte-level BPE`},
		{"tokenizer.ggml.model", nil, `"tokenizer.ggml.model" is missing`},
		{"tokenizer.ggml.tokens", nil, "0 tokens"},
		{"tokenizer.ggml.merges", nil, "0 merges"},
		{"tokenizer.ggml.merges", "a b", "want a list of texts"},
		{"tokenizer.ggml.token_type", []uint32{1}, "4 tokens and 1 token types"},
		{"tokenizer.ggml.token_type", []uint32{1, 1, 1, 9}, "token 3 has the unknown type 9"},
		{"tokenizer.ggml.eos_token_id", uint32(4), "eos_token_id 4 of 4 tokens"},
		{"tokenizer.chat_template", uint32(4), "want a text"},
	} {
		keys := vocabularyKeys()
		if keys[c.key] = c.value; c.value == nil {
			delete(keys, c.key)
		}
		if _, err := vocabularyFile(t, keys).Vocabulary(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %v: error %v, want %q in it", c.key, c.value, err, c.want)
		}
	}
}

// TestSmolLM2Vocabulary holds what the published file has by llama.cpp's gguf package.
func TestSmolLM2Vocabulary(t *testing.T) {
	root := os.Getenv("MEMOPD_ASSETS")
	if root == "" {
		root = filepath.Join("..", "..", ".setup", "assets")
	}
	path := filepath.Join(root, "SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct.Q4_1.gguf")
	f, err := Open(path)
	if err != nil {
		t.Skipf("%v; scripts/assets.sh fetches it", err)
	}
	defer f.Close()
	v, err := f.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	var control []string
	for i, kind := range v.Types {
		if kind == TokenControl {
			control = append(control, v.Tokens[i])
		}
	}
	if len(v.Tokens) != 49152 || len(v.Merges) != 48900 || v.PreTokenizer != "smollm" || v.Merges[0] != "Ġ t" || v.Tokens[49151] != "ectable" {
		t.Errorf("%d tokens, %d merges, %q, %q, %q", len(v.Tokens), len(v.Merges), v.PreTokenizer, v.Merges[0], v.Tokens[49151])
	}
	if len(control) != 17 || !slices.Equal(control[:3], []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
		t.Errorf("control tokens %q", control)
	}
	if *v.BOS != 1 || *v.EOS != 2 || *v.Unknown != 0 || *v.Padding != 2 || !strings.Contains(v.ChatTemplate, "named SmolLM") {
		t.Errorf("%d %d %d %d %q", *v.BOS, *v.EOS, *v.Unknown, *v.Padding, v.ChatTemplate)
	}
}

// TestTokenizerJSON holds the parts of the file.
func TestTokenizerJSON(t *testing.T) {
	v := &Vocabulary{PreTokenizer: "smollm", Tokens: []string{"<x>", "a", "b", "ab", "<tool>", "[PAD5]"},
		Types: []TokenType{TokenControl, 1, 1, 1, TokenUserDefined, TokenUnused}, Merges: []string{"a b"}}
	const tail = `"lstrip":false,"rstrip":false,"normalized":false,"special":`
	const bytesStep = `{"add_prefix_space":false,"trim_offsets":false,"type":"ByteLevel","use_regex":`
	for pre, want := range map[string]string{
		"smollm":    `"pretokenizers":[{"individual_digits":true,"type":"Digits"},` + bytesStep + `true}]`,
		"gpt-2":     `"pretokenizers":[` + bytesStep + `true}]`,
		"qwen2":     `"normalizer":{"type":"NFC"}`,
		"llama-bpe": `|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|`,
	} {
		v.PreTokenizer = pre
		data, err := v.TokenizerJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{
			want, `"vocab":{"<tool>":4,"<x>":0,"a":1,"ab":3,"b":2}`, `"merges":["a b"]`,
			`"added_tokens":[{"id":0,"content":"<x>","single_word":false,` + tail + `true},{"id":4,"content":"<tool>","single_word":false,` + tail + `false}]`,
		} {
			if !strings.Contains(string(data), part) {
				t.Errorf("%s: %s is not in %s", pre, part, data)
			}
		}
	}
	v.PreTokenizer = "tekken"
	if _, err := v.TokenizerJSON(); err == nil || !strings.Contains(err.Error(), `"tekken" is not supported, only gpt-2, llama-bpe, qwen2, smollm`) {
		t.Errorf("tekken: %v", err)
	}
	v.PreTokenizer, v.Tokens[2] = "qwen2", "a"
	if _, err := v.TokenizerJSON(); err == nil || !strings.Contains(err.Error(), "tokens 1 and 2 are both") {
		t.Errorf("a token twice: %v", err)
	}
}
