package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Record is one question as a file holds it, with the passages beside it.
type Record struct {
	Question Question
	Number   int        // of the record in its file, from 0; the questions of a multi-question record share it
	Passages []Document // HotpotQA's context, nq-open-oracle's ctxs; nil elsewhere
}

// RecordError says what is wrong with a record, and where it stands.
type RecordError struct {
	Path  string
	Unit  string // "line" in JSONL, "record" in a JSON array, "row" in Parquet
	N     int    // from 1
	Field string // "" where the whole record is meant
	Err   error
}

// Error names the file, the place and the field.
func (e *RecordError) Error() string {
	where := fmt.Sprintf("%s: %s %d", e.Path, e.Unit, e.N)
	if e.Field != "" {
		where += ": field " + e.Field
	}
	return where + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// fieldError is an error of one field of a record; the reader adds the place.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return "field " + e.field + ": " + e.err.Error() }

func badField(field, format string, args ...any) error {
	return &fieldError{field, fmt.Errorf(format, args...)}
}

// ofQuestion says which question of a multi-question record an error is of.
func ofQuestion(i int, err error) error {
	var f *fieldError
	if errors.As(err, &f) {
		return badField(f.field, "question %d: %w", i+1, f.err)
	}
	return fmt.Errorf("question %d: %w", i+1, err)
}

var errMissing = errors.New("missing")

// unmarshal decodes one record and names the field that has a wrong type.
func unmarshal(raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return badField(strings.TrimPrefix(wrong.Field, "."), "found %s, want %s", wrong.Value, wrong.Type)
	}
	if err != nil {
		return fmt.Errorf("invalid JSON: %w", err)
	}
	return nil
}

// newQuestion cleans a question's texts and checks that it can be asked: there
// is a text, and each of its golds says something. Repeated golds go.
func newQuestion(q Question, text *string, goldField string, golds []string) (Question, error) {
	if text == nil {
		return q, &fieldError{"question", errMissing}
	}
	if q.Question = cleanText(*text); q.Question == "" {
		return q, badField("question", "empty")
	}
	if len(golds) == 0 {
		return q, &fieldError{goldField, errMissing}
	}
	q.Golds = make([]string, 0, len(golds))
	for i, g := range golds {
		g = cleanText(g)
		if g == "" {
			return q, badField(goldField, "answer %d of %d is empty", i+1, len(golds))
		}
		if !slices.Contains(q.Golds, g) {
			q.Golds = append(q.Golds, g)
		}
	}
	if q.ID == "" {
		q.ID = q.Source + "-" + Key(q)
	}
	return q, nil
}

// newPassage makes a document of a title and a text.
func newPassage(title, text string) Document {
	title, text = cleanTitle(title), cleanText(text)
	return Document{ID: PassageID(title, text), Title: title, Text: text}
}

// joinSentences puts HotpotQA's sentences together: each begins with the space
// that stood before it, if there was one.
func joinSentences(sentences []string) string { return strings.Join(sentences, "") }

// entry is what one record of a file decodes to.
type entry struct {
	task      string // id of a multi-question record, "" elsewhere
	world     string
	questions []Question
	passages  []Document
	evidence  []string // of the question to come
}

func (e *entry) addEvidence(title string) {
	if title = cleanTitle(title); title != "" && !slices.Contains(e.evidence, title) {
		e.evidence = append(e.evidence, title)
	}
}

// withQuestion adds a checked question, [newQuestion]'s errors included.
func (e entry) withQuestion(q Question, text *string, goldField string, golds []string) (entry, error) {
	q, err := newQuestion(q, text, goldField, golds)
	if err != nil {
		return entry{}, err
	}
	q.Evidence, e.evidence = e.evidence, nil
	e.questions = append(e.questions, q)
	return e, nil
}
