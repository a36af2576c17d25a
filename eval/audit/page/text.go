package page

import (
	"strings"
	"unicode"
)

// visible is a token's text with its blanks and controls shown as characters, so that it reads as
// one token and cannot turn the direction of what stands around it.
func visible(text string) string {
	if text == "" {
		return "∅"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '⏎'
		case r == '\t':
			return '⇥'
		case r == ' ':
			return '␣'
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			return '\uFFFD'
		}
		return r
	}, text)
}
