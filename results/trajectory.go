package results

import "fmt"

// TrajectoriesFile is the name of the sample of trajectories in a results folder.
const TrajectoriesFile = "trajectories.jsonl.gz"

// TrajectoryView is a recorded trajectory in words, for people to read. Its texts
// are decoded from the ledger's ids; nothing is ever tokenised from them.
type TrajectoryView struct {
	Variant string `json:"variant"`
	Seed    int64  `json:"seed"`
	Horizon string `json:"horizon"`
	TaskID  string `json:"task_id"`
	Update  string `json:"update"` // name of the context update, such as "mem1"

	Questions []string   `json:"questions"`
	Golds     [][]string `json:"golds"` // of each question
	Answers   []string   `json:"answers"`
	Scores    []Score    `json:"scores"` // squad, of each question
	Values               // of the whole task

	End    string     `json:"end"`
	Error  string     `json:"error,omitempty"` // what failed, for the ends that are failures
	Prefix ViewText   `json:"prefix"`
	Calls  []CallView `json:"calls"`
}

// Score is one question's.
type Score struct {
	EM float64 `json:"em"`
	F1 float64 `json:"f1"`
}

// ViewText is a run of tokens as text.
type ViewText struct {
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

// ContextPart is a run of a context's tokens of one origin: "retained" is a copy of
// call FromCall's response, "observation" of what it was answered. Offset is where in
// that the copy begins, in tokens.
type ContextPart struct {
	Origin   string `json:"origin"`
	FromCall int    `json:"from_call"`
	Offset   int    `json:"offset,omitempty"`
	ViewText
}

// CallView is one call of the model.
type CallView struct {
	ContextTokens int           `json:"context_tokens"` // the task prefix included
	Context       []ContextPart `json:"context"`        // what follows the task prefix, in order
	// Dropped is what the call before saw or wrote, or was answered, and this call
	// no longer sees.
	Dropped []ContextPart `json:"dropped,omitempty"`

	Response    ViewText `json:"response"`
	Stop        string   `json:"stop"`
	Outcome     string   `json:"outcome"`
	Reason      string   `json:"reason,omitempty"` // why the outcome is unusable
	Query       string   `json:"query,omitempty"`
	Documents   []string `json:"documents,omitempty"` // ids
	Observation ViewText `json:"observation,omitzero"`
	Failure     string   `json:"failure,omitempty"` // why the search could not be made
	Seconds     float64  `json:"seconds"`           // model time
}

// Validate refuses a view without names, or whose lists do not go together.
func (v TrajectoryView) Validate() error {
	switch {
	case v.Variant == "" || v.Horizon == "" || v.TaskID == "":
		return fmt.Errorf("trajectory: variant %q, horizon %q, task %q", v.Variant, v.Horizon, v.TaskID)
	case len(v.Golds) != len(v.Questions) || len(v.Scores) != len(v.Questions):
		return fmt.Errorf("trajectory %s: %d questions, %d golds, %d scores", v.TaskID, len(v.Questions), len(v.Golds), len(v.Scores))
	}
	return wrap("trajectory "+v.TaskID, v.validate())
}
