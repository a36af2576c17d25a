package tokenizer

import "unicode/utf8"

// next returns the first match in text at or behind from as text[start:end];
// without one, start and end are len(text). Bytes that are not UTF-8 count as
// one character each, U+FFFD.
func (p *pattern) next(text string, from int) (start, end int) {
	for at := from; at < len(text); {
		for _, items := range p.byFirst[text[at]] {
			if end := match(items, nil, text, at); end > at {
				return at, end
			}
		}
		at += runeLen(text, at)
	}
	return len(text), len(text)
}

// frame is what is to be matched behind a group.
type frame struct {
	items []item
	rest  *frame
}

// match returns the end of the match of items and then of rest at text[at:],
// or -1.
func match(items []item, rest *frame, text string, at int) int {
	for len(items) == 0 {
		if rest == nil {
			return at
		}
		items, rest = rest.items, rest.rest
	}
	it := &items[0]
	if it.set != nil {
		return matchSet(it, items[1:], rest, text, at)
	}
	if it.look != consume {
		if matchAny(it.group, nil, text, at) >= 0 != (it.look == ahead) {
			return -1
		}
		return match(items[1:], rest, text, at)
	}
	if end := matchAny(it.group, &frame{items[1:], rest}, text, at); end >= 0 || it.min == 1 {
		return end
	}
	return match(items[1:], rest, text, at)
}

func matchAny(alternatives [][]item, rest *frame, text string, at int) int {
	for _, items := range alternatives {
		if end := match(items, rest, text, at); end >= 0 {
			return end
		}
	}
	return -1
}

// matchSet takes as many characters as the item may, then fewer and fewer until
// the rest fits.
func matchSet(it *item, items []item, rest *frame, text string, at int) int {
	n, end := 0, at
	for n < it.max && end < len(text) {
		r, size := rune(text[end]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[end:])
		}
		if !it.set.has(r) {
			break
		}
		end += size
		n++
	}
	if n < it.min {
		return -1
	}
	for {
		if stop := match(items, rest, text, end); stop >= 0 || n == it.min {
			return stop
		}
		_, size := utf8.DecodeLastRuneInString(text[at:end])
		end -= size
		n--
	}
}

func runeLen(text string, at int) int {
	if text[at] < utf8.RuneSelf {
		return 1
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return size
}
