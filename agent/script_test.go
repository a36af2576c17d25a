package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

func TestScript(t *testing.T) {
	o := miniOptions()
	tr := run(t, oracle(o.Tokenizer), miniWorld, o, miniTask)[0]
	for i, c := range tr.Calls {
		if c.LogProbs != nil || c.Stop != trace.StopTag || o.Tokenizer.Decode(c.Output) != miniOracle[i] {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	if tr.End != trace.EndAnswered || !slices.Equal(tr.Answers, []string{"roge", "gola"}) {
		t.Errorf("end %q, answers %q", tr.End, tr.Answers)
	}
}

func TestScriptStops(t *testing.T) {
	tok := newWords()
	long := strings.Repeat("a ", 40)
	for text, want := range map[string]struct {
		ids  int
		stop trace.StopReason
	}{
		"<search> x </search> y z": {3, trace.StopTag},
		"x y":                      {2, trace.StopScript},
		long:                       {32, trace.StopLength},
	} {
		o := miniOptions()
		o.Tokenizer = tok
		policy := NewScript(tok, map[string][]string{miniTask.ID: {text, miniOracle[3]}})
		c := run(t, policy, miniWorld, o, miniTask)[0].Calls[0]
		if len(c.Output) != want.ids || c.Stop != want.stop {
			t.Errorf("%q: %d ids, stop %q", text, len(c.Output), c.Stop)
		}
	}
}

func TestScriptLacks(t *testing.T) {
	o := miniOptions()
	for says, texts := range map[string][]string{
		"call 1 of a script of 1": miniOracle[:1],
		"the text has no ids":     {" "},
	} {
		policy := NewScript(o.Tokenizer, map[string][]string{miniTask.ID: texts})
		out, err := Rollout(t.Context(), policy, miniWorld, o, miniTask)
		if err == nil || !strings.Contains(err.Error(), says) || out[0].End != trace.EndModelError {
			t.Errorf("got %v", err)
		}
	}
}

func TestSearchEach(t *testing.T) {
	tok := chars{}
	tasks := []Task{
		{ID: "a", Questions: []string{"who is  Noge?", "what </search> is <answer> it?"}},
		{ID: "b", World: "w17", Questions: []string{"noge"}},
	}
	o := Options{Protocol: MEM1(), Tokenizer: tok}
	out := run(t, NewSearchEach(tok, tasks...), miniWorld, o, tasks...)
	var queries []string
	for _, tr := range out {
		if tr.End != trace.EndAnswered || len(tr.Answers) != 0 {
			t.Errorf("%s: end %q, answers %q", tr.ID, tr.End, tr.Answers)
		}
		for _, c := range tr.Calls[:len(tr.Calls)-1] {
			queries = append(queries, c.Query)
		}
	}
	if want := []string{"who is Noge?", "what is it?", "noge"}; !slices.Equal(queries, want) {
		t.Errorf("queries %q, want %q", queries, want)
	}
	if docs := out[1].Calls[0].Documents; !slices.Equal(docs, []string{"w17/noge"}) {
		t.Errorf("documents %q", docs)
	}
}
