package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
)

// file is tokenizer.json. The parts that are not held here stay raw so that
// Parse can tell null from a request.
type file struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

type modelPart struct {
	Type  string           `json:"type"`
	Vocab map[string]int32 `json:"vocab"`
	Unk   string           `json:"unk_token"`
}

// Parse reads the bytes of a tokenizer.json. It refuses, by name, what it would
// have to ignore: another model than WordLevel, another pre-tokenizer than
// WhitespaceSplit, a normalizer, post-processor, decoder, truncation or padding.
func Parse(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if f.Version != "1.0" {
		return nil, fmt.Errorf("tokenizer: version %q, want \"1.0\"", f.Version)
	}
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{
		{"truncation", f.Truncation}, {"padding", f.Padding}, {"normalizer", f.Normalizer},
		{"post_processor", f.PostProcessor}, {"decoder", f.Decoder},
	} {
		if !isNull(part.raw) {
			return nil, fmt.Errorf("tokenizer: %s %s is not supported", part.name, typeOf(part.raw))
		}
	}
	if kind := typeOf(f.PreTokenizer); kind != `"WhitespaceSplit"` {
		return nil, fmt.Errorf("tokenizer: pre_tokenizer %s is not supported, only WhitespaceSplit", kind)
	}
	words, err := parseModel(f.Model)
	if err != nil {
		return nil, err
	}
	for _, a := range f.AddedTokens {
		if a.SingleWord {
			return nil, fmt.Errorf("tokenizer: added token %q: single_word is not supported", a.Content)
		}
	}
	sort.SliceStable(f.AddedTokens, func(i, j int) bool { return f.AddedTokens[i].ID < f.AddedTokens[j].ID })
	t := &Tokenizer{words: *words, added: f.AddedTokens}
	if err := t.finish(); err != nil {
		return nil, err
	}
	return t, nil
}

func parseModel(raw json.RawMessage) (*wordLevel, error) {
	if kind := typeOf(raw); kind != `"WordLevel"` {
		return nil, fmt.Errorf("tokenizer: model %s is not supported, only WordLevel", kind)
	}
	var m modelPart
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("tokenizer: model: %w", err)
	}
	id, ok := m.Vocab[m.Unk]
	if !ok {
		return nil, fmt.Errorf("tokenizer: unk_token %q is not in the vocabulary", m.Unk)
	}
	return &wordLevel{vocab: m.Vocab, unk: m.Unk, unkID: id}, nil
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// typeOf is the quoted "type" of a part, for messages; "null" without one.
func typeOf(raw json.RawMessage) string {
	var part struct{ Type *string }
	if isNull(raw) || json.Unmarshal(raw, &part) != nil || part.Type == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *part.Type)
}

// MarshalJSON writes the tokenizer as a tokenizer.json, tokens in order of id.
func (t *Tokenizer) MarshalJSON() ([]byte, error) {
	added := t.added
	if added == nil {
		added = []addedToken{}
	}
	null := json.RawMessage("null")
	return encode(file{
		Version: "1.0", Truncation: null, Padding: null, AddedTokens: added, Normalizer: null,
		PreTokenizer: json.RawMessage(`{"type":"WhitespaceSplit"}`), PostProcessor: null, Decoder: null,
		Model: t.words.marshal(),
	})
}

// marshal writes the model with its vocabulary ordered by id, where
// encoding/json would order it by word.
func (w *wordLevel) marshal() json.RawMessage {
	words := make([]string, 0, len(w.vocab))
	for word := range w.vocab {
		words = append(words, word)
	}
	sort.Slice(words, func(i, j int) bool {
		a, b := w.vocab[words[i]], w.vocab[words[j]]
		return a < b || a == b && words[i] < words[j]
	})
	var b bytes.Buffer
	b.WriteString(`{"type":"WordLevel","vocab":{`)
	for i, word := range words {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%d", quote(word), w.vocab[word])
	}
	fmt.Fprintf(&b, `},"unk_token":%s}`, quote(w.unk))
	return b.Bytes()
}

func quote(s string) []byte {
	data, err := encode(s)
	if err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSpace(data)
}

// encode is json.Marshal that leaves < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return b.Bytes(), nil
}
