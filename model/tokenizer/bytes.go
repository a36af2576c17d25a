package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// byteRunes is GPT-2's alphabet: a printable character for each byte, so that
// every text is a row of characters that JSON can hold. Printable Latin-1 stands
// for itself, the other 68 bytes for U+0100 onwards in order.
var byteRunes = func() (runes [256]rune) {
	shifted := rune(0x100)
	for b := range 256 {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			runes[b] = rune(b)
		default:
			runes[b] = shifted
			shifted++
		}
	}
	return runes
}()

// runeBytes is the reverse of byteRunes.
var runeBytes = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for b, r := range byteRunes {
		m[r] = byte(b)
	}
	return m
}()

// toAlphabet writes the bytes of a text in GPT-2's alphabet.
func toAlphabet(text string) string {
	var b strings.Builder
	b.Grow(2 * len(text))
	for i := range len(text) {
		b.WriteRune(byteRunes[text[i]])
	}
	return b.String()
}

// appendToken appends the bytes that a token stands for. A token with a character
// outside the alphabet, which an added token may have, stands for itself.
func appendToken(dst []byte, token string) []byte {
	start := len(dst)
	for _, r := range token {
		b, ok := runeBytes[r]
		if !ok {
			return append(dst[:start], token...)
		}
		dst = append(dst, b)
	}
	return dst
}

// validUTF8 puts one U+FFFD for each longest beginning of a character that is not
// finished, and for each byte that begins none, as Rust's from_utf8_lossy does.
func validUTF8(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	var b strings.Builder
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			size = unfinished(data)
		}
		b.WriteRune(r)
		data = data[size:]
	}
	return b.String()
}

// unfinished is the length of the longest prefix of data that begins a character
// (Unicode 16.0, table 3-7), at least 1.
func unfinished(data []byte) int {
	length, low, high := 0, byte(0x80), byte(0xbf)
	switch c := data[0]; {
	case c >= 0xc2 && c <= 0xdf:
		length = 2
	case c == 0xe0:
		length, low = 3, 0xa0
	case c == 0xed:
		length, high = 3, 0x9f
	case c >= 0xe1 && c <= 0xef:
		length = 3
	case c == 0xf0:
		length, low = 4, 0x90
	case c >= 0xf1 && c <= 0xf3:
		length = 4
	case c == 0xf4:
		length, high = 4, 0x8f
	}
	n := 1
	for n < length && n < len(data) && data[n] >= low && data[n] <= high {
		low, high = 0x80, 0xbf
		n++
	}
	return n
}
