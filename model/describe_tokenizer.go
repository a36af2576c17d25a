package model

import (
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/memopd/memopd-bench/model/gguf"
)

// TokenizerFacts is what a checkpoint's tokenizer says of itself.
type TokenizerFacts struct {
	Kind    string           `json:"kind"`         // tokenizer.json's model type, or "gpt2 (smollm)" of GGUF's model and pre
	Size    int              `json:"size"`         // one more than the highest id
	Merges  int              `json:"merges"`       // of a BPE
	Added   int              `json:"added_tokens"` // beside the vocabulary
	Special int              `json:"special"`      // of them, those that text never becomes
	In      string           `json:"in"`           // file
	texts   map[int32]string // of added tokens, and of all in a GGUF
}

// Token is the text of a token that is worth a name; "" if it is not known here.
func (t *TokenizerFacts) Token(id int32) string { return t.texts[id] }

// tokenizerOfFolder reads tokenizer.json and the chat template.
func (d *Description) tokenizerOfFolder(fsys fs.FS) {
	data, err := fs.ReadFile(fsys, tokenizerFilename)
	if err == nil {
		d.Tokenizer, err = tokenizerJSON(data)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		d.problem(err)
	}
	text, in, err := folderTemplate(fsys)
	if d.problem(err); text != "" {
		d.Template, d.TemplateIn = text, in
	}
}

// tokenizerJSON reads what is described of a tokenizer.json.
func tokenizerJSON(data []byte) (*TokenizerFacts, error) {
	var file struct {
		Model struct {
			Type   string            `json:"type"`
			Vocab  json.RawMessage   `json:"vocab"`
			Merges []json.RawMessage `json:"merges"`
		} `json:"model"`
		Added []struct {
			ID      int32  `json:"id"`
			Content string `json:"content"`
			Special bool   `json:"special"`
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, errors.Join(errors.New(tokenizerFilename), err)
	}
	t := &TokenizerFacts{Kind: file.Model.Type, Merges: len(file.Model.Merges), Added: len(file.Added), In: tokenizerFilename, texts: map[int32]string{}}
	var byToken map[string]int32
	var list []json.RawMessage // Unigram
	if json.Unmarshal(file.Model.Vocab, &byToken) == nil {
		for _, id := range byToken {
			t.Size = max(t.Size, int(id)+1)
		}
	} else if json.Unmarshal(file.Model.Vocab, &list) == nil {
		t.Size = len(list)
	}
	for _, a := range file.Added {
		t.Size = max(t.Size, int(a.ID)+1)
		t.texts[a.ID] = a.Content
		if a.Special {
			t.Special++
		}
	}
	return t, nil
}

// ggufSpecial are the token types of GGUF that text never becomes: control and
// unused tokens.
var ggufSpecial = map[int64]bool{3: true, 5: true}

func (d *Description) tokenizerOfGGUF(f *gguf.File) {
	kind, ok, err := f.String("tokenizer.ggml.model")
	d.problem(err)
	if !ok {
		return
	}
	tokens, _, err := f.Strings("tokenizer.ggml.tokens")
	d.problem(err)
	merges, _, err := f.Strings("tokenizer.ggml.merges")
	d.problem(err)
	types, _, err := f.Ints("tokenizer.ggml.token_type")
	d.problem(err)
	if pre, ok, _ := f.String("tokenizer.ggml.pre"); ok {
		kind += " (" + pre + ")"
	}
	t := &TokenizerFacts{Kind: kind, Size: len(tokens), Merges: len(merges), In: "gguf", texts: map[int32]string{}}
	for id, text := range tokens {
		t.texts[int32(id)] = text
		if id < len(types) && ggufSpecial[types[id]] {
			t.Special++
		}
		if id < len(types) && types[id] != 1 && types[id] != 6 { // neither an ordinary token nor a byte
			t.Added++
		}
	}
	d.Tokenizer = t
	if d.Template, ok, err = f.String(ggufTemplate); ok {
		d.TemplateIn = "gguf"
	}
	d.problem(err)
}
