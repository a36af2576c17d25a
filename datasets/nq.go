package datasets

import (
	"encoding/json"
	"fmt"
)

// nqHops is the number of documents that a Natural Questions question needs.
const nqHops = 1

// decodeNQOpen reads NQ-open (google-research-datasets/natural-questions):
// `question` and the list `answer`. There are no ids; a question's is made from
// its text.
func decodeNQOpen(raw []byte, source string) (entry, error) {
	var r struct {
		Question *string  `json:"question"`
		Answer   []string `json:"answer"`
	}
	if err := unmarshal(raw, &r); err != nil {
		return entry{}, err
	}
	return entry{}.withQuestion(Question{Source: source, Hops: nqHops}, r.Question, "answer", r.Answer)
}

// decodeNQOracle reads nq-open-oracle (nelson-liu/lost-in-the-middle): the
// list `answers` and `ctxs`, passages of which the gold ones are marked.
func decodeNQOracle(raw []byte, source string) (entry, error) {
	var r struct {
		Question *string  `json:"question"`
		Answers  []string `json:"answers"`
		Contexts []struct {
			Title *string `json:"title"`
			Text  *string `json:"text"`
			Gold  bool    `json:"isgold"`
		} `json:"ctxs"`
	}
	if err := unmarshal(raw, &r); err != nil {
		return entry{}, err
	}
	var e entry
	for i, c := range r.Contexts {
		if c.Title == nil || c.Text == nil {
			return entry{}, badField("ctxs", "passage %d of %d has no title or no text", i+1, len(r.Contexts))
		}
		e.passages = append(e.passages, newPassage(*c.Title, *c.Text))
		if c.Gold {
			e.addEvidence(*c.Title)
		}
	}
	return e.withQuestion(Question{Source: source, Hops: nqHops}, r.Question, "answers", r.Answers)
}

// decodeFlashRAG reads FlashRAG's layout (RUC-NLPIR/FlashRAG): `id`, `question`
// and the list `golden_answers`.
func decodeFlashRAG(raw []byte, source string) (entry, error) {
	var r struct {
		ID       textOrNumber `json:"id"`
		Question *string      `json:"question"`
		Golds    []string     `json:"golden_answers"`
	}
	if err := unmarshal(raw, &r); err != nil {
		return entry{}, err
	}
	q := Question{ID: string(r.ID), Source: source, Hops: hopsOf(source)}
	return entry{}.withQuestion(q, r.Question, "golden_answers", r.Golds)
}

// hopsOf returns the hops of a data set's questions, 0 when they are not known.
func hopsOf(source string) int {
	switch source {
	case "nq":
		return nqHops
	case "hotpotqa":
		return hotpotHops
	}
	return 0
}

// textOrNumber is an id that some files write as a number.
type textOrNumber string

// UnmarshalJSON takes a string or a number.
func (t *textOrNumber) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = textOrNumber(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil {
		return fmt.Errorf("an id is %s, want a string or a number", raw)
	}
	*t = textOrNumber(n)
	return nil
}
