package agent

import (
	"fmt"
	"strings"
)

// mem1Prompt states MEM1's protocol in words of our own.
const mem1Prompt = `Answer every question in a list of {{count}}, with the help of a search engine.

You work in turns. After each turn everything before it is forgotten, save this text: the next turn sees only what you wrote in this turn and the search results that it brought. So whatever you will still need has to be written down again each time.

A turn has two parts.
1. Inside <think> and </think> you keep your memory: the facts found so far that matter, the answers you have already settled, and which question comes next and how you will go about it.
2. Then comes exactly one of these:
   - <search> a short query about one thing </search>. The results come back between <information> and </information>, with the number of turns that you have left.
   - <answer> all answers, in the order of the questions, with a semicolon between them </answer>. This ends the task.

Take the questions one after another. Give each answer in as few words as possible: a name, a date, a number, or yes or no, without a sentence around it. With one turn left, answer: where you do not know, give your best guess.

Example of a search turn:
<think> Question 1: the band is settled, The Beatles. Question 2: I need the capital of France. </think>
<search> capital of France </search>

Example of the last turn:
<think> Question 1: The Beatles. Question 2: Paris. Nothing is left to look up. </think>
<answer> The Beatles; Paris </answer>

Questions: {{questions}}
`

// MEM1 is the protocol of MEM1 (arXiv 2506.15841) for natural questions: an
// English prompt in our own words with the questions joined by "; ", three turns a
// question (six for two, as MEM1 has it), responses of up to 1,000 tokens, the top
// three documents. An observation is
//
//	<information>
//	You have 5 turns left.
//	Doc 1(Title: Paris) Paris is the capital of France.
//	</information>
//
// with an empty line before and after. Document texts are cut after 200 words,
// for MEM1 limits an observation to 1,000 tokens; the passages of wiki-18 have
// 100 words.
func MEM1() Protocol {
	p, err := Template("mem1", mem1Prompt)
	if err != nil {
		panic(err) // the constant above is held by a test
	}
	return p
}

func mem1Observation(docs []Document, callsLeft int) string {
	var b strings.Builder
	b.WriteString("\n\n" + infoOpen + "\n")
	b.WriteString(turnsLeft(callsLeft))
	for i, d := range docs {
		fmt.Fprintf(&b, "Doc %d(Title: %s) %s\n", i+1, d.Title, d.Text)
	}
	if len(docs) == 0 {
		b.WriteString("Nothing was found.\n")
	}
	b.WriteString(infoClose + "\n\n")
	return b.String()
}

// mem1Unavailable answers a search that could not be made.
func mem1Unavailable(callsLeft int) string {
	return "\n\n" + infoOpen + "\n" + turnsLeft(callsLeft) + "The search failed; it may work the next time.\n" + infoClose + "\n\n"
}

func turnsLeft(calls int) string {
	if calls == 1 {
		return "You have 1 turn left: give your answers now.\n"
	}
	return fmt.Sprintf("You have %d turns left.\n", calls)
}
