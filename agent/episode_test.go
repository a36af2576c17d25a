package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

func oracle(tok Tokenizer) *Script {
	return NewScript(tok, map[string][]string{miniTask.ID: miniOracle})
}

// says is a policy whose every response is the text.
func says(tok Tokenizer, text string, stop trace.StopReason) policyFunc {
	return func(*trace.Request) (*trace.Response, error) {
		return &trace.Response{Output: tok.Encode(text), Stop: stop}, nil
	}
}

func TestRequest(t *testing.T) {
	o := miniOptions()
	e, err := NewEpisode(o, miniTask)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := e.Request()
	if !ok || r.MaxNewTokens != 32 || r.Call != 0 || r.TaskID != miniTask.ID || r.PrefixLength != len(r.Context) ||
		r.Seed != CallSeed(7, miniTask.ID, 0, 0) {
		t.Fatalf("request %+v", r)
	}
	if _, ok := e.Request(); ok {
		t.Error("two requests at once")
	}
	if want := []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: len(r.Context)}}; !slices.Equal(r.Spans, want) {
		t.Errorf("spans %+v", r.Spans)
	}
	r.Context[0], r.Spans[0].End = 999, 1 // a policy's writing must not reach the record
	if _, search := e.Respond(&trace.Response{Output: o.Tokenizer.Encode(miniOracle[0]), Stop: trace.StopTag}); !search {
		t.Fatal("no search")
	}
	e.Observe(nil, nil, 0)
	if c := e.Trajectory().Calls[0]; c.Context[0] == 999 || c.Spans[0].End == 1 {
		t.Error("the policy changed the record")
	}
}

// The ids of outputs must be reused, not made again from text: "he"+"llo" decodes
// to text that encodes in five other ids.
func TestOutputsAreNotTokenisedAgain(t *testing.T) {
	tok := chars{}
	output := slices.Concat(tok.Encode("<search> "), []int32{charHe, charLlo, charNothing}, tok.Encode(" </search>"))
	policy := policyFunc(func(*trace.Request) (*trace.Response, error) {
		return &trace.Response{Output: output, LogProbs: make([]float32, len(output)), Stop: trace.StopTag}, nil
	})
	o := Options{Protocol: MEM1(), Tokenizer: tok}
	tr := run(t, policy, library{}, o, Task{ID: "a", Questions: []string{"b?"}})[0]
	second := tr.Calls[1]
	kept := second.Spans[1]
	if kept.Origin != trace.OriginRetained || !slices.Equal(second.Context[kept.Start:kept.End], output) {
		t.Errorf("the second call saw %v", second.Context[kept.Start:kept.End])
	}
	if tr.Calls[0].Query != "hello" {
		t.Errorf("query %q", tr.Calls[0].Query)
	}
}

func TestEnds(t *testing.T) {
	broken := errors.New("index is gone")
	failing := searcherFunc(func(context.Context, string, string, int) ([]Document, error) { return nil, broken })
	generous := searcherFunc(func(_ context.Context, _, _ string, k int) ([]Document, error) { return make([]Document, k+1), nil })
	tok := newWords()
	searching := says(tok, "<search> noge </search>", trace.StopTag)
	for _, tc := range []struct {
		name     string
		policy   Policy
		searcher Searcher
		room     int
		end      trace.End
		calls    int
		reason   string // of the last call, or in the trajectory's error
	}{
		{"answered", oracle(tok), miniWorld, 0, trace.EndAnswered, 4, ""},
		{"turn limit", searching, miniWorld, 0, trace.EndTurnLimit, 6, ""},
		{"unusable", says(tok, "<think> a </think>", trace.StopEOS), miniWorld, 0, trace.EndUnusable, 1, ReasonNoTag},
		{"unclosed", says(tok, strings.Repeat("<search> ", 32), trace.StopLength), miniWorld, 0, trace.EndUnusable, 1, ReasonUnclosedSearch},
		{"retrieval", searching, failing, 0, trace.EndRetrieval, 1, "index is gone"},
		{"too many documents", searching, generous, 0, trace.EndRetrieval, 1, "2 documents, 1 were asked"},
		{"prefix does not fit", searching, miniWorld, 46, trace.EndContext, 0, "call 0 needs 15 + 32 tokens, the model takes 46"},
		{"prefix fits", searching, miniWorld, 47, trace.EndContext, 1, "call 1 needs"},
		{"no room at the policy", policyFunc(func(*trace.Request) (*trace.Response, error) {
			return &trace.Response{Stop: trace.StopContext}, nil
		}), miniWorld, 0, trace.EndContext, 0, "no room"},
		{"full within a response", says(tok, "<search> noge", trace.StopContext), miniWorld, 0, trace.EndContext, 1, ReasonUnclosedSearch},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := miniOptions()
			o.Tokenizer, o.ContextTokens = tok, tc.room
			tr := run(t, tc.policy, tc.searcher, o, miniTask)[0]
			if tr.End != tc.end || len(tr.Calls) != tc.calls {
				t.Fatalf("end %q (%s) after %d calls", tr.End, tr.Error, len(tr.Calls))
			}
			said := tr.Error
			if n := len(tr.Calls); n > 0 {
				said += tr.Calls[n-1].Reason
			}
			if !strings.Contains(said, tc.reason) {
				t.Errorf("%q does not say %q", said, tc.reason)
			}
		})
	}
}

