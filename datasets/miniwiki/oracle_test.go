package miniwiki

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/datasets"
)

func TestOracleTurns(t *testing.T) {
	w := newDefault(t).worlds[0]
	person := w.Entities(Person)[0]
	employer, _ := w.Fact(person, "employer")
	founder, _ := w.Fact(employer, "founder")
	town := w.Entities(Town)[0]
	river, _ := w.Fact(town, "river")
	turns, err := Oracle(w, datasets.Task{Questions: []datasets.Question{
		{Question: person + " employer founder"}, {Question: town + " river"}}})
	if err != nil {
		t.Fatal(err)
	}
	f := fmt.Sprintf
	want := []OracleTurn{
		{f("<think> next q1 %s employer founder </think> <search> %s </search>", person, person), person},
		{f("<think> see employer %s ; next q1 %s founder </think> <search> %s </search>", employer, employer, employer), employer},
		{f("<think> see founder %s ; q1 %s ; next q2 %s river </think> <search> %s </search>", founder, founder, town, town), town},
		{f("<think> see river %s ; q1 %s ; q2 %s ; </think> <answer> %s ; %s </answer>", river, founder, river, founder, river), ""},
	}
	if f("%q", turns) != f("%q", want) {
		t.Errorf("got  %q\nwant %q", turns, want)
	}
}

// Every task is solved: one turn a hop and one for the answers, within the
// agent's budgets (2n+2 calls, 20+6n new tokens), in words of the vocabulary.
func TestOracleSolvesTasks(t *testing.T) {
	k := newDefault(t)
	known := map[string]bool{}
	for _, w := range Vocabulary() {
		known[w] = true
	}
	s, _ := NewSampler(k.worlds, 11)
	for i := range uint64(300) {
		n := 1 + int(i)%MaxQuestions
		task, _ := s.Task(i, n)
		w, _ := k.World(task.World)
		turns, err := Oracle(w, task)
		if err != nil {
			t.Fatal(err)
		}
		hops, golds := 0, []string{}
		for _, q := range task.Questions {
			hops += q.Hops
			golds = append(golds, q.Golds[0])
		}
		last := turns[len(turns)-1]
		if len(turns) != hops+1 || len(turns) > 2*n+2 || last.Query != "" ||
			!strings.HasSuffix(last.Response, "<answer> "+strings.Join(golds, " ; ")+" </answer>") {
			t.Fatalf("task %v: turns %q", task, turns)
		}
		for _, turn := range turns {
			words := strings.Split(turn.Response, " ")
			if len(words) > 20+6*n {
				t.Errorf("%d words for %d questions: %s", len(words), n, turn.Response)
			}
			for _, word := range words {
				if !known[word] {
					t.Fatalf("word %q is not in the vocabulary: %s", word, turn.Response)
				}
			}
		}
	}
}

func TestOracleRefuses(t *testing.T) {
	w := newDefault(t).worlds[0]
	person, town := w.Entities(Person)[0], w.Entities(Town)[0]
	for _, text := range []string{"", person, person + " river", town + " employer", "zzzz birth", person + " birth river mayor", person + " nosuch"} {
		_, err := Oracle(w, datasets.Task{ID: "t1", Questions: []datasets.Question{{Question: text}}})
		if err == nil || !strings.Contains(err.Error(), "t1") {
			t.Errorf("question %q: error %v", text, err)
		}
	}
	if _, err := Oracle(w, datasets.Task{}); err == nil {
		t.Error("a task without questions gave no error")
	}
}
