package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// placeholder finds what stands in double braces.
var placeholder = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// Template makes a protocol whose prefix is the text with {{questions}} replaced
// by the questions, joined by "; ", and {{count}} by their number. Everything else
// is as in [MEM1]. A text without {{questions}}, with another placeholder, or
// not in UTF-8 is an error.
func Template(name, text string) (Protocol, error) {
	if !utf8.ValidString(text) {
		return Protocol{}, fmt.Errorf("prompt %s: is not UTF-8", name)
	}
	found := false
	for _, mark := range placeholder.FindAllString(text, -1) {
		switch mark {
		case "{{questions}}":
			found = true
		case "{{count}}":
		default:
			return Protocol{}, fmt.Errorf("prompt %s: unknown placeholder %s (known: {{questions}}, {{count}})", name, mark)
		}
	}
	if !found {
		return Protocol{}, fmt.Errorf("prompt %s: has no {{questions}}", name)
	}
	return Protocol{
		Name:             name,
		TurnsPerQuestion: 3,
		NewTokens:        1000,
		TopK:             3,
		DocumentWords:    200,
		prefix: func(questions []string) string {
			// One pass: braces in a question stay what they are.
			return strings.NewReplacer(
				"{{questions}}", strings.Join(questions, "; "),
				"{{count}}", strconv.Itoa(len(questions)),
			).Replace(text)
		},
		observation: mem1Observation,
		unavailable: mem1Unavailable,
	}, nil
}

// LoadProtocol returns the builtin of that name ("mini", "mem1"), or else reads
// the prompt template in the file of that name, see [Template].
func LoadProtocol(name string) (Protocol, error) {
	switch name {
	case "mini":
		return Mini(), nil
	case "mem1":
		return MEM1(), nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return Protocol{}, fmt.Errorf("protocol %q is neither mini, mem1 nor a prompt file: %w", name, err)
	}
	base := filepath.Base(name)
	return Template(strings.TrimSuffix(base, filepath.Ext(base)), string(text))
}
