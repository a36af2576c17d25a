package agent

import (
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// The reasons why a response is unusable, as they stand in trace.Call.Reason.
const (
	ReasonEmpty          = "empty output"            // nothing but white space
	ReasonNoTag          = "no search or answer tag" // text, but no tag of either kind
	ReasonUnclosedSearch = "search tag not closed"   // <search> and no closing tag after it
	ReasonUnclosedAnswer = "answer tag not closed"   // <answer> and no closing tag after it
	ReasonUnopenedSearch = "closing search tag without an opening one"
	ReasonUnopenedAnswer = "closing answer tag without an opening one"
	ReasonTagInside      = "another tag inside the search or answer" // <answer> a <search> b </answer>
	ReasonEmptyQuery     = "empty query"                             // <search> </search>
)

// Action is what a response asks for.
type Action struct {
	Outcome trace.Outcome
	Query   string   // of a search: one line, single spaces
	Answers []string // of an answer: trimmed, in order, as many as were given
	Reason  string   // why it is unusable, one of the Reason constants
}

// Parse reads a response. It never fails: a text that asks for nothing clear has
// the outcome unusable and a reason.
//
// The first closing tag, </search> or </answer>, decides, for there the sampler
// stops; text behind it is not read, so of several complete actions the first
// counts. The body is what stands between that tag and the last opening tag of
// its kind before it, so "<search> I mean <search> x </search>" searches for x,
// and tags inside the thinking do no harm. Think tags are not asked for: their
// absence, or an unclosed one before the action, changes nothing.
//
//	no closing tag, an opening one   unusable: the action was not finished
//	no tag                           unusable
//	closing tag, never opened        unusable, even if a whole action follows
//	a protocol tag in the body       unusable: nested or mixed actions
//	empty query                      unusable
//	empty answer                     an answer with no answers
//
// An answer is split at ";": "a; b" gives a and b, "; b" an empty one and b, "a;"
// a and an empty one. Their number is not compared with the questions'. Bytes
// that are no UTF-8 become U+FFFD.
func Parse(text string) Action {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return unusable(ReasonEmpty)
	}
	search := strings.Index(text, searchClose)
	answer := strings.Index(text, answerClose)
	switch {
	case search < 0 && answer < 0:
		return unusable(unclosed(text))
	case answer < 0 || search >= 0 && search < answer:
		return parseSearch(text[:search])
	default:
		return parseAnswer(text[:answer])
	}
}

func unusable(reason string) Action {
	return Action{Outcome: trace.OutcomeUnusable, Reason: reason}
}

// unclosed names what lacks in a text without closing tag; the last opening tag
// is the one that the model was at.
func unclosed(text string) string {
	search := strings.LastIndex(text, searchOpen)
	answer := strings.LastIndex(text, answerOpen)
	switch {
	case search < 0 && answer < 0:
		return ReasonNoTag
	case search > answer:
		return ReasonUnclosedSearch
	default:
		return ReasonUnclosedAnswer
	}
}

// parseSearch reads what stands before the first closing tag, a </search>.
func parseSearch(text string) Action {
	body, ok := after(text, searchOpen)
	if !ok {
		return unusable(ReasonUnopenedSearch)
	}
	if holdsTag(body) {
		return unusable(ReasonTagInside)
	}
	query := joinFields(body)
	if query == "" {
		return unusable(ReasonEmptyQuery)
	}
	return Action{Outcome: trace.OutcomeSearch, Query: query}
}

// parseAnswer reads what stands before the first closing tag, an </answer>.
func parseAnswer(text string) Action {
	body, ok := after(text, answerOpen)
	if !ok {
		return unusable(ReasonUnopenedAnswer)
	}
	if holdsTag(body) {
		return unusable(ReasonTagInside)
	}
	act := Action{Outcome: trace.OutcomeAnswer}
	if strings.TrimSpace(body) == "" {
		return act
	}
	for part := range strings.SplitSeq(body, ";") {
		act.Answers = append(act.Answers, joinFields(part))
	}
	return act
}

// after returns what follows the last occurrence of the tag.
func after(text, tag string) (string, bool) {
	i := strings.LastIndex(text, tag)
	if i < 0 {
		return "", false
	}
	return text[i+len(tag):], true
}

func holdsTag(body string) bool {
	for _, tag := range []string{
		thinkOpen, thinkClose, searchOpen, answerOpen, infoOpen, infoClose,
	} {
		if strings.Contains(body, tag) {
			return true
		}
	}
	return false
}
