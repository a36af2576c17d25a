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
	t := &Tokenizer{words: wordLevel{vocab: vocab, unk: unk}}
	id, ok := vocab[unk]
	if !ok {
		return nil, fmt.Errorf("tokenizer: the unknown token %q is not among the words", unk)
	}
	t.words.unkID = id
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

// Encode splits text at white space (Unicode's White_Space property) and looks
// each word up; added tokens are cut out first, leftmost and longest, wherever
// they stand. No token is put in that text does not hold.
func (t *Tokenizer) Encode(text string) []int32 {
	var ids []int32
	for text != "" {
		start, end, id := t.matcher.next(text)
		for word := range strings.FieldsSeq(text[:start]) {
			ids = append(ids, t.words.id(word))
		}
		if end > start {
			ids = append(ids, id)
		}
		text = text[end:]
	}
	return ids
}

// Decode joins the tokens of ids with single spaces, special ones included. An
// id without a token reads as the unknown token.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(' ')
		}
		token, ok := t.Token(id)
		if !ok {
			token = t.words.unk
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

// matcher finds added tokens in text by their first byte.
type matcher struct {
	byFirst [256][]addedToken // longest first
}

func newMatcher(added []addedToken) *matcher {
	m := &matcher{}
	for _, a := range added {
		list := &m.byFirst[a.Content[0]]
		at := 0
		for at < len(*list) && len((*list)[at].Content) >= len(a.Content) {
			at++
		}
		*list = append((*list)[:at:at], append([]addedToken{a}, (*list)[at:]...)...)
	}
	return m
}

// next returns the first added token in text as text[start:end]; without one,
// start and end are both len(text).
func (m *matcher) next(text string) (start, end int, id int32) {
	for i := 0; i < len(text); i++ {
		for _, a := range m.byFirst[text[i]] {
			if strings.HasPrefix(text[i:], a.Content) {
				return i, i + len(a.Content), a.ID
			}
		}
	}
	return len(text), len(text), 0
}
