package agent

import (
	"fmt"
	"strings"
)

// Mini is the protocol of the generated mini-wiki, every word of which is one
// token. For the questions "noge employer founder" and "kome birth" the prefix is
//
//	<bos> answer all questions : q1 noge employer founder ; q2 kome birth ; </q>
//
// and an observation with one document, with five calls left, is
//
//	<information> turns 5 ; title noge : spouse fagi ; employer kome ; </information>
//
// With no document it is "<information> turns 5 ; none </information>".
func Mini() Protocol {
	return Protocol{
		Name:             "mini",
		TurnsPerQuestion: 2, ExtraTurns: 2,
		NewTokens: 20, NewTokensPerQuestion: 6,
		TopK:         1,
		MaxQuestions: 32, // the vocabulary ends at q32
		prefix:       miniPrefix,
		observation:  miniObservation,
	}
}

func miniPrefix(questions []string) string {
	var b strings.Builder
	b.WriteString("<bos> answer all questions :")
	for i, q := range questions {
		fmt.Fprintf(&b, " q%d %s ;", i+1, q)
	}
	b.WriteString(" </q>")
	return b.String()
}

func miniObservation(docs []Document, callsLeft int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s turns %d ;", infoOpen, callsLeft)
	for _, d := range docs {
		fmt.Fprintf(&b, " title %s : %s", d.Title, d.Text)
	}
	if len(docs) == 0 {
		b.WriteString(" none")
	}
	b.WriteString(" " + infoClose)
	return b.String()
}
