package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a compiled regular expression of the kind that pre-tokenizers use:
// alternatives of quantified characters and classes, groups, (?i:), and
// look-ahead. It matches as Oniguruma does, which the tokenizers library uses:
// leftmost, first alternative that fits, greedy, by backtracking, with the
// character classes of Unicode 16.0. compile refuses all other syntax by name.
type pattern struct {
	source  string
	byFirst [256][][]item // the alternatives that can match, by the first byte
}

// item is one part of an alternative.
type item struct {
	set      *charSet // the characters, of min to max; nil for a group
	min, max int
	group    [][]item // alternatives
	look     look     // whether group is only looked at
}

type look int8

const (
	consume look = iota
	ahead
	notAhead
)

// compile reads a regular expression.
func compile(source string) (*pattern, error) {
	p := parser{rest: source, sets: map[string]*charSet{}}
	alternatives, err := p.alternatives(false)
	if err == nil && p.rest != "" {
		err = fmt.Errorf("unmatched %q", p.rest[:1])
	}
	if err != nil {
		return nil, fmt.Errorf("regex %q: %w", source, err)
	}
	c := &pattern{source: source}
	for _, items := range alternatives {
		first, empty := firstBytes(items)
		if empty {
			return nil, fmt.Errorf("regex %q: an alternative matches the empty string", source)
		}
		for b := range first {
			if first[b] {
				c.byFirst[b] = append(c.byFirst[b], items)
			}
		}
	}
	return c, nil
}

// firstBytes tells which bytes a match of items can begin with, and whether it
// can be empty.
func firstBytes(items []item) (first [256]bool, empty bool) {
	for _, it := range items {
		if it.look != consume {
			continue
		}
		skip := it.min == 0
		if it.set != nil {
			for b := range 256 {
				if b >= utf8.RuneSelf || it.set.has(rune(b)) {
					first[b] = true
				}
			}
		}
		for _, inner := range it.group {
			f, e := firstBytes(inner)
			for b := range f {
				first[b] = first[b] || f[b]
			}
			skip = skip || e
		}
		if !skip {
			return first, false
		}
	}
	return first, true
}

type parser struct {
	rest string
	sets map[string]*charSet // by their text, as they take time to build
	fold bool                // within (?i:
}

// alternatives reads up to the end or, within a group, up to its bracket.
func (p *parser) alternatives(inGroup bool) ([][]item, error) {
	all := [][]item{nil}
	for p.rest != "" {
		switch p.rest[0] {
		case '|':
			p.rest = p.rest[1:]
			all = append(all, nil)
			continue
		case ')':
			if inGroup {
				p.rest = p.rest[1:]
				return all, nil
			}
			return all, nil
		}
		it, err := p.item()
		if err != nil {
			return nil, err
		}
		last := &all[len(all)-1]
		*last = append(*last, it)
	}
	if inGroup {
		return nil, errors.New("a group is not closed")
	}
	return all, nil
}

func (p *parser) item() (item, error) {
	if p.rest[0] == '(' {
		return p.groupItem()
	}
	set, err := p.atom()
	if err != nil {
		return item{}, err
	}
	it := item{set: set}
	it.min, it.max, err = p.quantifier()
	return it, err
}

func (p *parser) groupItem() (item, error) {
	it, fold := item{}, p.fold
	switch {
	case p.take("(?:"):
	case p.take("(?i:"):
		p.fold = true
	case p.take("(?!"):
		it.look = notAhead
	case p.take("(?="):
		it.look = ahead
	case strings.HasPrefix(p.rest, "(?"):
		return it, fmt.Errorf("%q is not supported", p.rest[:min(4, len(p.rest))])
	default:
		p.take("(")
	}
	var err error
	if it.group, err = p.alternatives(true); err != nil {
		return it, err
	}
	p.fold = fold
	if it.min, it.max, err = p.quantifier(); err != nil {
		return it, err
	}
	if it.max != 1 || it.look != consume && it.min != 1 {
		return it, errors.New("a repeated group is not supported")
	}
	return it, nil
}

