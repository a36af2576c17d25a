package oracle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval/metrics"
)

// shelf answers a query with the passages listed for it.
type shelf map[string][]agent.Document

func (s shelf) Search(_ context.Context, _, query string, k int) ([]agent.Document, error) {
	if query == "broken" {
		return nil, errors.New("the index is gone")
	}
	docs := s[query]
	return docs[:min(k, len(docs))], nil
}

func doc(title, text string) agent.Document {
	return agent.Document{ID: title, Title: title, Text: text}
}

var (
	kiss   = doc("Kiss and Tell (1945 film)", "It was made by Columbia. Kiss and Tell is a comedy starring Shirley Temple as Corliss Archer.")
	temple = doc("Shirley Temple", "Shirley Temple was an actress. She was named Chief of Protocol. She died in 2014.")
	other  = doc("Corliss", "A name.")
)

func question(text string, golds []string, evidence ...string) datasets.Question {
	return datasets.Question{ID: "x", Question: text, Golds: golds, Evidence: evidence}
}

var bridge = question("What position was held by the woman who portrayed Corliss Archer in the film Kiss and Tell?",
	[]string{"Chief of Protocol"}, "Shirley Temple", "Kiss and Tell (1945 film)")

func plan(t *testing.T, s shelf, q datasets.Question) (Plan, Reason) {
	t.Helper()
	p, why, err := New(s, agent.MEM1()).Question(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return p, why
}

func queries(p Plan) []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Query)
	}
	return out
}

// A title is asked for once the question or a passage has named it.
func TestBridgeQuestion(t *testing.T) {
	s := shelf{"Kiss and Tell (1945 film)": {other, kiss}, "Shirley Temple": {temple}}
	p, why := plan(t, s, bridge)
	if why != "" || !slices.Equal(queries(p), []string{"Kiss and Tell (1945 film)", "Shirley Temple"}) || p.Answer != "Chief of Protocol" {
		t.Fatalf("%+v, %q", p, why)
	}
	if got, want := p.Steps[0].Notes[0], "Kiss and Tell (1945 film): Kiss and Tell is a comedy starring Shirley Temple as Corliss Archer."; got != want {
		t.Errorf("note %q, want the sentence that names the bridge, %q", got, want)
	}
	if got, want := p.Steps[1].Notes[0], "Shirley Temple: She was named Chief of Protocol."; got != want {
		t.Errorf("note %q, want the sentence with the gold, %q", got, want)
	}
}

func TestQueriesByWhatIsKnown(t *testing.T) {
	nq := question("who was made chief of protocol", []string{"Temple"}, "Shirley Temple")
	p, _ := plan(t, shelf{nq.Question: {other, temple}, "Shirley Temple": {temple}}, nq)
	if !slices.Equal(queries(p), []string{nq.Question}) {
		t.Errorf("searches %q, want the question, which names no title", queries(p))
	}
	p, _ = plan(t, shelf{nq.Question: {other}, "Shirley Temple": {temple}}, nq)
	if !slices.Equal(queries(p), []string{"Shirley Temple"}) {
		t.Errorf("searches %q, want the title where the question brings nothing up", queries(p))
	}
	p, _ = plan(t, shelf{"Kiss and Tell (1945 film)": {temple, kiss}}, bridge)
	if len(p.Steps) != 1 || len(p.Steps[0].Notes) != 2 {
		t.Errorf("%+v, want one search that brings both up", p)
	}
}

func TestReasonsToLeaveOut(t *testing.T) {
	whole := shelf{"Kiss and Tell (1945 film)": {kiss}, "Shirley Temple": {temple}}
	with := func(change func(q *datasets.Question)) datasets.Question {
		q := bridge
		change(&q)
		return q
	}
	for name, c := range map[string]struct {
		s    shelf
		q    datasets.Question
		want Reason
	}{
		"whole":       {whole, bridge, ""},
		"no evidence": {whole, with(func(q *datasets.Question) { q.Evidence = nil }), NoEvidence},
		"one hop":     {shelf{"Kiss and Tell (1945 film)": {kiss}}, bridge, NotRetrieved},
		"below the cut": {shelf{"Kiss and Tell (1945 film)": {other, doc("a", "b"), doc("c", "d"), kiss}, "Shirley Temple": {temple}}, bridge,
			NotRetrieved},
		"gold not shown": {whole, with(func(q *datasets.Question) { q.Golds = []string{"ambassador"} }), NotShown},
		"gold cut off": {shelf{"Kiss and Tell (1945 film)": {kiss}, "Shirley Temple": {doc("Shirley Temple", strings.Repeat("word ", 200)+"Chief of Protocol")}}, bridge,
			NotShown},
		"another passage of the title": {shelf{"who": {doc("Shirley Temple", "Born in 1928.")}}, question("who", []string{"Chief"}, "Shirley Temple"), NotRetrieved},
		"a tag": {shelf{"Kiss and Tell (1945 film)": {kiss}, "Shirley Temple": {doc("Shirley Temple", "Chief of Protocol </think> now.")}}, bridge,
			HoldsTag},
		"yes": {whole, with(func(q *datasets.Question) { q.Golds = []string{"yes"} }), ""},
	} {
		if p, why := plan(t, c.s, c.q); why != c.want {
			t.Errorf("%s: %q, want %q; %+v", name, why, c.want, p)
		}
	}
	if _, _, err := New(whole, agent.MEM1()).Question(t.Context(), question("broken", []string{"x"}, "y")); err == nil {
		t.Error("a failing searcher gave no error")
	}
}

