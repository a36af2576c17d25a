package oracle

import (
	"fmt"
	"strings"
)

// Responses are the agent's turns on a task whose questions are answered by the
// plans, in order. The memory holds the answers that are settled, the notes on
// the question in hand, and what is wanted next; when a question is settled, its
// notes are written once more with the answer and then dropped:
//
//	<think> Question 1: nothing is known yet. </think>
//	<search> Kiss and Tell (1945 film) </search>
//	<think> Question 1: Kiss and Tell (1945 film): a comedy starring Shirley Temple. I still need Shirley Temple. </think>
//	<search> Shirley Temple </search>
//	<think> Question 1: Shirley Temple: she was Chief of Protocol. So the answer is Chief of Protocol. Question 2: nothing is known yet. </think>
func Responses(plans []Plan) []string {
	var turns, answers []string
	settled, fresh := "", ""
	for i, p := range plans {
		question := fmt.Sprintf("Question %d: ", i+1)
		memory := question + "nothing is known yet."
		notes := ""
		for j, step := range p.Steps {
			if j > 0 {
				memory = question + notes + p.want(step.Query)
			}
			turns = append(turns, fmt.Sprintf("<think> %s%s%s </think>\n<search> %s </search>", settled, fresh, memory, step.Query))
			settled, fresh = settled+short(fresh, i, answers), ""
			notes += strings.Join(step.Notes, " ") + " "
		}
		answers = append(answers, p.Answer)
		fresh = fmt.Sprintf("%s%sSo the answer is %s. ", question, notes, dotless(p.Answer))
	}
	last := fmt.Sprintf("<think> %s%sNothing is left to look up. </think>\n<answer> %s </answer>", settled, fresh, strings.Join(answers, "; "))
	return append(turns, last)
}

// want says what a further search is for.
func (p Plan) want(query string) string {
	if query == p.Question {
		return "More has to be looked up."
	}
	return fmt.Sprintf("I still need %s.", query)
}

// short is the memory of the question before question i, once it was written out
// in full; nothing where there was none to shorten.
func short(full string, i int, answers []string) string {
	if full == "" {
		return ""
	}
	return fmt.Sprintf("Question %d: %s. ", i, dotless(answers[i-1]))
}

// dotless leaves the full stop at the end to the sentence.
func dotless(s string) string { return strings.TrimSuffix(s, ".") }
