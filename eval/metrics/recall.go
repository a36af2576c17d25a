package metrics

import "strings"

// HasAnswer reports whether a passage holds one of the golds as a run of whole
// words, both under SQuAD's normalisation. A gold that normalises to nothing is
// in no passage. It measures retrieval, not answers.
func HasAnswer(passage string, golds []string) bool {
	text := " " + NormalizeSQuAD(passage) + " "
	for _, gold := range golds {
		g := NormalizeSQuAD(gold)
		if g != "" && strings.Contains(text, " "+g+" ") {
			return true
		}
	}
	return false
}