func (p *parser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

// quantifier reads ?, *, +, {m}, {m,} and {m,n}; 1 to 1 without one.
func (p *parser) quantifier() (least, most int, err error) {
	least, most = 1, 1
	switch {
	case p.take("?"):
		least = 0
	case p.take("*"):
		least, most = 0, math.MaxInt
	case p.take("+"):
		most = math.MaxInt
	case p.take("{"):
		text, rest, ok := strings.Cut(p.rest, "}")
		p.rest = rest
		if least, most, err = bounds(text); err != nil || !ok {
			return 0, 0, fmt.Errorf("quantifier {%s: want {m}, {m,} or {m,n}", text)
		}
	default:
		return 1, 1, nil
	}
	if p.rest != "" && strings.ContainsRune("?*+{", rune(p.rest[0])) {
		return 0, 0, fmt.Errorf("%q after a quantifier is not supported", p.rest[:1])
	}
	return least, most, nil
}

func bounds(text string) (least, most int, err error) {
	low, high, two := strings.Cut(text, ",")
	if _, err := fmt.Sscanf(low+" ", "%d ", &least); err != nil {
		return 0, 0, err
	}
	switch {
	case !two:
		most = least
	case high == "":
		most = math.MaxInt
	default:
		if _, err := fmt.Sscanf(high+" ", "%d ", &most); err != nil {
			return 0, 0, err
		}
	}
	if least < 0 || most < least || most == 0 {
		return 0, 0, errors.New("wrong bounds")
	}
	return least, most, nil
}

// atom reads one character or class.
func (p *parser) atom() (*charSet, error) {
	before := p.rest
	has, err := p.test()
	if err != nil {
		return nil, err
	}
	key := before[:len(before)-len(p.rest)]
	if p.fold {
		key = "(?i:" + key
	}
	if p.sets[key] == nil {
		p.sets[key] = newCharSet(has)
	}
	return p.sets[key], nil
}

func (p *parser) test() (func(rune) bool, error) {
	switch c := p.rest[0]; {
	case c == '[':
		return p.class()
	case c == '\\':
		has, literal, err := p.escape()
		if has != nil || err != nil {
			return has, err
		}
		return p.literal(literal)
	case strings.IndexByte(`.^$?*+{}]`, c) >= 0:
		return nil, fmt.Errorf("%q is not supported here", string(c))
	}
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return p.literal(r)
}

// literal is one character; under (?i: both cases, with the long s and the
// Kelvin sign, which fold to s and k. Pairs such as ss, which fold to one
// character and back, are refused.
func (p *parser) literal(r rune) (func(rune) bool, error) {
	if !p.fold {
		return func(c rune) bool { return c == r }, nil
	}
	if r >= utf8.RuneSelf {
		return nil, fmt.Errorf("%q under (?i: is not supported", r)
	}
	for _, pair := range []string{"ss", "st", "ff", "fi", "fl"} {
		if unicode.ToLower(r) == rune(pair[0]) && p.rest != "" && p.rest[0]|0x20 == pair[1] {
			return nil, fmt.Errorf("%q under (?i: is not supported", pair)
		}
	}
	return func(c rune) bool { // the orbit of case folding, at most three characters
		for f := unicode.SimpleFold(r); ; f = unicode.SimpleFold(f) {
			if c == f {
				return true
			}
			if f == r {
				return false
			}
		}
	}, nil
}

// escape reads a backslash and what follows: a class (has), or a character.
func (p *parser) escape() (has func(rune) bool, literal rune, err error) {
	if len(p.rest) < 2 {
		return nil, 0, errors.New("it ends in a backslash")
	}
	c := p.rest[1]
	p.rest = p.rest[2:]
	switch c {
	case 's':
		return unicode.IsSpace, 0, nil
	case 'S':
		return func(r rune) bool { return !unicode.IsSpace(r) }, 0, nil
	case 'd', 'D':
		digit, err := category("Nd")
		return func(r rune) bool { return digit(r) == (c == 'd') }, 0, err
	case 'p', 'P':
		name, rest, ok := strings.Cut(p.rest, "}")
		if !ok || !strings.HasPrefix(name, "{") {
			return nil, 0, fmt.Errorf(`\%c without braces`, c)
		}
		p.rest = rest
		in, err := category(name[1:])
		if err != nil {
			return nil, 0, err
		}
		return func(r rune) bool { return in(r) == (c == 'p') }, 0, nil
	case 'n':
		return nil, '\n', nil
	case 'r':
		return nil, '\r', nil
	case 't':
		return nil, '\t', nil
	}
	if c >= utf8.RuneSelf || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
		return nil, 0, fmt.Errorf(`\%c is not supported`, c)
	}
	return nil, rune(c), nil
}

// class reads [...]: characters, ranges and escapes, negated by a leading ^.
func (p *parser) class() (func(rune) bool, error) {
	if p.fold {
		return nil, errors.New("a class under (?i: is not supported")
	}
	p.rest = p.rest[1:]
	negated := p.take("^")
	var parts []func(rune) bool
	for {
		if p.rest == "" {
			return nil, errors.New("a class is not closed")
		}
		if p.take("]") {
			if len(parts) == 0 {
				return nil, errors.New("an empty class")
			}
			return func(r rune) bool {
				for _, has := range parts {
					if has(r) {
						return !negated
					}
				}
				return negated
			}, nil
		}
		has, err := p.member()
		if err != nil {
			return nil, err
		}
		parts = append(parts, has)
	}
}

// member reads one part of a class.
func (p *parser) member() (func(rune) bool, error) {
	has, low, err := p.classRune()
	if has != nil || err != nil {
		return has, err
	}
	if !strings.HasPrefix(p.rest, "-") {
		return func(r rune) bool { return r == low }, nil
	}
	p.rest = p.rest[1:]
	if p.rest == "" {
		return nil, errors.New("a class is not closed")
	}
	has, high, err := p.classRune()
	if err != nil {
		return nil, err
	}
	if has != nil || high < low {
		return nil, errors.New("a range without two characters in order")
	}
	return func(r rune) bool { return low <= r && r <= high }, nil
}

func (p *parser) classRune() (func(rune) bool, rune, error) {
	switch {
	case p.rest[0] == '\\':
		return p.escape()
	case strings.HasPrefix(p.rest, "&&"), strings.ContainsRune("[]-^", rune(p.rest[0])):
		return nil, 0, fmt.Errorf("%q in a class is not supported", p.rest[:1])
	}
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return nil, r, nil
}
