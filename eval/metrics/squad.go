package metrics

import (
	"strings"
)

// NormalizeSQuAD is normalize_answer of SQuAD's and HotpotQA's official scripts:
// lower case, without string.punctuation, with the words a, an, the replaced by
// a space, white space collapsed.
func NormalizeSQuAD(s string) string {
	s = strings.Map(func(r rune) rune {
		if pyPunctuation(r) {
			return -1
		}
		return r
	}, pyLower(s))
	return strings.Join(pyFields(dropArticles(s)), " ")
}

// dropArticles is re.sub(r'\b(a|an|the)\b', ' ', s): a whole run of word
// characters is an article or none of it is.
func dropArticles(s string) string {
	var b, word strings.Builder
	flush := func() {
		switch w := word.String(); w {
		case "a", "an", "the":
			b.WriteByte(' ')
		default:
			b.WriteString(w)
		}
		word.Reset()
	}
	for _, r := range s {
		if pyWord(r) {
			word.WriteRune(r)
			continue
		}
		flush()
		b.WriteRune(r)
	}
	flush()
	return b.String()
}

// SQuAD is the mean over a task's questions of the exact match and of the F1,
// each the maximum over the question's golds. A question without an answer
// counts 0, answers beyond the questions are ignored; no questions give 0.
func SQuAD(answers []string, golds [][]string) Score {
	var sum Score
	for i := range golds {
		if i < len(answers) {
			s := SQuADQuestion(answers[i], golds[i])
			sum.EM += s.EM
			sum.F1 += s.F1
		}
	}
	if n := float64(len(golds)); n > 0 {
		sum.EM /= n
		sum.F1 /= n
	}
	return sum
}

// SQuADQuestion scores one answer as HotpotQA's official script does
// (hotpot_evaluate_v1.py), against the best of several golds for each of EM and
// F1, as SQuAD's does.
//
// As there, F1 counts tokens with their multiplicity, "yes", "no" and "noanswer"
// on either side must match exactly, and an answer and a gold that both
// normalise to nothing have EM 1 and F1 0.
func SQuADQuestion(answer string, golds []string) Score {
	var best Score
	a := NormalizeSQuAD(answer)
	for _, gold := range golds {
		g := NormalizeSQuAD(gold)
		if a == g {
			best.EM = 1
		}
		best.F1 = max(best.F1, squadF1(a, g))
	}
	return best
}

// squadF1 compares normalised texts. The order of operations is the official
// script's, so that equal inputs give equal bits.
func squadF1(a, g string) float64 {
	if a != g && (closed(a) || closed(g)) {
		return 0
	}
	// A normalised text is split at white space, single spaces by now.
	answer, gold := pyFields(a), pyFields(g)
	count := make(map[string]int, len(gold))
	for _, w := range gold {
		count[w]++
	}
	same := 0
	for _, w := range answer {
		if count[w] > 0 {
			count[w]--
			same++
		}
	}
	if same == 0 {
		return 0
	}
	precision := float64(same) / float64(len(answer))
	recall := float64(same) / float64(len(gold))
	return (2 * precision * recall) / (precision + recall)
}

// closed reports an answer of HotpotQA's comparison questions.
func closed(s string) bool { return s == "yes" || s == "no" || s == "noanswer" }
