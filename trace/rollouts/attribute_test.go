package rollouts

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

// of makes trajectories of turns alone.
func of(t *testing.T, turns ...turn) []*trace.Trajectory {
	t.Helper()
	r := &run{id: "x", task: "x", agent: "x", turns: turns}
	if err := r.check(); err != nil {
		t.Fatal(err)
	}
	all := r.trajectories()
	for _, tr := range all {
		if err := tr.Validate(); err != nil {
			t.Fatal(err)
		}
		if _, err := align.Compile(tr, align.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// single is the one trajectory of turns.
func single(t *testing.T, turns ...turn) *trace.Trajectory {
	t.Helper()
	all := of(t, turns...)
	if len(all) != 1 {
		t.Fatalf("%d trajectories", len(all))
	}
	return all[0]
}

func prefixTo(end int) trace.Span {
	return trace.Span{Origin: trace.OriginPrefix, FromCall: -1, End: end}
}

func retained(call, offset, start, end int) trace.Span {
	return trace.Span{Origin: trace.OriginRetained, FromCall: call, Offset: offset, Start: start, End: end}
}

func observed(call, start, end int) trace.Span {
	return trace.Span{Origin: trace.OriginObservation, FromCall: call, Start: start, End: end}
}

func unknown(start, end int) trace.Span {
	return trace.Span{Origin: trace.OriginUnknown, FromCall: -1, Start: start, End: end}
}

func checkSpans(t *testing.T, c *trace.Call, want ...trace.Span) {
	t.Helper()
	if !reflect.DeepEqual(c.Spans, want) {
		t.Errorf("call %d: spans %+v, want %+v", c.Index, c.Spans, want)
	}
}

// A run whose prompts do not begin alike is forked, with the reason, and no error.
func TestPrefixBreakForks(t *testing.T) {
	all := of(t, turn{context: task, output: first}, turn{context: []int32{99, 98}, output: second})
	if len(all) != 2 || all[1].ID != "x/fork-1" {
		t.Fatalf("%+v", all)
	}
	for i, tr := range all {
		if !slices.Contains(tr.Lacks, LackCommon) || slices.Contains(tr.Lacks, LackBeginnings) || len(tr.Calls) != 1 || tr.Calls[0].Index != 0 {
			t.Errorf("fork %d: %+v", i, tr)
		}
	}
	// A history that breaks later stays one trajectory: its calls are states of their own.
	tr := single(t, turn{context: task, output: first}, turn{context: []int32{1, 2, 3, 99, 98}, output: second})
	if slices.Contains(tr.Lacks, LackCommon) || len(tr.Calls) != 2 || !slices.Equal(tr.Prefix, []int32{1, 2, 3}) {
		t.Errorf("%+v", tr)
	}
	checkSpans(t, &tr.Calls[0], prefixTo(3), unknown(3, 6))
	checkSpans(t, &tr.Calls[1], prefixTo(3), unknown(3, 5))
}

// A prompt that lost its beginning is said to have.
func TestPromptCutFromTheLeft(t *testing.T) {
	long := make([]int32, 40)
	for i := range long {
		long[i] = int32(100 + i)
	}
	all := of(t, turn{context: long, output: first}, turn{context: slices.Concat(long[10:], first), output: second})
	if len(all) != 2 || !slices.Contains(all[0].Lacks, LackBeginnings) {
		t.Errorf("%d trajectories, lacks %q", len(all), all[0].Lacks)
	}
}

// An environment that folds its history goes on from an older prompt: the longest
// earlier one is found, not only the last.
func TestHistoryGoesOnFromAnOlderPrompt(t *testing.T) {
	tr := single(t,
		turn{context: task, output: first},
		turn{context: slices.Concat(task, first, []int32{7}), output: second},
		turn{context: slices.Concat(task, first, []int32{9, 9}), output: second})
	checkSpans(t, &tr.Calls[1], prefixTo(6), retained(0, 0, 6, 18), observed(0, 18, 19))
	// What stands there now is not what call 0 was answered before.
	checkSpans(t, &tr.Calls[2], prefixTo(6), retained(0, 0, 6, 18), unknown(18, 20))

	// An output of one id is no run that could be found again, but by what stands before it.
	tr = single(t,
		turn{context: task, output: []int32{50}},
		turn{context: slices.Concat(task, []int32{50, 7}), output: second},
		turn{context: slices.Concat(task, []int32{50, 9, 9}), output: second},
		turn{context: slices.Concat(task, []int32{51, 50}), output: second})
	checkSpans(t, &tr.Calls[1], prefixTo(6), retained(0, 0, 6, 7), observed(0, 7, 8))
	checkSpans(t, &tr.Calls[2], prefixTo(6), retained(0, 0, 6, 7), unknown(7, 9))
	checkSpans(t, &tr.Calls[3], prefixTo(6), unknown(6, 8))
}

// The exact sequence of an earlier call wins over a run that merely looks alike,
// also where the output ended at its length limit.
func TestExactSequenceBeatsSimilarRun(t *testing.T) {
	tr := single(t,
		turn{context: task, output: first, stop: trace.StopLength},
		turn{context: slices.Concat(task, first, answer), output: first[:10], stop: trace.StopLength},
		turn{context: slices.Concat(task, first, answer, first[:10]), output: second})
	checkSpans(t, &tr.Calls[2], prefixTo(6), retained(0, 0, 6, 18), observed(0, 18, 21), retained(1, 0, 21, 31))

	// The same where the environment happens to go on as the older output did, which
	// makes that the longer run: the output still ends where it was cut.
	tr = single(t,
		turn{context: task, output: first, stop: trace.StopLength},
		turn{context: slices.Concat(task, first, answer), output: first[:10], stop: trace.StopLength},
		turn{context: slices.Concat(task, first, answer, first), output: second})
	checkSpans(t, &tr.Calls[2], prefixTo(6), retained(0, 0, 6, 18), observed(0, 18, 21), retained(1, 0, 21, 31), observed(1, 31, 33))
}

// MEM1's contexts: the last output and its observation, nothing older, also where
// outputs begin alike.
func TestCompactMemoryIsAttributed(t *testing.T) {
	out := func(last int32) []int32 { return append(slices.Clone(first), last) }
	tr := single(t,
		turn{context: task, output: out(60)},
		turn{context: slices.Concat(task, out(60), answer), output: out(61)},
		turn{context: slices.Concat(task, out(61), []int32{70, 71}), output: out(62)})
	checkSpans(t, &tr.Calls[1], prefixTo(6), retained(0, 0, 6, 19), observed(0, 19, 22))
	checkSpans(t, &tr.Calls[2], prefixTo(6), retained(1, 0, 6, 19), observed(1, 19, 21))
}

// A log-prob holds for its exact prefix alone: [1] → [2, 3], then the prompt [1, 3,
// 4] on which 5 was sampled. The 3 in it is context, not an action with the
// log-prob that it had after [1, 2].
func TestRetainedSuffixIsNoAction(t *testing.T) {
	tr := single(t, turn{context: []int32{1}, output: []int32{2, 3}, logProbs: []float32{-1, -2}},
		turn{context: []int32{1, 3, 4}, output: []int32{5}, logProbs: []float32{-3}})
	checkSpans(t, &tr.Calls[1], prefixTo(1), unknown(1, 3))
	p, err := align.Compile(tr, align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range p.Actions {
		state := ""
		for k := range p.IDs {
			if p.Visible(a.Predict, k) {
				state += string(rune('0' + p.IDs[k]))
			}
		}
		got = append(got, state+">"+string(rune('0'+a.ID)))
	}
	if want := []string{"1>2", "12>3", "134>5"}; !slices.Equal(got, want) {
		t.Errorf("actions in their states %q, want %q", got, want)
	}
}

// Forced ids between sampled ones are context of what follows: no loss, no log-prob.
func TestForcedTokensAreNoActions(t *testing.T) {
	turns := split([]int32{1}, []int32{2, 3, 4, 5, 6}, []int{1, 1, 0, 1, 0}, []float32{-1, -2, -9, -3, -9})
	want := []turn{
		{context: []int32{1}, output: []int32{2, 3}, logProbs: []float32{-1, -2}, observation: []int32{4}},
		{context: []int32{1, 2, 3, 4}, output: []int32{5}, logProbs: []float32{-3}},
	}
	if !reflect.DeepEqual(turns, want) {
		t.Fatalf("turns %+v, want %+v", turns, want)
	}
	p, err := align.Compile(single(t, turns...), align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Actions) != 3 {
		t.Errorf("%d actions, want 3: the forced 4 and the 6 behind the end are none", len(p.Actions))
	}
	if got := split([]int32{1}, []int32{9, 2}, []int{0, 1}, nil); len(got) != 1 || !slices.Equal(got[0].context, []int32{1, 9}) {
		t.Errorf("forced first: %+v", got)
	}
}

// An output that was cut in the middle of a word keeps the ids that were sampled,
// whatever a tokenizer would make of the text.
func TestTruncatedOutputKeepsItsIDs(t *testing.T) {
	all, _ := read(t, "testdata/nemo_gym.jsonl", "nemo-gym")
	c := all[0].Calls[1]
	if c.Stop != trace.StopLength || !slices.Equal(c.Output, second) || len(c.LogProbs) != len(second) {
		t.Errorf("%+v", c)
	}
}

// What agents of ours wrote is found again from contexts and outputs alone: every
// context is accounted for, and states compile to the same actions.
func TestAttributionOfKnownUpdates(t *testing.T) {
	for seed := range uint64(60) {
		c := aligntest.Small()
		c.Update = aligntest.Updates[seed%4]
		want := aligntest.Random(rand.New(rand.NewPCG(seed, 7)), c)
		var turns []turn
		for _, call := range want.Calls {
			turns = append(turns, turn{context: call.Context, output: call.Output, observation: call.Observation})
		}
		r := &run{id: want.ID, task: "x", agent: "x", turns: turns}
		if r.check() != nil {
			continue
		}
		for _, got := range of(t, turns...) {
			for k := range got.Calls {
				if !slices.Equal(got.Calls[k].Context, want.Calls[k].Context) || !slices.Equal(got.Calls[k].Output, want.Calls[k].Output) {
					t.Fatalf("seed %d: call %d has other ids", seed, k)
				}
			}
		}
	}
}
