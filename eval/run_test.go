package eval_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/trace"
)

// words takes each word for a token.
type words struct{ list []string }

func (w *words) Encode(text string) []int32 {
	var ids []int32
	for f := range strings.FieldsSeq(text) {
		i := slices.Index(w.list, f)
		if i < 0 {
			i = len(w.list)
			w.list = append(w.list, f)
		}
		ids = append(ids, int32(i))
	}
	return ids
}

func (w *words) Decode(ids []int32) string {
	var out []string
	for _, id := range ids {
		out = append(out, w.list[id])
	}
	return strings.Join(out, " ")
}

// shelf finds documents by their title.
type shelf map[string]string

func (s shelf) Search(_ context.Context, _, query string, _ int) ([]agent.Document, error) {
	if text, ok := s[query]; ok {
		return []agent.Document{{ID: "d/" + query, Title: query, Text: text}}, nil
	}
	return nil, nil
}

// slow is a policy whose every call takes two seconds by its own account.
type slow struct{ agent.Policy }

func (s slow) Generate(ctx context.Context, q trace.Queue) error {
	return s.Policy.Generate(ctx, slowQueue{q})
}

type slowQueue struct{ trace.Queue }

func (q slowQueue) Done(r *trace.Request, resp *trace.Response) {
	resp.Seconds = 2
	q.Queue.Done(r, resp)
}

func task(id string, questions ...datasets.Question) datasets.Task {
	return datasets.Task{ID: id, Questions: questions}
}

func options(responses map[string][]string, tasks ...datasets.Task) eval.Options {
	tok := &words{}
	return eval.Options{
		Policy:   slow{agent.NewScript(tok, responses)},
		Searcher: shelf{"noge": "employer kome ;", "kome": "founder Ada Voss ;"},
		Agent:    agent.Options{Protocol: agent.Mini(), Tokenizer: tok},
		Tasks:    tasks,
	}
}

var twoTasks = []datasets.Task{
	task("a", datasets.Question{Question: "noge employer", Golds: []string{"kome"}},
		datasets.Question{Question: "kome founder", Golds: []string{"Voss", "Ada Voss"}}),
	task("b", datasets.Question{Question: "roge birth", Golds: []string{"tamo"}}),
}

var twoScripts = map[string][]string{
	"a": {"<think> </think> <search> noge </search>", "<think> </think> <answer> kome ; the Ada </answer>"},
	"b": {"<think> tamo"},
}

func TestRunScoresWhatTheAgentDid(t *testing.T) {
	o := options(twoScripts, twoTasks...)
	o.TimedTasks = 1
	var progress []int
	o.Progress = func(done, total int) {
		if total != 3 {
			t.Errorf("total %d, want 2 tasks and a timed one", total)
		}
		progress = append(progress, done)
	}
	result, err := eval.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	a, b := result.Records[0], result.Records[1]
	// "the Ada" against "Ada Voss": one of one and of two words, F1 2/3.
	if a.EM != 0.5 || math.Abs(a.F1-(1+2.0/3)/2) > 1e-12 || a.End != trace.EndAnswered || a.Calls != 2 {
		t.Errorf("a: %+v", a)
	}
	// mem1 keeps the article and sums: "the ada" against {ada, voss} is 1/2.
	if a.EMMem1 != 1 || a.F1Mem1 != 1.5 {
		t.Errorf("a by mem1: EM %g, F1 %g, want 1 and 1.5", a.EMMem1, a.F1Mem1)
	}
	if a.Recall != 0.5 {
		t.Errorf("a: recall %g, want 0.5: only the document of noge was shown", a.Recall)
	}
	if a.InferenceSeconds == nil || *a.InferenceSeconds != 4 {
		t.Errorf("a: inference seconds %v, want 4 of two calls", a.InferenceSeconds)
	}
	if b.EM != 0 || b.End != trace.EndUnusable || b.InferenceSeconds != nil || b.Answers == nil {
		t.Errorf("b: %+v", b)
	}
	call := result.Trajectories[0].Calls[1]
	if want := len(call.Context) + len(call.Output); a.PeakContext != want {
		t.Errorf("a: peak context %d, want that of the second call, %d", a.PeakContext, want)
	}
	if len(progress) == 0 || progress[len(progress)-1] != 3 {
		t.Errorf("progress %v", progress)
	}
}

func TestRunFailsAsAWhole(t *testing.T) {
	if _, err := eval.Run(t.Context(), options(nil)); err == nil || !strings.Contains(err.Error(), "no tasks") {
		t.Errorf("no tasks: %v", err)
	}
	if _, err := eval.Run(t.Context(), options(nil, twoTasks...)); err == nil || !strings.Contains(err.Error(), "script") {
		t.Errorf("a policy that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := eval.Run(ctx, options(twoScripts, twoTasks...)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run: %v", err)
	}
}

func TestAgentsSeeNoGolds(t *testing.T) {
	a := eval.AgentTask(twoTasks[0])
	if a.ID != "a" || !slices.Equal(a.Questions, []string{"noge employer", "kome founder"}) {
		t.Errorf("%+v", a)
	}
}
