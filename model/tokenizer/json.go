package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
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

// mergeList is a list of merges, each "left right" or, from tokenizers 0.20 on,
// ["left", "right"].
type mergeList []string

// UnmarshalJSON reads either form.
func (m *mergeList) UnmarshalJSON(data []byte) error {
	var texts []string
	if json.Unmarshal(data, &texts) == nil {
		*m = texts
		return nil
	}
	var pairs [][]string
	if err := json.Unmarshal(data, &pairs); err != nil {
		return errors.New("merges are neither texts nor pairs of texts")
	}
	for i, p := range pairs {
		if len(p) != 2 || strings.Contains(p[0], " ") || strings.Contains(p[1], " ") {
			return fmt.Errorf("merge %d, %q, is not two tokens of the byte alphabet", i, p)
		}
		*m = append(*m, p[0]+" "+p[1])
	}
	return nil
}

// Parse reads the bytes of a tokenizer.json. It refuses, by name, what it would
// have to ignore.
//
// Models: WordLevel with the pre-tokenizer WhitespaceSplit, and byte-level BPE with
// a pre-tokenizer of Split, Digits and ByteLevel and the normalizer NFC or none.
// A post-processor of BPE (ByteLevel, TemplateProcessing) is kept for Save and
// adds nothing: Encode never puts in a token that text does not hold.
func Parse(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if f.Version != "1.0" {
		return nil, fmt.Errorf("tokenizer: version %q, want \"1.0\"", f.Version)
	}
	if err := f.refuse("truncation", f.Truncation); err != nil {
		return nil, err
	}
	if err := f.refuse("padding", f.Padding); err != nil {
		return nil, err
	}
	for _, a := range f.AddedTokens {
		if a.SingleWord {
			return nil, fmt.Errorf("tokenizer: added token %q: single_word is not supported", a.Content)
		}
	}
	t := &Tokenizer{added: slices.Clone(f.AddedTokens)}
	sort.SliceStable(t.added, func(i, j int) bool { return t.added[i].ID < t.added[j].ID })
	var err error
	switch kind := typeOf(f.Model); kind {
	case `"WordLevel"`:
		err = f.wordLevel(t)
	case `"BPE"`:
		err = f.bpe(t)
	default:
		err = fmt.Errorf("tokenizer: model %s is not supported, only WordLevel and BPE", kind)
	}
	if err != nil {
		return nil, err
	}
	if err := t.finish(); err != nil {
		return nil, err
	}
	if err := f.numbering(t.model.vocabulary()); err != nil {
		return nil, err
	}
	return t, nil
}

// numbering refuses ids of added tokens that Hugging Face's tokenizers would pass
// over: those that the model lacks they number from its size on, as they stand.
func (f *file) numbering(vocab map[string]int32) error {
	next := int32(len(vocab))
	for _, a := range f.AddedTokens {
		if _, ok := vocab[a.Content]; ok {
			continue
		}
		if a.ID != next {
			return fmt.Errorf("tokenizer: added token %q has the id %d, which Hugging Face's tokenizers would take for %d", a.Content, a.ID, next)
		}
		next++
	}
	return nil
}

// refuse names a part that asks for something, unless it is of a type listed.
func (f *file) refuse(name string, raw json.RawMessage, allowed ...string) error {
	kind := typeOf(raw)
	if isNull(raw) || slices.Contains(allowed, strings.Trim(kind, `"`)) {
		return nil
	}
	return fmt.Errorf("tokenizer: %s %s is not supported", name, kind)
}

func (f *file) wordLevel(t *Tokenizer) error {
	for name, raw := range map[string]json.RawMessage{"normalizer": f.Normalizer, "post_processor": f.PostProcessor, "decoder": f.Decoder} {
		if err := f.refuse(name, raw); err != nil {
			return err
		}
	}
	if kind := typeOf(f.PreTokenizer); kind != `"WhitespaceSplit"` {
		return fmt.Errorf("tokenizer: pre_tokenizer %s is not supported, only WhitespaceSplit with WordLevel", kind)
	}
	words, err := parseModel(f.Model)
	if err != nil {
		return err
	}
	t.model = words
	return nil
}

func (f *file) bpe(t *Tokenizer) error {
	if err := f.refuse("post_processor", f.PostProcessor, "ByteLevel", "TemplateProcessing", "Sequence"); err != nil {
		return err
	}
	if kind := typeOf(f.Decoder); kind != `"ByteLevel"` {
		return fmt.Errorf("tokenizer: decoder %s is not supported, only ByteLevel with BPE", kind)
	}
	if err := f.refuse("normalizer", f.Normalizer, "NFC"); err != nil {
		return err
	}
	if !isNull(f.Normalizer) {
		t.normalize = nfc
	}
	var bytes bool
	var err error
	if t.steps, bytes, err = parseSteps(f.PreTokenizer); err != nil {
		return err
	}
	if !bytes {
		return errors.New("tokenizer: a pre_tokenizer without ByteLevel at its end is not supported with BPE")
	}
	var part bpePart
	if err := json.Unmarshal(f.Model, &part); err != nil {
		return fmt.Errorf("tokenizer: model: %w", err)
	}
	t.parts = *f
	t.parts.Model, t.parts.AddedTokens = nil, nil
	m, err := part.model()
	if err != nil {
		return err
	}
	t.model = m
	return nil
}

func parseModel(raw json.RawMessage) (*wordLevel, error) {
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
	out := t.parts
	null := json.RawMessage("null")
	for _, part := range []*json.RawMessage{&out.Truncation, &out.Padding, &out.Normalizer, &out.PreTokenizer, &out.PostProcessor, &out.Decoder} {
		if isNull(*part) {
			*part = null
		}
	}
	if out.AddedTokens = t.added; t.added == nil {
		out.AddedTokens = []addedToken{}
	}
	out.Version = "1.0"
	if _, ok := t.model.(*wordLevel); ok {
		out.PreTokenizer = json.RawMessage(`{"type":"WhitespaceSplit"}`)
	}
	out.Model = t.model.marshal()
	return encode(out)
}

// marshal writes the model with its vocabulary ordered by id, where
// encoding/json would order it by word.
func (w *wordLevel) marshal() json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"WordLevel","vocab":`)
	writeVocab(&b, w.vocab)
	fmt.Fprintf(&b, `,"unk_token":%s}`, quote(w.unk))
	return b.Bytes()
}

// marshal writes the model, the vocabulary ordered by id.
func (m *bpe) marshal() json.RawMessage {
	var b bytes.Buffer
	unk := []byte("null")
	if m.unk != "" {
		unk = quote(m.unk)
	}
	fmt.Fprintf(&b, `{"type":"BPE","dropout":null,"unk_token":%s,"continuing_subword_prefix":null,"end_of_word_suffix":null,`+
		`"fuse_unk":false,"byte_fallback":false,"ignore_merges":%v,"vocab":`, unk, m.ignoreMerges)
	writeVocab(&b, m.vocab)
	b.WriteString(`,"merges":[`)
	for i, text := range m.merges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(text))
	}
	b.WriteString("]}")
	return b.Bytes()
}

func writeVocab(b *bytes.Buffer, vocab map[string]int32) {
	words := make([]string, 0, len(vocab))
	for word := range vocab {
		words = append(words, word)
	}
	sort.Slice(words, func(i, j int) bool {
		a, b := vocab[words[i]], vocab[words[j]]
		return a < b || a == b && words[i] < words[j]
	})
	b.WriteByte('{')
	for i, word := range words {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%s:%d", quote(word), vocab[word])
	}
	b.WriteByte('}')
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
