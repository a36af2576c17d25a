// Package tokenizer turns text into token ids and back as a Hugging Face
// tokenizer.json says. It holds byte-level BPE as Qwen2, Qwen3, Llama 3 and
// SmolLM2 have it, and the word-level kind of the mini-wiki; Parse names whatever
// a file asks beyond that.
//
// The format is that of the Hugging Face tokenizers library, version "1.0"
// (github.com/huggingface/tokenizers).
package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Filename is the name of a tokenizer's file in a checkpoint folder.
const Filename = "tokenizer.json"

// Tokenizer maps text to token ids and back. It is immutable and safe for many goroutines.
type Tokenizer struct {
	model     textModel
	normalize func(string) string // nil: text stays as it is
	steps     []step              // the pre-tokenizer of BPE
	added     []addedToken        // ordered by id
	byID      []string            // id -> token, "" where no token stands

	exact      *matcher // finds added tokens in text as it is,
	normalized *matcher // and the others in normalised text
	parts      file     // what MarshalJSON writes beside tokens and model
}

// textModel is the model of a tokenizer.json.
type textModel interface {
	vocabulary() map[string]int32
	encode(ids []int32, text string) []int32 // appends the ids of a pre-tokenised piece
	decode(t *Tokenizer, ids []int32) string
	marshal() json.RawMessage
}

// addedToken is an entry of tokenizer.json's added_tokens list.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// Load reads dir/tokenizer.json.
func Load(dir string) (*Tokenizer, error) {
	path := filepath.Join(dir, Filename)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// LoadFS reads tokenizer.json at the root of fsys, such as an embedded checkpoint.
func LoadFS(fsys fs.FS) (*Tokenizer, error) {
	data, err := fs.ReadFile(fsys, Filename)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Filename, err)
	}
	return t, nil
}

// Save writes dir/tokenizer.json.
func (t *Tokenizer) Save(dir string) error {
	data, err := t.MarshalJSON()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, Filename), data, 0o644); err != nil {
		return fmt.Errorf("write tokenizer: %w", err)
	}
	return nil
}

// Size is the number of ids, one above the largest.
func (t *Tokenizer) Size() int { return len(t.byID) }

// ID returns the id of a token, or false where the vocabulary has none such.
func (t *Tokenizer) ID(token string) (int32, bool) {
	for _, a := range t.added {
		if a.Content == token {
			return a.ID, true
		}
	}
	id, ok := t.model.vocabulary()[token]
	return id, ok
}

// Token returns the text of an id, or false where it has none.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(t.byID) || t.byID[id] == "" {
		return "", false
	}
	return t.byID[id], true
}

// Special tells whether id is an added token that is marked special.
func (t *Tokenizer) Special(id int32) bool {
	for _, a := range t.added {
		if a.ID == id {
			return a.Special
		}
	}
	return false
}

// Encode returns the ids of a text, and none that the text does not hold. What
// looks like a special token stays text, so that no document can end a turn;
// other added tokens are found. It is Hugging Face's encode with
// add_special_tokens=False and split_special_tokens=True.
//
// The word-level kind, whose vocabulary is closed, finds special tokens too.
func (t *Tokenizer) Encode(text string) []int32 {
	_, words := t.model.(*wordLevel)
	return t.encode(text, words)
}

// EncodeSpecial is Encode that also finds the special tokens: Hugging Face's
// encode with add_special_tokens=False.
func (t *Tokenizer) EncodeSpecial(text string) []int32 { return t.encode(text, true) }

func (t *Tokenizer) encode(text string, special bool) []int32 {
	var ids []int32
	t.exact.split(text, special, func(piece string, id int32) {
		if id >= 0 {
			ids = append(ids, id)
			return
		}
		if t.normalize != nil {
			piece = t.normalize(piece)
		}
		t.normalized.split(piece, special, func(piece string, id int32) {
			if id >= 0 {
				ids = append(ids, id)
				return
			}
			ids = t.encodePiece(ids, piece)
		})
	})
	return ids
}

// encodePiece appends the ids of text without added tokens.
func (t *Tokenizer) encodePiece(ids []int32, text string) []int32 {
	pieces := []string{text}
	for _, s := range t.steps {
		var next []string
		for _, p := range pieces {
			next = s.cut(next, p)
		}
		pieces = next
	}
	for _, p := range pieces {
		ids = t.model.encode(ids, p)
	}
	return ids
}

// Decode returns the text of ids, special tokens included. Byte-level BPE joins the
// tokens' bytes and puts U+FFFD for what is not UTF-8; the word-level kind puts a
// space between tokens.
func (t *Tokenizer) Decode(ids []int32) string { return t.model.decode(t, ids) }

// finish checks the parts against each other and builds the tables.
func (t *Tokenizer) finish() error {
	top := int32(-1)
	for _, id := range t.model.vocabulary() {
		top = max(top, id)
	}
	for _, a := range t.added {
		top = max(top, a.ID)
	}
	if top < 0 {
		return errors.New("tokenizer: empty vocabulary")
	}
	if limit := 4*(len(t.model.vocabulary())+len(t.added)) + 1024; int(top) > limit {
		return fmt.Errorf("tokenizer: token id %d far above the %d tokens", top, len(t.model.vocabulary()))
	}
	t.byID = make([]string, top+1)
	set := func(id int32, token string) error {
		switch {
		case id < 0:
			return fmt.Errorf("tokenizer: token %q has the id %d", token, id)
		case token == "":
			return fmt.Errorf("tokenizer: id %d has an empty token", id)
		case t.byID[id] != "" && t.byID[id] != token:
			return fmt.Errorf("tokenizer: id %d belongs to %q and %q", id, min(t.byID[id], token), max(t.byID[id], token))
		}
		t.byID[id] = token
		return nil
	}
	for token, id := range t.model.vocabulary() {
		if err := set(id, token); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, a := range t.added {
		if id, ok := t.model.vocabulary()[a.Content]; ok && id != a.ID {
			return fmt.Errorf("tokenizer: added token %q has the id %d, in the vocabulary %d", a.Content, a.ID, id)
		}
		if seen[a.Content] {
			return fmt.Errorf("tokenizer: added token %q stands twice", a.Content)
		}
		seen[a.Content] = true
		if err := set(a.ID, a.Content); err != nil {
			return err
		}
		if a.Normalized && t.normalize != nil { // it is decoded as it is found
			t.byID[a.ID] = t.normalize(a.Content)
		}
	}
	t.exact, t.normalized = newMatcher(t.added, t.normalize)
	return nil
}
