package agent

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Whole episodes, both protocols and every update, as people read them.
func TestGoldenTranscripts(t *testing.T) {
	english := Task{ID: "hotpot-1", Questions: []string{"Who founded the employer of Noge?", "Where was Noge born?"}}
	books := library{
		"/employer of Noge": {ID: "d1", Title: "Noge", Text: "Noge works for Kome. She was born in Gola."},
		"/founder of Kome":  {ID: "d2", Title: "Kome", Text: "Kome, a company, was founded by Roge."},
	}
	englishScript := []string{
		"<think> Question 1: who employs Noge? </think>\n<search> employer of Noge </search>",
		"<think> Noge works for Kome. Question 2: Gola. </think>\n<search> founder of Kome </search>",
		"<think> Question 1: Roge. Question 2: Gola. </think>\n<answer> Roge; Gola </answer>",
	}
	for _, tc := range []struct {
		name     string
		protocol Protocol
		tok      Tokenizer
		task     Task
		searcher library
		script   []string
	}{
		{"mini", Mini(), newWords(), miniTask, miniWorld, miniOracle},
		{"mem1", MEM1(), chars{}, english, books, englishScript},
	} {
		for _, u := range []Update{
			MEM1Update{}, FullUpdate{}, FullResponseUpdate{}, SuffixUpdate{IDs: 8}, SummaryUpdate{}, WindowUpdate{Turns: 2}, RefreshUpdate{},
		} {
			name := tc.name + "-" + strings.ReplaceAll(u.Name(), ":", "-")
			t.Run(name, func(t *testing.T) {
				o := miniOptions()
				o.Protocol, o.Tokenizer, o.Update = tc.protocol, tc.tok, u
				policy := NewScript(tc.tok, map[string][]string{tc.task.ID: tc.script})
				got := transcript(tc.tok, run(t, policy, tc.searcher, o, tc.task)[0])
				compareGolden(t, name, got)
			})
		}
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", path, got)
	}
}
