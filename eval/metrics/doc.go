// Package metrics scores answers and counts what they cost, as pure functions
// on text and numbers. Two scorers stand side by side and are named in every
// table: "squad" (mean over a task's questions) and "mem1" (sum over them).
// Text is treated as Python's str treats it, because the public scorers are
// Python and their numbers are compared with ours.
package metrics

// Score is exact match and F1 of one question or one task.
type Score struct {
	EM float64 `json:"em"`
	F1 float64 `json:"f1"`
}

// Scorer scores the answers of one task, by index, against the golds of its
// questions (each with its alternatives).
type Scorer func(answers []string, golds [][]string) Score

// The names of the scorers.
const (
	NameSQuAD = "squad"
	NameMEM1  = "mem1"
)

// Scorers maps the names to the functions.
func Scorers() map[string]Scorer {
	return map[string]Scorer{NameSQuAD: SQuAD, NameMEM1: MEM1}
}
