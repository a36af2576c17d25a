package datasets

import (
	"fmt"
	"strings"
)

// Separator joins a task's questions in MEM1's prompt and, without the space,
// parts its answers: a question or an answer that holds it cannot be told apart.
const Separator = ";"

// mem1Marker is what stands before the questions in MEM1's prompts.
const mem1Marker = "Answer the following questions: "

// rowInfo holds the columns that Search-R1, MEM1 and this project share.
type rowInfo struct {
	DataSource string `json:"data_source"`
	Prompt     []struct {
		Content string `json:"content"`
	} `json:"prompt"`
	ExtraInfo struct {
		Split   string `json:"split"`
		Indices []int  `json:"indices"`
	} `json:"extra_info"`
}

// source is the data set that a row names, or the one given for the file.
func (r rowInfo) source(given string) string {
	if given != "" {
		return given
	}
	return r.DataSource
}

// decodeSearchR1 reads Search-R1's Parquet rows (PeterGriffinJin/Search-R1):
// one question with FlashRAG's columns, and the golds once more in reward_model.
func decodeSearchR1(raw []byte, source string) (entry, error) {
	var r struct {
		rowInfo
		ID       textOrNumber `json:"id"`
		Question *string      `json:"question"`
		Golds    []string     `json:"golden_answers"`
		Reward   struct {
			Truth struct {
				Target []string `json:"target"`
			} `json:"ground_truth"`
		} `json:"reward_model"`
	}
	if err := unmarshal(raw, &r); err != nil {
		return entry{}, err
	}
	field, golds := "reward_model.ground_truth.target", r.Reward.Truth.Target
	if len(golds) == 0 {
		field, golds = "golden_answers", r.Golds
	}
	src := r.source(source)
	return entry{}.withQuestion(Question{ID: string(r.ID), Source: src, Hops: hopsOf(src)}, r.Question, field, golds)
}

// decodeMEM1 reads MEM1's Parquet rows (MIT-MI/MEM1): several questions joined
// in the prompt, and one list of golds each.
func decodeMEM1(raw []byte, source string) (entry, error) {
	var r struct {
		rowInfo
		Reward struct {
			Truth struct {
				Target [][]string `json:"target"`
			} `json:"ground_truth"`
		} `json:"reward_model"`
	}
	if err := unmarshal(raw, &r); err != nil {
		return entry{}, err
	}
	const goldField = "reward_model.ground_truth.target"
	golds := r.Reward.Truth.Target
	if len(golds) == 0 {
		return entry{}, &fieldError{goldField, errMissing}
	}
	if len(r.Prompt) == 0 {
		return entry{}, &fieldError{"prompt", errMissing}
	}
	texts, err := splitMEM1Prompt(r.Prompt[len(r.Prompt)-1].Content, len(golds))
	if err != nil {
		return entry{}, err
	}
	src := r.source(source)
	var e entry
	for i, text := range texts {
		q := Question{Source: src, Hops: hopsOf(src)}
		if len(r.ExtraInfo.Indices) == len(golds) {
			q.ID = fmt.Sprintf("%s/%s/%d", src, r.ExtraInfo.Split, r.ExtraInfo.Indices[i])
		}
		if e, err = e.withQuestion(q, &text, goldField, golds[i]); err != nil {
			return entry{}, ofQuestion(i, err)
		}
	}
	return e, nil
}

// splitMEM1Prompt finds the n questions in a prompt of MEM1's. Its script ends
// each with "?" and joins them by "; ", so "?; " parts them even where a
// question holds "; " itself; "; " is tried for files of others.
func splitMEM1Prompt(prompt string, n int) ([]string, error) {
	at := strings.LastIndex(prompt, mem1Marker)
	if at < 0 {
		return nil, badField("prompt", "no %q in it", strings.TrimSpace(mem1Marker))
	}
	joined := strings.TrimSpace(prompt[at+len(mem1Marker):])
	if parts := strings.Split(joined, "?"+Separator+" "); len(parts) == n {
		for i := range parts[:n-1] {
			parts[i] += "?"
		}
		return parts, nil
	}
	parts := strings.Split(joined, Separator+" ")
	if len(parts) != n {
		return nil, badField("prompt", "%d questions for %d lists of answers: a question holds the separator", len(parts), n)
	}
	return parts, nil
}

// decodeTask reads the rows that this package writes: MEM1's columns and, in
// full, what they leave out.
func decodeTask(raw []byte, source string) (entry, error) {
	var r struct {
		TaskID    string     `json:"task_id"`
		World     string     `json:"world"`
		IDs       []string   `json:"question_ids"`
		Questions []string   `json:"questions"`
		Golds     [][]string `json:"golds"`
		Sources   []string   `json:"sources"`
		Hops      []int      `json:"hops"`
		Evidence  [][]string `json:"evidence"` // absent in files without any
	}
	if err := unmarshal(raw, &r); err != nil {
		return entry{}, err
	}
	n := len(r.Questions)
	if r.TaskID == "" {
		return entry{}, &fieldError{"task_id", errMissing}
	}
	if n == 0 {
		return entry{}, &fieldError{"questions", errMissing}
	}
	for name, got := range map[string]int{"question_ids": len(r.IDs), "golds": len(r.Golds), "sources": len(r.Sources), "hops": len(r.Hops)} {
		if got != n {
			return entry{}, badField(name, "%d values for %d questions", got, n)
		}
	}
	if len(r.Evidence) != 0 && len(r.Evidence) != n {
		return entry{}, badField("evidence", "%d values for %d questions", len(r.Evidence), n)
	}
	e := entry{task: r.TaskID, world: r.World}
	for i := range n {
		q := Question{ID: r.IDs[i], Source: r.Sources[i], World: r.World, Hops: r.Hops[i]}
		if source != "" {
			q.Source = source
		}
		if r.Evidence != nil {
			for _, title := range r.Evidence[i] {
				e.addEvidence(title)
			}
		}
		var err error
		if e, err = e.withQuestion(q, &r.Questions[i], "golds", r.Golds[i]); err != nil {
			return entry{}, ofQuestion(i, err)
		}
	}
	return e, nil
}
