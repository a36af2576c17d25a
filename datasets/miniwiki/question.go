package miniwiki

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/memopd/memopd-bench/datasets"
)

// Source is the source that this package's questions name.
const Source = "miniwiki"

// Shares of the kinds of questions, as the mini preset's prototype had them.
const (
	twoHopShare       = 0.5 // questions that need two documents
	twoHopPersonShare = 0.7 // of those, start at a person; the others at a company
	oneHopPersonShare = 0.6 // one-hop questions about persons; the others about anyone
)

// question is a question by ids: an entity and one or two relations.
type question struct {
	entity    int
	relations [2]int // the second is -1 in a one-hop question
}

func (q question) hops() int {
	if q.relations[1] < 0 {
		return 1
	}
	return 2
}

// drawHops draws how many documents a question needs.
func drawHops(rng *rand.Rand) int {
	if rng.Float64() < twoHopShare {
		return 2
	}
	return 1
}

// drawQuestion draws a question about w with 1 or 2 hops from rng.
func (w *World) drawQuestion(rng *rand.Rand, hops int) question {
	if hops == 1 {
		e := pick(rng, w.asked)
		if rng.Float64() < oneHopPersonShare {
			e = pick(rng, w.byKind[Person])
		}
		return question{e, [2]int{w.drawRelation(rng, e), -1}}
	}
	start := Company
	if rng.Float64() < twoHopPersonShare {
		start = Person
	}
	// All relations of persons and companies lead to an entity that has some.
	e := pick(rng, w.byKind[start])
	r := w.drawRelation(rng, e)
	return question{e, [2]int{r, w.drawRelation(rng, w.follow(e, r))}}
}

func (w *World) drawRelation(rng *rand.Rand, e int) int {
	return firstRelation(w.kind[e]) + rng.IntN(relationsPerKind)
}

// Question draws one question from rng: half need one document, half two.
func (w *World) Question(rng *rand.Rand) datasets.Question {
	return w.render(w.drawQuestion(rng, drawHops(rng)))
}

// render turns ids into text. The id of a question is the path that answers it,
// such as "w17/noge/employer/founder".
func (w *World) render(q question) datasets.Question {
	text, answer := pool[q.entity], q.entity
	id := w.id + "/" + text
	for _, r := range q.relations[:q.hops()] {
		text += " " + relations[r].name
		id += "/" + relations[r].name
		answer = w.follow(answer, r)
	}
	return datasets.Question{ID: id, Source: Source, World: w.id, Question: text,
		Golds: []string{pool[answer]}, Hops: q.hops()}
}

// parse reads a question's text and checks that w can answer it.
func (w *World) parse(text string) (question, error) {
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > 3 {
		return question{}, fmt.Errorf("question %q: want an entity and 1 or 2 relations", text)
	}
	e, ok := w.index[words[0]]
	if !ok {
		return question{}, fmt.Errorf("question %q: no entity %q", text, words[0])
	}
	q := question{e, [2]int{-1, -1}}
	for i, name := range words[1:] {
		r := relationID(name)
		if r < 0 || relations[r].from != w.kind[e] {
			return question{}, fmt.Errorf("question %q: in %s, a %s has no relation %q", text, w.id, w.kind[e], name)
		}
		q.relations[i], e = r, w.follow(e, r)
	}
	return q, nil
}