// The first gold that stands in a passage is copied, whatever stands first in the list.
func TestAnswerIsOneThatWasShown(t *testing.T) {
	q := question("who was made chief of protocol", []string{"S. Temple Black", "Shirley Temple"}, "Shirley Temple")
	if p, why := plan(t, shelf{"Shirley Temple": {temple}}, q); why != NotRetrieved && p.Answer != "Shirley Temple" {
		t.Errorf("%+v, %q", p, why)
	}
	q.Golds = []string{"an ambassador", "chief of  protocol"}
	if p, why := plan(t, shelf{"Shirley Temple": {temple}}, q); p.Answer != "chief of  protocol" {
		t.Errorf("%+v, %q", p, why)
	}
}

// Each turn holds all that the next needs, for the one before is forgotten.
func TestResponses(t *testing.T) {
	first, _ := plan(t, shelf{"Kiss and Tell (1945 film)": {kiss}, "Shirley Temple": {temple}}, bridge)
	second, _ := plan(t, shelf{"when did she die": {temple}}, question("when did she die", []string{"2014"}, "Shirley Temple"))
	third := Plan{Question: "q", Steps: []Step{{"a b", []string{"A: B."}}, {"q", []string{"C: D."}}}, Answer: "St. D."}
	got := strings.Join(Responses([]Plan{first, second, third}), "\n\n")
	want := `<think> Question 1: nothing is known yet. </think>
<search> Kiss and Tell (1945 film) </search>

<think> Question 1: Kiss and Tell (1945 film): Kiss and Tell is a comedy starring Shirley Temple as Corliss Archer. I still need Shirley Temple. </think>
<search> Shirley Temple </search>

<think> Question 1: Kiss and Tell (1945 film): Kiss and Tell is a comedy starring Shirley Temple as Corliss Archer. Shirley Temple: She was named Chief of Protocol. So the answer is Chief of Protocol. Question 2: nothing is known yet. </think>
<search> when did she die </search>

<think> Question 1: Chief of Protocol. Question 2: Shirley Temple: She died in 2014. So the answer is 2014. Question 3: nothing is known yet. </think>
<search> a b </search>

<think> Question 1: Chief of Protocol. Question 2: 2014. Question 3: A: B. More has to be looked up. </think>
<search> q </search>

<think> Question 1: Chief of Protocol. Question 2: 2014. Question 3: A: B. C: D. So the answer is St. D. Nothing is left to look up. </think>
<answer> Chief of Protocol; 2014; St. D. </answer>`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for i, text := range Responses([]Plan{first, second}) {
		act := agent.Parse(text)
		if last := i == 3; last != (act.Answers != nil) || !last && act.Query == "" {
			t.Errorf("turn %d is read as %+v", i, act)
		}
	}
}

func TestSentences(t *testing.T) {
	got := sentences(`J. R. Smith met Dr. Who in the U.S. Then he left! "Why?" she said. It was 3.5 m. 2 came.`)
	want := []string{"J. R. Smith met Dr. Who in the U.S. Then he left!", `"Why?" she said.`, "It was 3.5 m. 2 came."}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A long sentence is cut to the words around what matters, which stays whole.
func TestCutAround(t *testing.T) {
	words := strings.Fields("a1 a2 a3 a4 a5 a6 a7 a8 a9 the Old Mill b1 b2 b3 b4 b5 b6 b7 b8")
	for _, c := range []struct {
		must string
		n    int
	}{{"Old Mill", 6}, {"a1", 4}, {"b8", 5}, {"", 7}, {"old mill", 2}, {"absent", 5}} {
		got := cutAround(strings.Join(words, " "), c.must, c.n)
		if n := len(strings.Fields(got)); n != c.n {
			t.Errorf("%q in %d: %d words, %q", c.must, c.n, n, got)
		}
		if c.must != "absent" && c.must != "" && !metrics.HasAnswer(got, []string{c.must}) {
			t.Errorf("%q in %d: %q lacks it", c.must, c.n, got)
		}
	}
}
