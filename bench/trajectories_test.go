package main

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/trace"
)

// shelf finds a document by its title.
type shelf map[string]string

func (s shelf) Search(_ context.Context, world, query string, _ int) ([]agent.Document, error) {
	if text, ok := s[query]; ok {
		return []agent.Document{{ID: world + "/" + query, Title: query, Text: text}}, nil
	}
	return nil, nil
}

// scriptedRun is one task played by a script under a context update.
func scriptedRun(t *testing.T, update string) (*trace.Trajectory, eval.TaskRecord, *wordTokenizer) {
	t.Helper()
	task := datasets.Task{ID: "w17/q2-0", World: "w17", Questions: []datasets.Question{
		{Question: "noge employer founder", Golds: []string{"roge"}}, {Question: "noge birth", Golds: []string{"gola", "old gola"}},
	}}
	script := []string{
		"<think> next q1 noge employer founder </think> <search> noge </search>",
		"<think> see employer kome ; next q1 kome founder </think> <search> kome </search>",
		"<think> see founder roge ; q1 roge ; next q2 noge birth </think> <search> nobody </search>",
		"<think> q1 roge ; q2 tuba ; </think> <answer> roge ; tuba </answer>",
	}
	words := &wordTokenizer{ids: map[string]int32{}}
	u, err := agent.UpdateNamed(update)
	if err != nil {
		t.Fatal(err)
	}
	all, err := agent.Rollout(context.Background(), agent.NewScript(words, map[string][]string{task.ID: script}),
		shelf{"noge": "spouse fagi ; employer kome ;", "kome": "founder roge ;"},
		agent.Options{Protocol: agent.Mini(), Tokenizer: words, Update: u, Sampler: greedy}, eval.AgentTask(task))
	if err != nil {
		t.Fatal(err)
	}
	return all[0], eval.NewTaskRecord(task, all[0], nil), words
}

// brief is parts as "origin call+offset: text".
func brief(parts []results.ContextPart) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%s %d+%d: %s (%d)\n", p.Origin, p.FromCall, p.Offset, p.Text, p.Tokens)
	}
	return b.String()
}

func TestTrajectoryView(t *testing.T) {
	tr, r, words := scriptedRun(t, "mem1")
	v := trajectoryView(tr, r, words.Decode)
	if v.Update != "mem1" || v.End != "answered" || v.EM != .5 || v.Prefix.Tokens != 15 || len(v.Calls) != 4 ||
		!reflect.DeepEqual(v.Scores, []results.Score{{EM: 1, F1: 1}, {}}) || !reflect.DeepEqual(v.Answers, []string{"roge", "tuba"}) {
		t.Errorf("%+v", v)
	}
	c := v.Calls[2]
	if want := "retained 1+0: <think> see employer kome ; next q1 kome founder </think> <search> kome </search> (13)\n" +
		"observation 1+0: <information> turns 4 ; title kome : founder roge ; </information> (11)\n"; brief(c.Context) != want {
		t.Errorf("call 2 sees\n%swant\n%s", brief(c.Context), want)
	}
	if want := "retained 0+0: <think> next q1 noge employer founder </think> <search> noge </search> (10)\n" +
		"observation 0+0: <information> turns 5 ; title noge : spouse fagi ; employer kome ; </information> (14)\n"; brief(c.Dropped) != want {
		t.Errorf("call 2 has lost\n%swant\n%s", brief(c.Dropped), want)
	}
	if c.Query != "nobody" || c.Outcome != "search" || len(c.Documents) != 0 || !strings.Contains(c.Observation.Text, "none") ||
		c.ContextTokens != 15+13+11 || c.Response.Tokens != 16 || v.Calls[0].Documents[0] != "w17/noge" {
		t.Errorf("call 2: %+v", c)
	}
	if last := v.Calls[3]; last.Outcome != "answer" || last.Observation != (results.ViewText{}) || len(v.Calls[1].Dropped) != 0 {
		t.Errorf("the last call: %+v, dropped before call 1: %+v", last, v.Calls[1].Dropped)
	}
	if tokens := float64(v.Calls[2].ContextTokens + 16); v.PeakContext < tokens {
		t.Errorf("peak context %g, call 2 has %g", v.PeakContext, tokens)
	}
}

// What is dropped in part is told in part, and nothing that is kept is.
func TestDroppedByUpdate(t *testing.T) {
	for update, want := range map[string]string{
		"full": "", "suffix:8": "retained 0+2: q1 noge employer founder </think> <search> noge </search> (8)\nobservation 0+0: <information> turns 5 ; title noge : spouse fagi ; employer kome ; </information> (14)\nretained 1+0: <think> see employer kome ; (5)\n",
		"window:2": "", "refresh": "observation 0+0: <information> turns 5",
	} {
		tr, r, words := scriptedRun(t, update)
		got := brief(trajectoryView(tr, r, words.Decode).Calls[2].Dropped)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: call 2 has lost\n%swant\n%s", update, got, want)
		}
		for k := 1; k < len(tr.Calls); k++ { // by hand: what was there is kept or told
			before := len(tr.Calls[k-1].Context) - len(tr.Prefix) + len(tr.Calls[k-1].Output) + len(tr.Calls[k-1].Observation)
			lost := 0
			for _, d := range droppedSpans(tr, k) {
				lost += d.to - d.from
			}
			if now := len(tr.Calls[k].Context) - len(tr.Prefix); before != lost+now {
				t.Errorf("%s, call %d: of %d tokens %d are kept and %d dropped", update, k, before, now, lost)
			}
		}
	}
}

func TestReadTrajectoryViews(t *testing.T) {
	dir := t.TempDir()
	tr, r, words := scriptedRun(t, "mem1")
	if err := writeRecords(filepath.Join(dir, "tasks.jsonl"), []eval.TaskRecord{r}); err != nil {
		t.Fatal(err)
	}
	if _, err := readTrajectoryViews(dir, "ppo", 3, "q2", 8, words.Decode); err == nil || !strings.Contains(err.Error(), "--ledger") {
		t.Errorf("without a ledger: %v", err)
	}
	if err := trace.WriteAll(filepath.Join(dir, "ledger.jsonl"), []*trace.Trajectory{tr, tr}); err != nil {
		t.Fatal(err)
	}
	got, err := readTrajectoryViews(dir, "ppo", 3, "q2", 1, words.Decode)
	if err != nil || len(got) != 1 || got[0].Variant != "ppo" || got[0].Seed != 3 || got[0].Horizon != "q2" {
		t.Fatalf("%d views, %v", len(got), err)
	}
	path := filepath.Join(dir, results.TrajectoriesFile)
	if err := results.WriteJSONL(path, got...); err != nil {
		t.Fatal(err)
	}
	if back, err := results.ReadJSONL[results.TrajectoryView](path); err != nil || !reflect.DeepEqual(back, got) {
		t.Errorf("%v, read back\n%+v", err, back)
	}
	r.TaskID = "another"
	if err := writeRecords(filepath.Join(dir, "tasks.jsonl"), []eval.TaskRecord{r}); err != nil {
		t.Fatal(err)
	}
	if _, err := readTrajectoryViews(dir, "ppo", 3, "q2", 1, words.Decode); err == nil || !strings.Contains(err.Error(), tr.TaskID) {
		t.Errorf("a task without a record: %v", err)
	}
}
