package metrics

import (
	"strings"
	"unicode"
)

// pyLower is Python's str.lower: Unicode's full mapping, so İ becomes i and a
// combining dot, and a capital sigma at the end of a word becomes ς.
func pyLower(s string) string {
	runes := []rune(s)
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range runes {
		switch {
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == 'Σ' && finalSigma(runes, i):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// finalSigma is the Final_Sigma condition of Unicode's SpecialCasing: a cased
// letter before runes[i] and none after it, case-ignorable characters skipped.
func finalSigma(runes []rune, i int) bool {
	j := i - 1
	for j >= 0 && caseIgnorable(runes[j]) {
		j--
	}
	if j < 0 || !cased(runes[j]) {
		return false
	}
	for j = i + 1; j < len(runes) && caseIgnorable(runes[j]); {
		j++
	}
	return j == len(runes) || !cased(runes[j])
}

func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

// The characters of Unicode's Word_Break classes MidLetter, MidNumLet and Single_Quote.
const midLetters = "'.:·\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a"

func caseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || strings.ContainsRune(midLetters, r)
}

// pySpace is Python's str.isspace for one character, which str.split and the
// regular expression \s use: Go's white space and the four ASCII separators.
func pySpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// pyWord is \w of Python's re on str. Combining marks are no word characters.
func pyWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
}

// pyPunctuation is membership in Python's string.punctuation, ASCII alone.
func pyPunctuation(r rune) bool {
	return r > ' ' && r < 0x7f && !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
}

func pyFields(s string) []string { return strings.FieldsFunc(s, pySpace) }

func pyStrip(s string) string { return strings.TrimFunc(s, pySpace) }
