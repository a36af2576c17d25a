package tokenizer

import (
	"strings"
	"unicode"
)

// matcher finds added tokens in text by their first byte: the leftmost, of those
// the longest.
type matcher struct {
	byFirst [256][]addedToken // longest first
}

// newMatcher returns the matcher of the tokens that are looked for in text as it
// stands, and that of those looked for in normalised text, by their normalised form.
func newMatcher(added []addedToken, normalize func(string) string) (exact, normalized *matcher) {
	exact, normalized = &matcher{}, &matcher{}
	for _, a := range added {
		m := exact
		if a.Normalized {
			m = normalized
			if normalize != nil {
				a.Content = normalize(a.Content)
			}
		}
		list := &m.byFirst[a.Content[0]]
		at := 0
		for at < len(*list) && len((*list)[at].Content) >= len(a.Content) {
			at++
		}
		*list = append((*list)[:at:at], append([]addedToken{a}, (*list)[at:]...)...)
	}
	return exact, normalized
}

// find returns the first added token in text at or behind from; nil without one.
func (m *matcher) find(text string, from int) (at int, found *addedToken) {
	for i := from; i < len(text); i++ {
		for j, a := range m.byFirst[text[i]] {
			if strings.HasPrefix(text[i:], a.Content) {
				return i, &m.byFirst[text[i]][j]
			}
		}
	}
	return len(text), nil
}

// split hands out the text in order: pieces of plain text with the id -1, and
// added tokens with theirs. A token takes white space beside it along where it is
// marked lstrip or rstrip. A special token stays plain text unless special is set;
// as with Hugging Face, no other token is looked for within it. Also as there, a
// token within white space that one before it took along is found nevertheless.
func (m *matcher) split(text string, special bool, yield func(piece string, id int32)) {
	done := 0
	for at := 0; ; {
		start, a := m.find(text, at)
		if a == nil {
			break
		}
		end := start + len(a.Content)
		at = end
		if a.Special && !special {
			continue
		}
		if a.LStrip {
			start = max(len(strings.TrimRightFunc(text[:start], unicode.IsSpace)), done)
		}
		if a.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if done < start {
			yield(text[done:start], -1)
		}
		yield(text[start:end], a.ID)
		done = end
	}
	if done < len(text) {
		yield(text[done:], -1)
	}
}
