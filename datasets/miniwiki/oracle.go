package miniwiki

import (
	"fmt"
	"strings"

	"github.com/memopd/memopd-bench/datasets"
)

// OracleTurn is one response of the oracle. Query is the entity whose document
// it asks for, "" in the last turn, which answers.
type OracleTurn struct {
	Response string
	Query    string
}

// Oracle returns the responses that answer a task of world w with the fewest
// searches, in the protocol "mini": each first says what the last observation
// said (`see employer kome ;`), then the answers known so far, then what it
// looks for next. Each search has to show the document of the entity asked for.
// An error says which question does not belong to the world.
func Oracle(w *World, task datasets.Task) ([]OracleTurn, error) {
	if n := len(task.Questions); n < 1 || n > MaxQuestions {
		return nil, fmt.Errorf("task %s: %d questions, want 1 to %d", task.ID, n, MaxQuestions)
	}
	var turns []OracleTurn
	var see, known string
	var answers []string
	for i, tq := range task.Questions {
		q, err := w.parse(tq.Question)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", task.ID, err)
		}
		entity := q.entity
		for hop, r := range q.relations[:q.hops()] {
			left := ""
			for _, later := range q.relations[hop:q.hops()] {
				left += " " + relations[later].name
			}
			turns = append(turns, OracleTurn{
				Response: fmt.Sprintf("<think> %s%snext q%d %s%s </think> <search> %s </search>",
					see, known, i+1, pool[entity], left, pool[entity]),
				Query: pool[entity],
			})
			entity = w.follow(entity, r)
			see = fmt.Sprintf("see %s %s ; ", relations[r].name, pool[entity])
		}
		known += fmt.Sprintf("q%d %s ; ", i+1, pool[entity])
		answers = append(answers, pool[entity])
	}
	last := fmt.Sprintf("<think> %s%s</think> <answer> %s </answer>", see, known, strings.Join(answers, " ; "))
	return append(turns, OracleTurn{Response: last}), nil
}
