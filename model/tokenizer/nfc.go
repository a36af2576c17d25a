package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc is the normalizer NFC of the tokenizers library, which goes by the tables of
// Unicode 9.0. golang.org/x/text differs from it in two ways: it knows the marks
// that came later and moves them past others, and it puts a U+034F into what has
// more than 30 marks in a row.
func nfc(text string) string {
	if marks, later := longestMarks(text); later || marks > safeMarks {
		return composed(ordered(text))
	}
	return norm.NFC.String(text)
}

const (
	firstMark = 0x300 // the first character that NFC may move or join to another
	safeMarks = 12    // marks in a row that cannot become 30, as the one becomes two at most
)

// laterMarks are the marks of a combining class above 0 that came with Unicode
// 10.0 to 15.0, which Unicode 9.0 leaves where they stand.
var laterMarks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x7fd, 0x7fd, 1}, {0x898, 0x89f, 1}, {0x8ca, 0x8d3, 1}, {0x9fe, 0x9fe, 1}, {0xc3c, 0xc3c, 1}, {0xd3b, 0xd3c, 1},
		{0xeba, 0xeba, 1}, {0x1715, 0x1715, 1}, {0x1abf, 0x1ace, 1}, {0x1df6, 0x1dfa, 1}, {0xa82c, 0xa82c, 1},
	},
	R32: []unicode.Range32{
		{0x10d24, 0x10d27, 1}, {0x10eab, 0x10eac, 1}, {0x10efd, 0x10eff, 1}, {0x10f46, 0x10f50, 1}, {0x10f82, 0x10f85, 1},
		{0x11070, 0x11070, 1}, {0x1133b, 0x1133b, 1}, {0x1145e, 0x1145e, 1}, {0x11839, 0x1183a, 1}, {0x1193d, 0x1193e, 1},
		{0x11943, 0x11943, 1}, {0x119e0, 0x119e0, 1}, {0x11a34, 0x11a34, 1}, {0x11a47, 0x11a47, 1}, {0x11a99, 0x11a99, 1},
		{0x11d42, 0x11d42, 1}, {0x11d44, 0x11d45, 1}, {0x11d97, 0x11d97, 1}, {0x11f41, 0x11f42, 1}, {0x16ff0, 0x16ff1, 1},
		{0x1e08f, 0x1e08f, 1}, {0x1e130, 0x1e136, 1}, {0x1e2ae, 0x1e2ae, 1}, {0x1e2ec, 0x1e2ef, 1}, {0x1e4ec, 0x1e4ef, 1},
	},
}

// laterJoined is the one character that two others have become since Unicode 9.0.
const laterJoined = 0x11938

// longestMarks is the length of the longest run of marks in text, and whether
// anything of laterMarks or laterJoined's parts is in it.
func longestMarks(text string) (longest int, later bool) {
	run := 0
	for _, r := range text {
		if r < firstMark || !counted(r) {
			run = 0
			later = later || r == laterJoined
			continue
		}
		run++
		longest = max(longest, run)
		later = later || unicode.Is(laterMarks, r) || r == 0x11930
	}
	return longest, later
}

// counted tells whether golang.org/x/text may count a character among the marks in
// a row: beside marks, the vowels and ends of Hangul syllables in all their forms,
// such as the U+3160 that Korean writes for weeping, and the voicing marks of
// halfwidth Katakana.
func counted(r rune) bool {
	return unicode.Is(unicode.M, r) || r >= 0x1100 && r <= 0x11ff || r >= 0x3131 && r <= 0x318e || r >= 0xff9e && r <= 0xffdc
}

// mark is a decomposed character with its canonical combining class.
type mark struct {
	r     rune // -1-b for the byte b that is not UTF-8
	class uint8
}

// ordered is the canonical decomposition of text in canonical order.
func ordered(text string) []mark {
	var all []mark
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			all = append(all, mark{r: -1 - rune(text[at])})
		case r < utf8.RuneSelf || r == laterJoined:
			all = append(all, mark{r: r})
		default:
			for _, d := range norm.NFD.String(text[at : at+size]) {
				all = append(all, mark{d, class(d)})
			}
		}
		at += size
	}
	for start := 0; start < len(all); start++ {
		end := start
		for end < len(all) && all[end].class != 0 {
			end++
		}
		slices.SortStableFunc(all[start:end], func(a, b mark) int { return int(a.class) - int(b.class) })
		start = end
	}
	return all
}

func class(r rune) uint8 {
	if unicode.Is(laterMarks, r) {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// composed joins what can be joined: a starter with a mark behind it, unless one
// that stands between them has its class or a higher one, or is a starter.
func composed(all []mark) string {
	out := all[:0]
	starter := -1
	for _, m := range all {
		if starter >= 0 {
			between := len(out) - 1 - starter
			if between == 0 || out[len(out)-1].class != 0 && out[len(out)-1].class < m.class {
				if joined, ok := join(out[starter].r, m.r); ok {
					out[starter].r = joined
					continue
				}
			}
		}
		if m.class == 0 {
			starter = len(out)
		}
		out = append(out, m)
	}
	var b strings.Builder
	for _, m := range out {
		if m.r < 0 {
			b.WriteByte(byte(-1 - m.r))
		} else {
			b.WriteRune(m.r)
		}
	}
	return b.String()
}

func join(a, b rune) (rune, bool) {
	if a < 0 || b < firstMark {
		return 0, false
	}
	joined := []rune(norm.NFC.String(string([]rune{a, b})))
	return joined[0], len(joined) == 1 && joined[0] != laterJoined
}
