package datasets

import (
	"encoding/json"
	"fmt"
)

// hotpotHops is the number of documents that a HotpotQA question needs.
const hotpotHops = 2

// decodeHotpot reads HotpotQA's official layout (hotpotqa.github.io): `_id`,
// `question`, `answer`, `supporting_facts` as [title, sentence] pairs and
// `context` as [title, sentences] pairs. Only question and answer must be there,
// so that ReAct's simplified file is read too.
func decodeHotpot(raw []byte, source string) (entry, error) {
	var r struct {
		ID       string            `json:"_id"`
		Question *string           `json:"question"`
		Answer   *string           `json:"answer"`
		Facts    []json.RawMessage `json:"supporting_facts"`
		Context  []json.RawMessage `json:"context"`
	}
	if err := unmarshal(raw, &r); err != nil {
		return entry{}, err
	}
	var e entry
	for i, pair := range r.Context {
		title, sentences, err := decodePair[[]string](pair)
		if err != nil {
			return entry{}, badField("context", "passage %d of %d: %w", i+1, len(r.Context), err)
		}
		e.passages = append(e.passages, newPassage(title, joinSentences(sentences)))
	}
	for i, pair := range r.Facts {
		title, _, err := decodePair[int](pair)
		if err != nil {
			return entry{}, badField("supporting_facts", "fact %d of %d: %w", i+1, len(r.Facts), err)
		}
		e.addEvidence(title)
	}
	return e.withQuestion(Question{ID: r.ID, Source: source, Hops: hotpotHops}, r.Question, "answer", single(r.Answer))
}

// decodePair reads a JSON array of a title and one thing more.
func decodePair[T any](raw []byte) (title string, second T, err error) {
	var pair []json.RawMessage
	if err = json.Unmarshal(raw, &pair); err != nil {
		return title, second, err
	}
	if len(pair) != 2 {
		return title, second, fmt.Errorf("%d parts, want 2", len(pair))
	}
	if err = json.Unmarshal(pair[0], &title); err != nil {
		return title, second, err
	}
	return title, second, json.Unmarshal(pair[1], &second)
}

// decodeHotpotHF reads the layout of Hugging Face's hotpotqa/hotpot_qa, where
// context and supporting_facts are structs of parallel lists.
func decodeHotpotHF(raw []byte, source string) (entry, error) {
	var r struct {
		ID       string  `json:"id"`
		Question *string `json:"question"`
		Answer   *string `json:"answer"`
		Facts    struct {
			Title []string `json:"title"`
		} `json:"supporting_facts"`
		Context struct {
			Title     []string   `json:"title"`
			Sentences [][]string `json:"sentences"`
		} `json:"context"`
	}
	if err := unmarshal(raw, &r); err != nil {
		return entry{}, err
	}
	if len(r.Context.Title) != len(r.Context.Sentences) {
		return entry{}, badField("context", "%d titles for %d lists of sentences", len(r.Context.Title), len(r.Context.Sentences))
	}
	var e entry
	for i, title := range r.Context.Title {
		e.passages = append(e.passages, newPassage(title, joinSentences(r.Context.Sentences[i])))
	}
	for _, title := range r.Facts.Title {
		e.addEvidence(title)
	}
	return e.withQuestion(Question{ID: r.ID, Source: source, Hops: hotpotHops}, r.Question, "answer", single(r.Answer))
}

// single is the list of a lone answer, nil when it is missing.
func single(answer *string) []string {
	if answer == nil {
		return nil
	}
	return []string{*answer}
}
