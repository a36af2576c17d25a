package gguf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// preTokenizer is what a name in tokenizer.ggml.pre stands for, in the parts of a
// tokenizer.json. The names are those of llama.cpp (llama_vocab::impl::load), the
// parts those of the published tokenizers that it names so.
type preTokenizer struct {
	normalizer   string // "" for none
	steps        []any  // before the bytes' own step
	split        bool   // whether the bytes' step splits too, by GPT-2's regex
	ignoreMerges bool   // a word that is a token is taken without merging
}

const (
	digitsOne   = `\p{N}`
	digitsThree = `\p{N}{1,3}`
)

// splitAt is the step of Qwen2 and Llama 3, which differ in how many digits stand together.
func splitAt(digits string) []any {
	regex := `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|` + digits + `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	return []any{map[string]any{"type": "Split", "pattern": map[string]string{"Regex": regex}, "behavior": "Isolated", "invert": false}}
}

var preTokenizers = map[string]preTokenizer{
	"gpt-2":     {split: true},
	"llama-bpe": {steps: splitAt(digitsThree), ignoreMerges: true},
	"qwen2":     {normalizer: "NFC", steps: splitAt(digitsOne)},
	"smollm":    {steps: []any{map[string]any{"type": "Digits", "individual_digits": true}}, split: true},
}

// byteLevel is the step that turns bytes into GPT-2's alphabet.
func byteLevel(split bool) map[string]any {
	return map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": split}
}

// TokenizerJSON is the vocabulary as a tokenizer.json of Hugging Face's
// tokenizers. Control and user-defined tokens become added tokens, the former
// special; unused ones, which pad the vocabulary, are left out. A pre-tokenizer
// that is not known is an error that lists those that are.
func (v *Vocabulary) TokenizerJSON() ([]byte, error) {
	pre, ok := preTokenizers[v.PreTokenizer]
	if !ok {
		return nil, fmt.Errorf("gguf tokenizer: tokenizer.ggml.pre %q is not supported, only %s",
			v.PreTokenizer, strings.Join(slices.Sorted(maps.Keys(preTokenizers)), ", "))
	}
	type added struct {
		ID         int    `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	}
	vocab, all := make(map[string]int, len(v.Tokens)), []added{}
	for id, token := range v.Tokens {
		kind := v.Types[id]
		if kind == TokenUnused {
			continue
		}
		if other, ok := vocab[token]; ok {
			return nil, fmt.Errorf("gguf tokenizer: tokens %d and %d are both %q", other, id, token)
		}
		vocab[token] = id
		if kind == TokenControl || kind == TokenUnknown || kind == TokenUserDefined {
			all = append(all, added{ID: id, Content: token, Special: kind != TokenUserDefined})
		}
	}
	out := map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": all, "normalizer": nil,
		"pre_tokenizer":  map[string]any{"type": "Sequence", "pretokenizers": append(slices.Clone(pre.steps), byteLevel(pre.split))},
		"post_processor": nil, "decoder": byteLevel(false),
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil, "fuse_unk": false,
			"byte_fallback": false, "ignore_merges": pre.ignoreMerges, "vocab": vocab, "merges": v.Merges,
		},
	}
	if pre.normalizer != "" {
		out["normalizer"] = map[string]string{"type": pre.normalizer}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		return nil, fmt.Errorf("gguf tokenizer: %w", err)
	}
	return b.Bytes(), nil
}
