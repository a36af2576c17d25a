package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
)

// wordLevel is the WordLevel model: a word is a token or it is the unknown one.
type wordLevel struct {
	vocab map[string]int32
	unk   string
	unkID int32
}

// NewWordLevel returns a tokenizer whose ids are the places of words in the
// list. A word outside it becomes unk, which must be in the list. The special
// words are found in text even inside a longer word, and Special reports them.
func NewWordLevel(words []string, unk string, special ...string) (*Tokenizer, error) {
	vocab := make(map[string]int32, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, unicode.IsSpace) {
			return nil, fmt.Errorf("tokenizer: word %d, %q, is empty or holds white space", i, w)
		}
		if first, ok := vocab[w]; ok {
			return nil, fmt.Errorf("tokenizer: word %q stands at %d and %d", w, first, i)
		}
		vocab[w] = int32(i)
	}
	id, ok := vocab[unk]
	if !ok {
		return nil, fmt.Errorf("tokenizer: the unknown token %q is not among the words", unk)
	}
	t := &Tokenizer{model: &wordLevel{vocab, unk, id}}
	for i, w := range words {
		for _, s := range special {
			if s == w {
				t.added = append(t.added, addedToken{ID: int32(i), Content: w, Special: true})
				break
			}
		}
	}
	if len(t.added) != len(special) {
		return nil, fmt.Errorf("tokenizer: of the special tokens %q, %d are not among the words or stand twice",
			special, len(special)-len(t.added))
	}
	if err := t.finish(); err != nil {
		return nil, err
	}
	return t, nil
}

func (w *wordLevel) vocabulary() map[string]int32 { return w.vocab }

// encode splits text at white space (Unicode's White_Space property) and looks
// each word up.
func (w *wordLevel) encode(ids []int32, text string) []int32 {
	for word := range strings.FieldsSeq(text) {
		ids = append(ids, w.id(word))
	}
	return ids
}

// decode joins the tokens of ids with single spaces, special ones included. An
// id without a token reads as the unknown token.
func (w *wordLevel) decode(t *Tokenizer, ids []int32) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(' ')
		}
		token, ok := t.Token(id)
		if !ok {
			token = w.unk
		}
		b.WriteString(token)
	}
	return b.String()
}

func (w *wordLevel) id(word string) int32 {
	if id, ok := w.vocab[word]; ok {
		return id
	}
	return w.unkID
}
