package tokenizer

import (
	"fmt"
	"unicode"
)

// charSet is a set of characters, what one [...] or \p{..} of a pattern matches.
type charSet struct {
	low  [1 << 16 / 64]uint64 // bit map of the basic plane
	high func(r rune) bool    // for characters above it
}

func (s *charSet) has(r rune) bool {
	if uint32(r) < 1<<16 {
		return s.low[r>>6]&(1<<(r&63)) != 0
	}
	return s.high(r)
}

func newCharSet(has func(rune) bool) *charSet {
	s := &charSet{high: has}
	for r := rune(0); r < 1<<16; r++ {
		if has(r) {
			s.low[r>>6] |= 1 << (r & 63)
		}
	}
	return s
}

// added16 lists the characters that Unicode 16.0 has in a general category
// beyond those of Go's tables (Unicode 15.0). The tokenizers library matches
// \p{..} with Oniguruma, whose tables are of version 16.0.
var added16 = map[string][][2]rune{
	"Ll": {{0x1c8a, 0x1c8a}, {0xa7cd, 0xa7cd}, {0xa7db, 0xa7db}, {0x10d70, 0x10d85}},
	"Lm": {{0x10d4e, 0x10d4e}, {0x10d6f, 0x10d6f}, {0x16d40, 0x16d42}, {0x16d6b, 0x16d6c}},
	"Lo": {
		{0x105c0, 0x105f3}, {0x10d4a, 0x10d4d}, {0x10d4f, 0x10d4f}, {0x10ec2, 0x10ec4}, {0x11380, 0x11389},
		{0x1138b, 0x1138b}, {0x1138e, 0x1138e}, {0x11390, 0x113b5}, {0x113b7, 0x113b7}, {0x113d1, 0x113d1},
		{0x113d3, 0x113d3}, {0x11bc0, 0x11be0}, {0x13460, 0x143fa}, {0x16100, 0x1611d}, {0x16d43, 0x16d6a},
		{0x18cff, 0x18cff}, {0x1e5d0, 0x1e5ed}, {0x1e5f0, 0x1e5f0}, {0x2ebf0, 0x2ee5d},
	},
	"Lu": {{0x1c89, 0x1c89}, {0xa7cb, 0xa7cc}, {0xa7da, 0xa7da}, {0xa7dc, 0xa7dc}, {0x10d50, 0x10d65}},
	"M": {
		{0x897, 0x897}, {0x10d69, 0x10d6d}, {0x10efc, 0x10efc}, {0x113b8, 0x113c0}, {0x113c2, 0x113c2},
		{0x113c5, 0x113c5}, {0x113c7, 0x113ca}, {0x113cc, 0x113d0}, {0x113d2, 0x113d2}, {0x113e1, 0x113e2},
		{0x11f5a, 0x11f5a}, {0x1611e, 0x1612f}, {0x1e5ee, 0x1e5ef},
	},
	"Nd": {
		{0x10d40, 0x10d49}, {0x116d0, 0x116e3}, {0x11bf0, 0x11bf9}, {0x16130, 0x16139}, {0x16d70, 0x16d79},
		{0x1ccf0, 0x1ccf9}, {0x1e5f1, 0x1e5fa},
	},
	"P": {
		{0x1b4e, 0x1b4f}, {0x1b7f, 0x1b7f}, {0x10d6e, 0x10d6e}, {0x113d4, 0x113d5}, {0x113d7, 0x113d8},
		{0x11be1, 0x11be1}, {0x16d6d, 0x16d6f}, {0x1e5ff, 0x1e5ff},
	},
	"S": {
		{0x2427, 0x2429}, {0x2ffc, 0x2fff}, {0x31e4, 0x31e5}, {0x31ef, 0x31ef}, {0x10d8e, 0x10d8f},
		{0x1cc00, 0x1ccef}, {0x1cd00, 0x1ceb3}, {0x1f8b2, 0x1f8bb}, {0x1f8c0, 0x1f8c1}, {0x1fa89, 0x1fa89},
		{0x1fa8f, 0x1fa8f}, {0x1fabe, 0x1fabe}, {0x1fac6, 0x1fac6}, {0x1fadc, 0x1fadc}, {0x1fadf, 0x1fadf},
		{0x1fae9, 0x1fae9}, {0x1fbcb, 0x1fbef},
	},
}

// categories are the general categories that a pattern may name, each with the
// keys of added16 that belong to it.
var categories = map[string][]string{
	"L": {"Ll", "Lm", "Lo", "Lu"}, "Ll": {"Ll"}, "Lm": {"Lm"}, "Lo": {"Lo"}, "Lt": nil, "Lu": {"Lu"}, "M": {"M"},
	"N": {"Nd"}, "Nd": {"Nd"}, "Nl": nil, "No": nil, "P": {"P"}, "S": {"S"},
}

// category returns the test of a general category of Unicode 16.0.
func category(name string) (func(rune) bool, error) {
	keys, ok := categories[name]
	if !ok {
		return nil, fmt.Errorf("\\p{%s} is not supported", name)
	}
	table := unicode.Categories[name]
	return func(r rune) bool {
		if unicode.Is(table, r) {
			return true
		}
		for _, key := range keys {
			for _, span := range added16[key] {
				if r >= span[0] && r <= span[1] {
					return true
				}
			}
		}
		return false
	}, nil
}

// isNumeric is Rust's char::is_numeric, which the Digits pre-tokenizer asks:
// the category N, by the tables of Unicode 17.0.
func isNumeric(r rune) bool {
	return r < 0x80 && r >= '0' && r <= '9' || r >= 0x80 && (numeric16(r) || r >= 0x11de0 && r <= 0x11de9 || r >= 0x16ff4 && r <= 0x16ff6)
}

var numeric16, _ = category("N")
