// Package datasets reads question sets, composes multi-question tasks from them
// and generates the mini-wiki, a small world of documents and questions.
package datasets

// Question is one question with every answer that counts as right.
type Question struct {
	ID       string   `json:"id"`
	Source   string   `json:"source"` // "nq", "hotpotqa", "miniwiki"
	World    string   `json:"world,omitempty"`
	Question string   `json:"question"`
	Golds    []string `json:"golds"`
	Hops     int      `json:"hops,omitempty"` // documents to be read; 0: not known

	// Evidence holds the titles of the passages that the answer rests on, as the
	// files name them: HotpotQA's supporting facts, NQ's gold passage. Nil: not
	// known. Like the golds it is for oracles and scores, and agents never see it.
	Evidence []string `json:"evidence,omitempty"`
}

// Task is a number of questions to be answered in one go.
type Task struct {
	ID        string     `json:"id"`
	World     string     `json:"world,omitempty"`
	Questions []Question `json:"questions"`
}

// Document is one passage of a corpus.
type Document struct {
	ID    string `json:"id"`
	World string `json:"world,omitempty"`
	Title string `json:"title"`
	Text  string `json:"text"`
}
