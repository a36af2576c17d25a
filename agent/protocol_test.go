package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMiniTexts(t *testing.T) {
	p := Mini()
	for _, tc := range [][2]string{
		{p.Prefix([]string{"noge employer founder", " kome  birth\n"}),
			"<bos> answer all questions : q1 noge employer founder ; q2 kome birth ; </q>"},
		{p.Observation([]Document{{Title: "noge", Text: "spouse fagi ; employer kome ; birth gola ;"}}, 5),
			"<information> turns 5 ; title noge : spouse fagi ; employer kome ; birth gola ; </information>"},
		{p.Observation([]Document{{Title: "noge", Text: "birth gola ;"}, {Title: "gola", Text: "."}}, 12),
			"<information> turns 12 ; title noge : birth gola ; title gola : . </information>"},
		{p.Observation(nil, 1), "<information> turns 1 ; none </information>"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("got  %q\nwant %q", tc[0], tc[1])
		}
	}
}

func TestMEM1Texts(t *testing.T) {
	p := MEM1()
	docs := []Document{{Title: "Paris", Text: "Paris is the\n capital of France."}, {Title: "Lyon", Text: "Lyon is a city."}}
	for _, tc := range [][2]string{
		{p.Observation(docs, 5), "\n\n<information>\nYou have 5 turns left.\nDoc 1(Title: Paris) Paris is the capital of France.\n" +
			"Doc 2(Title: Lyon) Lyon is a city.\n</information>\n\n"},
		{p.Observation(nil, 1), "\n\n<information>\nYou have 1 turn left: give your answers now.\nNothing was found.\n</information>\n\n"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("got  %q\nwant %q", tc[0], tc[1])
		}
	}
	prefix := p.Prefix([]string{"who sings {{count}}?", "where  is\nParis?"})
	if !strings.Contains(prefix, "Questions: who sings {{count}}?; where is Paris?\n") || !strings.Contains(prefix, "a list of 2,") {
		t.Errorf("prefix: %s", prefix)
	}
	p.DocumentWords = 2
	if got := p.Observation(docs[:1], 2); !strings.Contains(got, "(Title: Paris) Paris is\n") {
		t.Errorf("not cut after two words: %q", got)
	}
}

func TestBudgets(t *testing.T) {
	mini, mem1 := Mini(), MEM1()
	for _, tc := range []struct{ got, want int }{
		{mini.Turns(2), 6}, {mini.Turns(16), 34}, {mini.MaxNewTokens(2), 32}, {mini.MaxNewTokens(16), 116}, {mini.TopK, 1},
		{mem1.Turns(1), 3}, {mem1.Turns(2), 6}, {mem1.Turns(16), 48}, {mem1.MaxNewTokens(16), 1000}, {mem1.TopK, 3},
	} {
		if tc.got != tc.want {
			t.Errorf("got %d, want %d", tc.got, tc.want)
		}
	}
}

func TestCheck(t *testing.T) {
	many := strings.Split(strings.Repeat("noge birth,", 33), ",")[:33]
	broken := func(change func(*Protocol)) Protocol {
		p := Mini()
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		p         Protocol
		questions []string
		says      string
	}{
		"zero value":     {Protocol{Name: "x"}, []string{"a"}, "without a constructor"},
		"no questions":   {Mini(), nil, "no questions"},
		"empty question": {MEM1(), []string{"a", " \n"}, "question 2 is empty"},
		"too many":       {Mini(), many, "at most 32"},
		"no turns":       {broken(func(p *Protocol) { p.TurnsPerQuestion, p.ExtraTurns = 0, 0 }), many[:1], "turn budget"},
		"no tokens":      {broken(func(p *Protocol) { p.NewTokens = -99 }), many[:1], "response limit"},
		"no documents":   {broken(func(p *Protocol) { p.TopK = 0 }), many[:1], "top-k"},
	} {
		if err := tc.p.Check(tc.questions); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	mem1 := MEM1()
	if err := mem1.Check(many); err != nil {
		t.Error(err)
	}
}

func TestLoadProtocol(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range []string{"mini", "mem1"} {
		if p, err := LoadProtocol(name); err != nil || p.Name != name {
			t.Errorf("%s: got %s, %v", name, p.Name, err)
		}
	}
	p, err := LoadProtocol(write("short.txt", "{{count}} to answer: {{questions}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Prefix([]string{"a?", "b?"}); p.Name != "short" || got != "2 to answer: a?; b?\n" {
		t.Errorf("%s: %q", p.Name, got)
	}
	for path, says := range map[string]string{
		filepath.Join(dir, "none.txt"):                      "neither mini, mem1 nor a prompt file",
		write("bare.txt", "no questions here"):              "has no {{questions}}",
		write("typo.txt", "{{questions}} and {{question}}"): "unknown placeholder {{question}}",
		write("bytes.txt", "\xff{{questions}}"):             "UTF-8",
	} {
		if _, err := LoadProtocol(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// A document that is too long loses its end, by whole words. What stands around it
// stays: the turns left, the other documents, the closing tag.
func TestLongDocumentsLoseTheirEnd(t *testing.T) {
	mini, mem1 := Mini(), MEM1()
	mini.DocumentWords, mem1.DocumentWords = 3, 3
	docs := []Document{
		{Title: "Gola", Text: "first second\tthird fourth ANSWER"},
		{Title: "Kome", Text: "one two three"},
	}
	for _, tc := range [][2]string{
		{mini.Observation(docs, 4), "<information> turns 4 ; title Gola : first second third title Kome : one two three </information>"},
		{mem1.Observation(docs, 4), "\n\n<information>\nYou have 4 turns left.\n" +
			"Doc 1(Title: Gola) first second third\nDoc 2(Title: Kome) one two three\n</information>\n\n"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("got  %q\nwant %q", tc[0], tc[1])
		}
	}
	// An episode shows and records the same: nothing cuts an observation later, nor the
	// contexts that it goes into.
	o := miniOptions()
	o.Protocol.DocumentWords = 3
	tr := run(t, oracle(o.Tokenizer), miniWorld, o, miniTask)[0]
	const shown = "<information> turns 5 ; title noge : spouse fagi ; </information>"
	second := tr.Calls[1]
	span := second.Spans[len(second.Spans)-1]
	if got := o.Tokenizer.Decode(tr.Calls[0].Observation); got != shown {
		t.Errorf("observed %q", got)
	}
	if got := o.Tokenizer.Decode(second.Context[span.Start:span.End]); got != shown {
		t.Errorf("seen %q", got)
	}
}
