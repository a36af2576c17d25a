package gguf

import (
	"fmt"
	"math"
)

// TokenType is what kind of token a vocabulary's entry is, numbered as llama.cpp's.
type TokenType int64

// The kinds of tokens.
const (
	TokenNormal      TokenType = 1
	TokenUnknown     TokenType = 2
	TokenControl     TokenType = 3 // special: no text makes it
	TokenUserDefined TokenType = 4 // found in text as a whole, before the merges
	TokenUnused      TokenType = 5
	TokenByte        TokenType = 6
)

// Vocabulary is a file's byte-level BPE tokenizer, as the metadata gives it.
// Tokens are in the byte-level alphabet of GPT-2, added ones in plain text.
type Vocabulary struct {
	PreTokenizer string   // tokenizer.ggml.pre: "smollm", "qwen2", "llama-bpe", ...
	Tokens       []string // by id
	Types        []TokenType
	Merges       []string // "left right", best first
	ChatTemplate string   // Jinja; "" without one

	BOS, EOS, Unknown, Padding *int32
}

// Vocabulary reads the tokenizer. One that is not BPE, such as SentencePiece's
// "llama", is an error that names it.
func (f *File) Vocabulary() (*Vocabulary, error) {
	v, err := f.vocabulary()
	if err != nil {
		return nil, fmt.Errorf("gguf tokenizer: %w", err)
	}
	return v, nil
}

func (f *File) vocabulary() (*Vocabulary, error) {
	const prefix = "tokenizer.ggml."
	kind, ok, err := f.String(prefix + "model")
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("metadata %q is missing", prefix+"model")
	case kind != "gpt2":
		return nil, fmt.Errorf("metadata %q is %q, only byte-level BPE, \"gpt2\", is supported", prefix+"model", kind)
	}
	v := &Vocabulary{}
	if v.PreTokenizer, _, err = f.String(prefix + "pre"); err != nil {
		return nil, err
	}
	if v.ChatTemplate, _, err = f.String("tokenizer.chat_template"); err != nil {
		return nil, err
	}
	if v.Tokens, _, err = f.Strings(prefix + "tokens"); err != nil {
		return nil, err
	}
	if v.Merges, _, err = f.Strings(prefix + "merges"); err != nil {
		return nil, err
	}
	if len(v.Tokens) == 0 || len(v.Tokens) > math.MaxInt32 || len(v.Merges) == 0 {
		return nil, fmt.Errorf("%d tokens and %d merges", len(v.Tokens), len(v.Merges))
	}
	types, ok, err := f.Ints(prefix + "token_type")
	if err != nil {
		return nil, err
	}
	if ok && len(types) != len(v.Tokens) {
		return nil, fmt.Errorf("%d tokens and %d token types", len(v.Tokens), len(types))
	}
	v.Types = make([]TokenType, len(v.Tokens))
	for i := range v.Types {
		if v.Types[i] = TokenNormal; ok {
			v.Types[i] = TokenType(types[i])
		}
		if v.Types[i] < TokenNormal || v.Types[i] > TokenByte {
			return nil, fmt.Errorf("token %d has the unknown type %d", i, v.Types[i])
		}
	}
	for key, into := range map[string]**int32{"bos_token_id": &v.BOS, "eos_token_id": &v.EOS, "unknown_token_id": &v.Unknown, "padding_token_id": &v.Padding} {
		id, ok, err := f.Uint(prefix + key)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if id >= uint64(len(v.Tokens)) {
			return nil, fmt.Errorf("%s %d of %d tokens", key, id, len(v.Tokens))
		}
		short := int32(id)
		*into = &short
	}
	return v, nil
}
