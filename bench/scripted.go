package main

import (
	"strings"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/eval"
	"github.com/memopd/memopd-bench/trace"
)

// searchEach is the name of the scripted agent that searches each question as it
// stands and answers nothing: what retrieval alone brings up.
const searchEach = "search-each"

// scripted opens the scripted agent of that name.
func scripted(p agent.Protocol) func([]datasets.Task, trace.Sampler) (*opened, error) {
	return func(tasks []datasets.Task, _ trace.Sampler) (*opened, error) {
		note("tokens are counted as words: a script has no tokenizer")
		words := &wordTokenizer{ids: map[string]int32{}}
		shown := make([]agent.Task, len(tasks))
		for i, t := range tasks {
			shown[i] = eval.AgentTask(t)
		}
		return &opened{
			policy: agent.NewSearchEach(words, shown...), untimed: true, close: func() {},
			agent: agent.Options{Protocol: p, Tokenizer: words, Model: searchEach},
		}, nil
	}
}

// wordTokenizer takes each word for a token, and learns words as they come. It
// serves scripts, which have no model whose tokens could be counted.
type wordTokenizer struct {
	ids   map[string]int32
	words []string
}

// Encode implements agent.Tokenizer.
func (w *wordTokenizer) Encode(text string) []int32 {
	fields := strings.Fields(text)
	out := make([]int32, len(fields))
	for i, f := range fields {
		id, ok := w.ids[f]
		if !ok {
			id = int32(len(w.words))
			w.ids[f] = id
			w.words = append(w.words, f)
		}
		out[i] = id
	}
	return out
}

// Decode implements agent.Tokenizer.
func (w *wordTokenizer) Decode(ids []int32) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = w.words[id]
	}
	return strings.Join(out, " ")
}
