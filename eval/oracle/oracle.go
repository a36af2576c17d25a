// Package oracle writes what a perfect agent would have written on real
// questions: it sees the golds and the titles of the passages that they rest on,
// searches as an agent could, and notes what it was shown. Its texts, run through
// the agent and the index as a model's would be, are examples for supervised
// fine-tuning without a teacher model. They speak the protocol "mem1".
package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval/metrics"
)

// Reason says why the oracle leaves a question out; "" is none.
type Reason string

// The reasons.
const (
	NoEvidence   Reason = "no evidence known"
	NotRetrieved Reason = "evidence not retrieved"
	NotShown     Reason = "answer not in what was shown" // nor in its first words, where texts are cut
	HoldsTag     Reason = "a text holds a tag of the protocol"
)

// Oracle plans answers. All fields are needed.
type Oracle struct {
	Searcher agent.Searcher
	Protocol agent.Protocol // how many documents are shown, and how much of each

	SearchesMax int // most searches for one question
	NoteWords   int // longest note taken from a passage
}

// New returns an oracle with two searches a question, which is what MEM1's three
// turns a question always leave room for, and notes of up to 24 words.
func New(s agent.Searcher, p agent.Protocol) *Oracle {
	return &Oracle{Searcher: s, Protocol: p, SearchesMax: 2, NoteWords: 24}
}

// Plan is how one question is answered.
type Plan struct {
	Question string
	Steps    []Step
	Answer   string // the first gold that a passage shows; of yes and no, the gold
}

// Step is one search and what is written down of its results.
type Step struct {
	Query string
	Notes []string // one a passage of the evidence, each a sentence after the passage's title
}

// Question plans one question. Every search brings up a passage that the answer
// rests on, and after the last one all of them were shown, with a gold in their
// text; of questions whose gold is yes or no, the passages suffice. A question for
// which that fails is left out, and the reason says why. An error is the searcher's.
//
// It searches for a title that the question or a passage shown names, else for
// the question as it stands, and only then for a title that nobody could know.
func (o *Oracle) Question(ctx context.Context, q datasets.Question) (Plan, Reason, error) {
	if len(q.Evidence) == 0 {
		return Plan{}, NoEvidence, nil
	}
	s := search{oracle: o, question: q, missing: slices.Clone(q.Evidence), read: q.Question}
	for len(s.missing) > 0 {
		found, err := s.step(ctx)
		if err != nil {
			return Plan{}, "", fmt.Errorf("oracle: question %s: %w", q.ID, err)
		}
		if !found {
			return Plan{}, NotRetrieved, nil
		}
	}
	answer, ok := s.answer()
	if !ok {
		return Plan{}, NotShown, nil
	}
	p := Plan{Question: q.Question, Steps: s.steps, Answer: answer}
	if p.holdsTag() {
		return Plan{}, HoldsTag, nil
	}
	return p, "", nil
}

// search is the state of planning one question.
type search struct {
	oracle   *Oracle
	question datasets.Question
	missing  []string         // titles not yet found
	evidence []agent.Document // found, as shown
	read     string           // all that the agent knows so far: the question and the passages
	steps    []Step
}

// step makes the first search that brings up something missing.
func (s *search) step(ctx context.Context) (found bool, err error) {
	if len(s.steps) == s.oracle.SearchesMax {
		return false, nil
	}
	for _, query := range s.queries() {
		docs, err := s.oracle.Searcher.Search(ctx, s.question.World, query, s.oracle.Protocol.TopK)
		if err != nil {
			return false, err
		}
		fresh := s.take(s.oracle.Protocol.Shown(docs))
		if len(fresh) == 0 {
			continue
		}
		step := Step{Query: query}
		for _, d := range fresh {
			step.Notes = append(step.Notes, s.note(d))
		}
		s.steps = append(s.steps, step)
		return true, nil
	}
	return false, nil
}

// queries lists what could be asked next, the best first, none twice.
func (s *search) queries() []string {
	var known, unknown []string
	for _, title := range s.missing {
		if names(s.read, title) {
			known = append(known, title)
		} else {
			unknown = append(unknown, title)
		}
	}
	slices.SortStableFunc(known, func(a, b string) int { return place(s.read, a) - place(s.read, b) })
	return append(append(known, s.question.Question), unknown...)
}

// take moves what was missing from the documents to the evidence. A passage with
// the right title counts only if it shows what is still needed of it: where one
// title is missing and no gold was shown, that is a gold.
func (s *search) take(docs []agent.Document) (fresh []agent.Document) {
	for _, d := range docs {
		i := slices.IndexFunc(s.missing, func(title string) bool { return sameTitle(title, d.Title) })
		if i < 0 || !s.useful(d) {
			continue
		}
		s.missing = slices.Delete(s.missing, i, i+1)
		s.evidence = append(s.evidence, d)
		s.read += "\n" + d.Title + "\n" + d.Text
		fresh = append(fresh, d)
	}
	return fresh
}

// useful tells passages of one title apart: long articles stand in several, and
// the one with the answer is meant.
func (s *search) useful(d agent.Document) bool {
	return len(s.question.Evidence) > 1 || isVerdict(s.question) || metrics.HasAnswer(d.Text, s.question.Golds)
}

// answer is the first gold that the evidence shows.
func (s *search) answer() (string, bool) {
	if isVerdict(s.question) {
		return s.question.Golds[0], true
	}
	for _, gold := range s.question.Golds {
		for _, d := range s.evidence {
			if metrics.HasAnswer(d.Title+"\n"+d.Text, []string{gold}) {
				return gold, true
			}
		}
	}
	return "", false
}

// isVerdict tells yes-or-no questions, whose answer no passage spells out.
func isVerdict(q datasets.Question) bool {
	return slices.ContainsFunc(q.Golds, func(g string) bool {
		g = strings.ToLower(g)
		return g == "yes" || g == "no"
	})
}

// protocolTags are what a response may hold once, or not at all.
var protocolTags = []string{"<think>", "</think>", "<search>", "</search>", "<answer>", "</answer>", "<information>", "</information>"}

func (p Plan) holdsTag() bool {
	text := p.Answer
	for _, s := range p.Steps {
		text += s.Query + strings.Join(s.Notes, "")
	}
	return slices.ContainsFunc(protocolTags, func(tag string) bool { return strings.Contains(text, tag) })
}
