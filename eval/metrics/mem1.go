package metrics

import (
	"regexp"
	"slices"
	"strings"
)

// NormalizeMEM1 is the text preparation of MEM1's evaluation (eval.py,
// preprocess_text): lower case, each character of string.punctuation a space,
// white space collapsed; articles stay.
func NormalizeMEM1(s string) string {
	s = strings.Map(func(r rune) rune {
		if pyPunctuation(r) {
			return ' '
		}
		return r
	}, pyLower(s))
	return strings.Join(pyFields(s), " ")
}

// SplitAnswers parts the text of an answer at ';', as MEM1 does.
func SplitAnswers(text string) []string {
	answers := strings.Split(pyStrip(text), ";")
	for i, a := range answers {
		answers[i] = pyStrip(a)
	}
	return answers
}

// MEM1 scores as MEM1's evaluation does (eval.py, compute_score): exact match
// and F1 over token sets, maximum over golds, summed over the questions; another
// number of answers than of questions gives 0, no answer too.
func MEM1(answers []string, golds [][]string) Score {
	var sum Score
	if len(answers) != len(golds) {
		return sum
	}
	for i := range golds {
		s := mem1Question(answers[i], golds[i])
		sum.EM += s.EM
		sum.F1 += s.F1
	}
	return sum
}

func mem1Question(answer string, golds []string) Score {
	var best Score
	a := NormalizeMEM1(answer)
	for _, gold := range golds {
		g := NormalizeMEM1(gold)
		if a == g {
			best.EM = 1
		}
		best.F1 = max(best.F1, setF1(pyFields(a), pyFields(g)))
	}
	return best
}

func setF1(answer, gold []string) float64 {
	answer, gold = distinct(answer), distinct(gold)
	common := 0
	for _, w := range answer {
		if _, found := slices.BinarySearch(gold, w); found {
			common++
		}
	}
	if common == 0 {
		return 0
	}
	precision := float64(common) / float64(len(answer))
	recall := float64(common) / float64(len(gold))
	return 2 * (precision * recall) / (precision + recall)
}

func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

var answerBlock = regexp.MustCompile(`(?s)<answer>(.*?)</answer>`)

// MEM1Reward is the reward of MEM1's training (qa_multiple.py,
// compute_score_em) on what the model itself wrote: the questions whose answer
// matches a gold under SQuAD's normalisation, by index, in the last complete
// answer block; answers beyond the questions are ignored.
//
// There, prompt and response are scored as one text, the prompt's example is the
// first block, and a text with fewer than two blocks is an AttributeError. Here
// one block counts and none gives 0.
func MEM1Reward(response string, golds [][]string) float64 {
	blocks := answerBlock.FindAllStringSubmatch(response, -1)
	if len(blocks) == 0 {
		return 0
	}
	reward := 0.0
	for i, answer := range SplitAnswers(blocks[len(blocks)-1][1]) {
		if i < len(golds) {
			reward += SQuADQuestion(answer, golds[i]).EM
		}
	}
	return reward
}