type searcherFunc func(ctx context.Context, world, query string, k int) ([]Document, error)

func (f searcherFunc) Search(ctx context.Context, world, query string, k int) ([]Document, error) {
	return f(ctx, world, query, k)
}

// The last call that may search is told of one turn, and the search of the last
// call of all is not made.
func TestTurnsLeft(t *testing.T) {
	o := miniOptions()
	searches := 0
	counting := searcherFunc(func(context.Context, string, string, int) ([]Document, error) { searches++; return nil, nil })
	tr := run(t, says(o.Tokenizer, "<search> noge </search>", trace.StopTag), counting, o, miniTask)[0]
	var got []string
	for _, c := range tr.Calls {
		got = append(got, o.Tokenizer.Decode(c.Observation))
	}
	want := []string{
		"<information> turns 5 ; none </information>", "<information> turns 4 ; none </information>",
		"<information> turns 3 ; none </information>", "<information> turns 2 ; none </information>",
		"<information> turns 1 ; none </information>", "",
	}
	if !slices.Equal(got, want) || searches != 5 || tr.Calls[5].Query != "noge" {
		t.Errorf("%d searches, observations %q", searches, got)
	}
}

func TestFaultyResponses(t *testing.T) {
	tok := newWords()
	good := tok.Encode(miniOracle[0])
	long := tok.Encode(strings.Repeat("a ", 33))
	nan := float32(0)
	nan /= nan
	for name, resp := range map[string]*trace.Response{
		"nil":             nil,
		"empty":           {Stop: trace.StopEOS},
		"too long":        {Output: long, Stop: trace.StopLength},
		"negative id":     {Output: []int32{-1}, Stop: trace.StopEOS},
		"log-probs short": {Output: good, LogProbs: []float32{0}, Stop: trace.StopTag},
		"log-prob NaN":    {Output: good[:1], LogProbs: []float32{nan}, Stop: trace.StopEOS},
		"seconds":         {Output: good, Seconds: -1, Stop: trace.StopTag},
		"no stop reason":  {Output: good},
		"stop tag absent": {Output: good[:3], Stop: trace.StopTag},
		"stop tag denied": {Output: good, Stop: trace.StopLength},
		"past the tag":    {Output: append(slices.Clone(good), good[0]), Stop: trace.StopTag},
		"past, at EOS":    {Output: append(slices.Clone(good), good[0]), Stop: trace.StopEOS},
	} {
		o := miniOptions()
		o.Tokenizer = tok
		policy := policyFunc(func(*trace.Request) (*trace.Response, error) { return resp, nil })
		out, err := Rollout(t.Context(), policy, miniWorld, o, miniTask)
		if err == nil || len(out) != 1 || out[0].End != trace.EndModelError || out[0].Error == "" || len(out[0].Calls) != 0 {
			t.Errorf("%s: %v, %+v", name, err, out)
		}
		validate(t, out)
	}
}

func TestUpdateThatErrs(t *testing.T) {
	o := miniOptions()
	o.Update = badUpdate{}
	tr := run(t, oracle(o.Tokenizer), miniWorld, o, miniTask)[0]
	if tr.End != trace.EndUpdate || !strings.Contains(tr.Error, "context update bad, call 1") || len(tr.Calls) != 1 {
		t.Errorf("end %q: %s", tr.End, tr.Error)
	}
}

type badUpdate struct{}

func (badUpdate) Name() string { return "bad" }
func (badUpdate) Retain(calls []trace.Call, _ Decoder) []Segment {
	if len(calls) == 0 {
		return nil
	}
	return []Segment{{Origin: trace.OriginRetained, FromCall: 9}}
}

// A chat template wraps the prefix alone: what follows is encoded as it stands.
func TestEncodePrefixWrapsThePrefixAlone(t *testing.T) {
	o := miniOptions()
	plain := run(t, oracle(o.Tokenizer), miniWorld, o, miniTask)[0]
	o.EncodePrefix = func(text string) []int32 {
		return slices.Concat([]int32{901}, o.Tokenizer.Encode(text), []int32{902, 903})
	}
	wrapped := run(t, oracle(o.Tokenizer), miniWorld, o, miniTask)[0]
	if want := slices.Concat([]int32{901}, plain.Prefix, []int32{902, 903}); !slices.Equal(wrapped.Prefix, want) {
		t.Fatalf("prefix %v, want %v", wrapped.Prefix, want)
	}
	for i, c := range wrapped.Calls {
		rest := plain.Calls[i]
		if !slices.Equal(c.Context[len(wrapped.Prefix):], rest.Context[len(plain.Prefix):]) ||
			!slices.Equal(c.Output, rest.Output) || !slices.Equal(c.Observation, rest.Observation) {
			t.Errorf("call %d differs behind the prefix", i)
		}
	}
}
