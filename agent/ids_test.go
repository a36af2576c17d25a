package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// hello spells the word in the two ids that no encoding gives.
func hello(text string) []int32 {
	before, after, _ := strings.Cut(text, "hello")
	return slices.Concat(chars{}.Encode(before), []int32{charHe, charLlo, charNothing}, chars{}.Encode(after))
}

// samples is a policy that answers call k with outputs[k], each with the log-prob of
// its place.
func samples(stops []trace.StopReason, outputs ...[]int32) Policy {
	return policyFunc(func(r *trace.Request) (*trace.Response, error) {
		resp := &trace.Response{Output: outputs[r.Call], Stop: stops[r.Call]}
		for i := range resp.Output {
			resp.LogProbs = append(resp.LogProbs, -float32(i)/8)
		}
		return resp, nil
	})
}

// sampledTwice runs two calls that search and one that answers, under every update,
// and hands out the records. The first thought has no opening tag, as where a template
// wrote it before the answer begins.
func sampledTwice(t *testing.T, check func(*trace.Trajectory, [][]int32)) {
	t.Helper()
	outputs := [][]int32{
		hello("so</think>\n\n\n<search>hello</search>"), hello("<think></think><search> hello\n</search>"), hello("<answer>hello</answer>"),
	}
	tags := []trace.StopReason{trace.StopTag, trace.StopTag, trace.StopTag}
	for _, u := range allUpdates {
		tr := run(t, samples(tags, outputs...), library{}, Options{Protocol: MEM1(), Tokenizer: chars{}, Update: u}, Task{ID: "a", Questions: []string{"b?"}})[0]
		if len(tr.Calls) != 3 || tr.End != trace.EndAnswered {
			t.Fatalf("%s: %d calls, %s %s", u.Name(), len(tr.Calls), tr.End, tr.Error)
		}
		check(tr, outputs)
	}
}

// A later prompt holds what was sampled id by id, under every update: nothing is
// decoded and encoded again, closed, trimmed, or given a thought of its own.
func TestLaterPromptsHoldTheSampledIDs(t *testing.T) {
	sampledTwice(t, func(tr *trace.Trajectory, outputs [][]int32) {
		for k, c := range tr.Calls {
			if !slices.Equal(c.Output, outputs[k]) || len(c.LogProbs) != len(c.Output) {
				t.Errorf("%s, call %d: recorded %v, sampled %v", tr.Agent, k, c.Output, outputs[k])
			}
			covered := 0
			for _, s := range c.Spans {
				source := tr.Prefix
				switch s.Origin {
				case trace.OriginRetained:
					source = outputs[s.FromCall]
				case trace.OriginObservation:
					source = tr.Calls[s.FromCall].Observation
				}
				covered += s.End - s.Start
				if got, want := c.Context[s.Start:s.End], source[s.Offset:s.Offset+s.End-s.Start]; !slices.Equal(got, want) {
					t.Errorf("%s, call %d: %s of call %d is %v, was %v", tr.Agent, k, s.Origin, s.FromCall, got, want)
				}
			}
			if covered != len(c.Context) {
				t.Errorf("%s, call %d: %d of %d ids have an origin", tr.Agent, k, covered, len(c.Context))
			}
		}
		if q := tr.Calls[0].Query; q != "hello" {
			t.Errorf("%s: query %q", tr.Agent, q)
		}
	})
}

// Where everything is kept, a prompt is the one before, what was sampled on it, and
// the observation: byte for byte the ids of the last turn, and then what is new.
func TestFullPromptsBeginWithTheLastTurn(t *testing.T) {
	checked := 0
	sampledTwice(t, func(tr *trace.Trajectory, outputs [][]int32) {
		if tr.Agent != (FullUpdate{}).Name() {
			return
		}
		for k, c := range tr.Calls[1:] {
			before := tr.Calls[k]
			if want := slices.Concat(before.Context, outputs[k], before.Observation); !slices.Equal(c.Context, want) {
				t.Errorf("call %d saw %v, want %v", k+1, c.Context, want)
			}
			checked++
		}
	})
	if checked != 2 {
		t.Errorf("%d prompts", checked)
	}
}

// An output that is cut at its limit within a word keeps its ids, no more of them
// than were sampled, and their log-probs.
func TestCutOutputKeepsItsIDs(t *testing.T) {
	p := MEM1()
	p.NewTokens = 9
	output := append(chars{}.Encode("<search>"), charHe)
	tr := run(t, samples([]trace.StopReason{trace.StopLength}, output), library{}, Options{Protocol: p, Tokenizer: chars{}}, Task{ID: "a", Questions: []string{"b?"}})[0]
	c := tr.Calls[0]
	if !slices.Equal(c.Output, output) || len(c.LogProbs) != 9 || c.LogProbs[8] != -1 || c.Stop != trace.StopLength || c.Reason != ReasonUnclosedSearch {
		t.Errorf("%+v", c)
	}
}
