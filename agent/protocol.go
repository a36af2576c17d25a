package agent

import (
	"errors"
	"fmt"
	"strings"
)

// The tags of MEM1's protocol that the agent reads and writes.
const (
	thinkOpen   = "<think>"
	thinkClose  = "</think>"
	searchOpen  = "<search>"
	searchClose = "</search>"
	answerOpen  = "<answer>"
	answerClose = "</answer>"
	infoOpen    = "<information>"
	infoClose   = "</information>"
)

// Protocol says how an agent speaks with its model: the texts that the model is
// shown, and the limits it works under. Take one from [Mini], [MEM1], [Template]
// or [LoadProtocol] and change its fields as need be. What the model writes is
// read by [Parse], alike for all protocols.
type Protocol struct {
	Name string

	TurnsPerQuestion     int // turn budget in calls: this for each question,
	ExtraTurns           int // and these besides
	NewTokens            int // token limit of one response: these,
	NewTokensPerQuestion int // and this for each question
	TopK                 int // documents asked of the searcher
	DocumentWords        int // a longer document text is cut after so many words; 0: never
	MaxQuestions         int // more than these the prompt cannot name; 0: any number

	prefix      func(questions []string) string
	observation func(docs []Document, callsLeft int) string
	unavailable func(callsLeft int) string // nil: as if nothing was found
}

// Prefix returns the task prefix: the text that every call begins with.
func (p *Protocol) Prefix(questions []string) string {
	clean := make([]string, len(questions))
	for i, q := range questions {
		clean[i] = joinFields(q)
	}
	return p.prefix(clean)
}

// Observation returns the text that answers a search. The docs stand in order of
// rank and may be none; callsLeft is how many calls the model still has.
func (p *Protocol) Observation(docs []Document, callsLeft int) string {
	return p.observation(p.Shown(docs), callsLeft)
}

// Unavailable returns the text that answers a search which could not be made. A
// protocol without words for that says that nothing was found.
func (p *Protocol) Unavailable(callsLeft int) string {
	if p.unavailable == nil {
		return p.observation(nil, callsLeft)
	}
	return p.unavailable(callsLeft)
}

// Shown returns documents as an observation shows them: white space joined, long
// texts cut.
func (p *Protocol) Shown(docs []Document) []Document {
	shown := make([]Document, len(docs))
	for i, d := range docs {
		shown[i] = Document{ID: d.ID, Title: joinFields(d.Title), Text: cutWords(d.Text, p.DocumentWords)}
	}
	return shown
}

// Turns returns the turn budget, in calls, of a task with n questions.
func (p *Protocol) Turns(n int) int { return p.TurnsPerQuestion*n + p.ExtraTurns }

// MaxNewTokens returns the token limit of one response in a task with n questions.
func (p *Protocol) MaxNewTokens(n int) int { return p.NewTokens + p.NewTokensPerQuestion*n }

// StopTags returns the tags whose completion ends a response.
func (p *Protocol) StopTags() []string { return []string{searchClose, answerClose} }

// Check says what is wrong with the settings, or with the questions of a task.
func (p *Protocol) Check(questions []string) error {
	n := len(questions)
	switch {
	case p.prefix == nil || p.observation == nil:
		return fmt.Errorf("protocol %q: made without a constructor", p.Name)
	case n == 0:
		return errors.New("no questions")
	case p.MaxQuestions > 0 && n > p.MaxQuestions:
		return fmt.Errorf("%d questions: protocol %s takes at most %d", n, p.Name, p.MaxQuestions)
	case p.Turns(n) < 1:
		return fmt.Errorf("protocol %s: a turn budget of %d", p.Name, p.Turns(n))
	case p.MaxNewTokens(n) < 1:
		return fmt.Errorf("protocol %s: a response limit of %d tokens", p.Name, p.MaxNewTokens(n))
	case p.TopK < 1:
		return fmt.Errorf("protocol %s: top-k of %d", p.Name, p.TopK)
	}
	for i, q := range questions {
		if strings.TrimSpace(q) == "" {
			return fmt.Errorf("question %d is empty", i+1)
		}
	}
	return nil
}

// joinFields puts one space for each run of white space, none at the ends.
func joinFields(s string) string { return strings.Join(strings.Fields(s), " ") }

// cutWords does as joinFields and keeps the first n words, all for n = 0.
func cutWords(s string, n int) string {
	words := strings.Fields(s)
	if n > 0 && len(words) > n {
		words = words[:n]
	}
	return strings.Join(words, " ")
}
