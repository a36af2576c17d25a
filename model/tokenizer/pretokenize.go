package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// step cuts a text into pieces, in order; what it leaves out is gone.
type step interface {
	cut(pieces []string, text string) []string
}

// gpt2Pattern is the regex of ByteLevel with use_regex (github.com/openai/gpt-2, encoder.py).
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// preTokenizerPart is pre_tokenizer of a tokenizer.json, of any type.
type preTokenizerPart struct {
	Type       string            `json:"type"`
	Parts      []json.RawMessage `json:"pretokenizers"`
	Pattern    map[string]string `json:"pattern"`
	Behavior   string            `json:"behavior"`
	Invert     bool              `json:"invert"`
	Individual bool              `json:"individual_digits"`
	AddPrefix  bool              `json:"add_prefix_space"`
	UseRegex   *bool             `json:"use_regex"`
}

// parseSteps reads pre_tokenizer. bytes tells whether it ends in a ByteLevel,
// which byte-level BPE needs.
func parseSteps(raw json.RawMessage) (steps []step, bytes bool, err error) {
	if isNull(raw) {
		return nil, false, nil
	}
	var p preTokenizerPart
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, false, fmt.Errorf("tokenizer: pre_tokenizer: %w", err)
	}
	if p.Type != "Sequence" {
		s, bytes, err := p.step()
		if err != nil {
			return nil, false, fmt.Errorf("tokenizer: pre_tokenizer: %w", err)
		}
		if s != nil {
			steps = []step{s}
		}
		return steps, bytes, nil
	}
	for i, part := range p.Parts {
		if bytes {
			return nil, false, fmt.Errorf("tokenizer: pre_tokenizer: a step after ByteLevel is not supported")
		}
		if typeOf(part) == `"Sequence"` {
			return nil, false, fmt.Errorf("tokenizer: pre_tokenizer: a Sequence within a Sequence is not supported")
		}
		more, b, err := parseSteps(part)
		if err != nil {
			return nil, false, fmt.Errorf("%w (step %d)", err, i+1)
		}
		steps, bytes = append(steps, more...), b
	}
	return steps, bytes, nil
}

// step is nil for a ByteLevel that only writes bytes.
func (p *preTokenizerPart) step() (s step, bytes bool, err error) {
	switch p.Type {
	case "Split":
		s, err = p.split()
		return s, false, err
	case "Digits":
		return digits{p.Individual}, false, nil
	case "ByteLevel":
		if p.AddPrefix {
			return nil, false, fmt.Errorf("ByteLevel: add_prefix_space is not supported")
		}
		if p.UseRegex == nil || *p.UseRegex {
			compiled, err := compile(gpt2Pattern)
			return split{find: compiled.next}, true, err
		}
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("%q is not supported, only Sequence, Split, Digits, ByteLevel, and WhitespaceSplit with WordLevel", p.Type)
}

func (p *preTokenizerPart) split() (step, error) {
	s := split{removed: p.Behavior == "Removed", invert: p.Invert}
	if p.Behavior != "Removed" && p.Behavior != "Isolated" {
		return nil, fmt.Errorf("step Split: behavior %q is not supported, only Isolated and Removed", p.Behavior)
	}
	if text, ok := p.Pattern["String"]; ok && len(p.Pattern) == 1 && text != "" {
		s.find = func(in string, from int) (start, end int) {
			if i := strings.Index(in[from:], text); i >= 0 {
				return from + i, from + i + len(text)
			}
			return len(in), len(in)
		}
		return s, nil
	}
	regex, ok := p.Pattern["Regex"]
	if !ok || len(p.Pattern) != 1 {
		return nil, fmt.Errorf("step Split: pattern %v is not supported", p.Pattern)
	}
	compiled, err := compile(regex)
	if err != nil {
		return nil, fmt.Errorf("step Split: %w", err)
	}
	s.find = compiled.next
	return s, nil
}

// split cuts at matches: each match is a piece, and so is what stands between two.
type split struct {
	find    func(text string, from int) (start, end int)
	removed bool // matches go; with invert, what is between them
	invert  bool
}

func (s split) cut(pieces []string, text string) []string {
	keep := func(piece string, match bool) {
		if piece != "" && !(s.removed && match != s.invert) {
			pieces = append(pieces, piece)
		}
	}
	for at := 0; at < len(text); {
		start, end := s.find(text, at)
		keep(text[at:start], false)
		keep(text[start:end], true)
		at = end
	}
	return pieces
}

// digits cuts numerals from the rest, each by itself or in runs.
type digits struct{ individual bool }

func (d digits) cut(pieces []string, text string) []string {
	start, inDigits := 0, false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		is := isNumeric(r)
		if i > start && (is != inDigits || is && d.individual) {
			pieces = append(pieces, text[start:i])
			start = i
		}
		inDigits = is
		i += size
	}
	if start < len(text) {
		pieces = append(pieces, text[start:])
	}
	return pieces
}
