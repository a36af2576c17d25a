package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// words is a word-level tokenizer that learns its vocabulary as it encodes.
type words struct {
	ids  map[string]int32
	text []string
}

func newWords() *words { return &words{ids: map[string]int32{}} }

func (w *words) Encode(text string) []int32 {
	var out []int32
	for _, word := range strings.Fields(text) {
		id, ok := w.ids[word]
		if !ok {
			id = int32(len(w.text))
			w.ids[word] = id
			w.text = append(w.text, word)
		}
		out = append(out, id)
	}
	return out
}

func (w *words) Decode(ids []int32) string {
	var out []string
	for _, id := range ids {
		out = append(out, w.text[id])
	}
	return strings.Join(out, " ")
}

// chars is a tokenizer of bytes, with two peculiarities of real ones: "he" and
// "llo" are ids of their own that decode to text which is encoded in bytes, and one
// id decodes to nothing.
type chars struct{}

const (
	charHe      = 256
	charLlo     = 257
	charNothing = 258
	charEOS     = 259
)

func (chars) Encode(text string) []int32 {
	var out []int32
	for _, b := range []byte(text) {
		out = append(out, int32(b))
	}
	return out
}

func (chars) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		switch id {
		case charHe:
			b.WriteString("he")
		case charLlo:
			b.WriteString("llo")
		case charNothing:
		case charEOS:
			b.WriteString("<|end|>")
		default:
			b.WriteByte(byte(id))
		}
	}
	return b.String()
}

// library is a searcher over documents by title.
type library map[string]Document

func (l library) Search(_ context.Context, world, query string, k int) ([]Document, error) {
	if doc, ok := l[world+"/"+query]; ok && k > 0 {
		return []Document{doc}, nil
	}
	return nil, nil
}

// miniWorld is a tiny mini-wiki.
var miniWorld = library{
	"w17/noge": {ID: "w17/noge", Title: "noge", Text: "spouse fagi ; employer kome ; birth gola ;"},
	"w17/kome": {ID: "w17/kome", Title: "kome", Text: "founder roge ; base gola ; rival tuba ;"},
	"w17/gola": {ID: "w17/gola", Title: "gola", Text: "."},
}

var miniTask = Task{ID: "w17/q2-0", World: "w17", Questions: []string{"noge employer founder", "noge birth"}}

// miniOracle is what a perfect model writes for miniTask.
var miniOracle = []string{
	"<think> next q1 noge employer founder </think> <search> noge </search>",
	"<think> see employer kome ; next q1 kome founder </think> <search> kome </search>",
	"<think> see founder roge ; q1 roge ; next q2 noge birth </think> <search> noge </search>",
	"<think> see birth gola ; q1 roge ; q2 gola ; </think> <answer> roge ; gola </answer>",
}

func miniOptions() Options {
	return Options{
		Protocol: Mini(), Update: MEM1Update{}, Tokenizer: newWords(), Model: "script",
		Sampler: trace.Sampler{Greedy: true, TopP: 1, Seed: 7},
	}
}

// run is Rollout for tests in which it may not fail, with every record validated.
func run(t *testing.T, p Policy, s Searcher, o Options, tasks ...Task) []*trace.Trajectory {
	t.Helper()
	out, err := Rollout(t.Context(), p, s, o, tasks...)
	if err != nil {
		t.Fatal(err)
	}
	validate(t, out)
	return out
}

func validate(t *testing.T, out []*trace.Trajectory) {
	t.Helper()
	for _, tr := range out {
		if err := tr.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// policyFunc is a policy from a function of the request; it answers one at a time.
type policyFunc func(*trace.Request) (*trace.Response, error)

func (f policyFunc) Generate(_ context.Context, q trace.Queue) error {
	for r, ok := q.Next(); ok; r, ok = q.Next() {
		resp, err := f(r)
		if err != nil {
			return err
		}
		q.Done(r, resp)
	}
	return nil
}

// transcript writes a trajectory for people: each call with its context by spans.
func transcript(tok Tokenizer, tr *trace.Trajectory) string {
	var b strings.Builder
	fmt.Fprintf(&b, "trajectory %s agent %s end %s", tr.ID, tr.Agent, tr.End)
	if tr.Error != "" {
		fmt.Fprintf(&b, " (%s)", tr.Error)
	}
	fmt.Fprintf(&b, "\n")
	for _, c := range tr.Calls {
		fmt.Fprintf(&b, "\ncall %d: %d + %d of %d ids, seed %d\n", c.Index, len(c.Context), len(c.Output), c.MaxNewTokens, c.Seed)
		for _, s := range c.Spans {
			fmt.Fprintf(&b, "  %s %d [%d, %d): %q\n", s.Origin, s.FromCall, s.Start, s.End, tok.Decode(c.Context[s.Start:s.End]))
		}
		fmt.Fprintf(&b, "  output: %q\n  stop %s, outcome %s", tok.Decode(c.Output), c.Stop, c.Outcome)
		if c.Reason != "" {
			fmt.Fprintf(&b, " (%s)", c.Reason)
		}
		fmt.Fprintf(&b, ", query %q, documents %q\n  observation: %q\n", c.Query, c.Documents, tok.Decode(c.Observation))
	}
	fmt.Fprintf(&b, "\nanswers %q\n", tr.Answers)
	return b.String()
}
