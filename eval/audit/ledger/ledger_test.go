package ledger

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/trace"
)

func span(o trace.Origin, from, offset, start, end int) trace.Span {
	return trace.Span{Origin: o, FromCall: from, Offset: offset, Start: start, End: end}
}

// eos ends the outputs of the tests' trajectories.
const eos = 9

// recorded is a trajectory of two calls with nothing wrong: the output and the
// observation of the first stand in the context of the second.
func recorded() *trace.Trajectory {
	prefix := span(trace.OriginPrefix, -1, 0, 0, 2)
	return &trace.Trajectory{
		Schema: trace.SchemaVersion, ID: "a", TaskID: "a", Agent: "mem1", Prefix: []int32{1, 2},
		Sampler: trace.Sampler{Temperature: .6, TopP: .9, TopK: 40}, End: trace.EndAnswered,
		Calls: []trace.Call{
			{Context: []int32{1, 2}, Spans: []trace.Span{prefix}, Output: []int32{20, 21, 22, eos}, LogProbs: []float32{-1, 0, -.5, 0},
				Stop: trace.StopEOS, Outcome: trace.OutcomeSearch, Query: "x", Observation: []int32{30, 31}, MaxNewTokens: 5},
			{Index: 1, Context: []int32{1, 2, 20, 21, 22, eos, 30, 31}, Spans: []trace.Span{prefix,
				span(trace.OriginRetained, 0, 0, 2, 6), span(trace.OriginObservation, 0, 0, 6, 8)},
				Output: []int32{40, eos}, LogProbs: []float32{-2, -1}, Stop: trace.StopEOS, Outcome: trace.OutcomeAnswer, MaxNewTokens: 5},
		},
	}
}

// imported is the same with outcomes and origins that nobody knows.
func imported(edit func(*trace.Trajectory)) *trace.Trajectory {
	t := recorded()
	t.End, t.Agent, t.Lacks = trace.EndUnknown, "x", []string{"context origins"}
	for i := range t.Calls {
		c := &t.Calls[i]
		c.Outcome, c.Query, c.MaxNewTokens = trace.OutcomeUnknown, "", 0
	}
	edit(t)
	return t
}

// seen makes the context of call 1 of the ids and their spans behind the prefix.
func seen(t *trace.Trajectory, ids []int32, spans ...trace.Span) {
	c := &t.Calls[1]
	c.Context = append([]int32{1, 2}, ids...)
	c.Spans = append([]trace.Span{c.Spans[0]}, spans...)
	t.Calls[0].Observation = nil
}

func auditOf(o Options, all ...*trace.Trajectory) *Audit {
	a := New(o)
	for _, t := range all {
		a.Add(t)
	}
	return a
}

func TestSoundTrajectory(t *testing.T) {
	a := auditOf(Options{}, recorded(), recorded())
	for _, row := range a.Rows() {
		if row.Failures+row.Warnings > 0 || row.First != nil {
			t.Errorf("%+v: %v", row, row.First)
		}
		calls := map[string]int{CheckDrift: 2, CheckParts: 2}[row.Check]
		if calls == 0 {
			calls = 4
		}
		if row.Trajectories != 2 || row.Calls != calls {
			t.Errorf("%s looked at %d trajectories, %d calls", row.Check, row.Trajectories, row.Calls)
		}
	}
	if a.Failures() != 0 {
		t.Errorf("%d failures", a.Failures())
	}
	if n := len(a.Rows()); n != len(Checks())-2 {
		t.Errorf("%d rows without a tokenizer", n)
	}
}

// Each damage is found by its check, with the call and the token, and by no other
// check unless it says so.
func TestDamageIsFound(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		check       string
		call, token int
		failure     bool
		says        string
		also        []string
		make        func() *trace.Trajectory
	}{
		"log-probs of another length": {CheckLengths, 0, 2, true, "2 log-probs for 4 output ids", nil,
			edited(func(t *trace.Trajectory) { t.Calls[0].LogProbs = t.Calls[0].LogProbs[:2] })},
		"NaN":     {CheckLogProbs, 1, 0, true, "NaN", nil, edited(func(t *trace.Trajectory) { t.Calls[1].LogProbs[0] = nan })},
		"above 0": {CheckLogProbs, 1, 1, true, "above 0", nil, edited(func(t *trace.Trajectory) { t.Calls[1].LogProbs[1] = .1 })},
		"minus infinity": {CheckLogProbs, 1, 1, true, "infinite", nil,
			edited(func(t *trace.Trajectory) { t.Calls[1].LogProbs[1] = float32(math.Inf(-1)) })},
		"no log-probs": {CheckLogProbs, 1, -1, false, "none", nil, edited(func(t *trace.Trajectory) { t.Calls[1].LogProbs = nil })},
		"placeholders": {CheckLogProbs, 1, -1, false, "placeholders", nil, edited(func(t *trace.Trajectory) {
			c := &t.Calls[1]
			c.Output, c.LogProbs, c.MaxNewTokens = append(slices.Repeat([]int32{40}, 16), eos), make([]float32, 17), 99
		})},
		"stop token in the middle": {CheckStops, 0, 1, true, "before the end of an output of 4", nil, edited(func(t *trace.Trajectory) {
			t.Calls[0].Output[1], t.Calls[1].Context[3] = eos, eos
		})},
		"a span's copy differs": {CheckSpans, 1, -1, true, "context id 3 is 99", nil,
			edited(func(t *trace.Trajectory) { t.Calls[1].Context[3] = 99 })},
		"another prefix": {CheckPrefix, 1, -1, true, "does not begin with the task prefix", nil,
			edited(func(t *trace.Trajectory) { t.Calls[1].Context[0] = 99 })},
		"another field": {CheckRecord, 1, -1, true, "max_new_tokens", nil,
			edited(func(t *trace.Trajectory) { t.Calls[1].MaxNewTokens = -1 })},
		"cut at the length limit": {CheckCut, 1, 1, false, "length limit", nil,
			edited(func(t *trace.Trajectory) { t.Calls[1].Stop, t.Calls[1].MaxNewTokens = trace.StopLength, 2 })},
		"cut by the context": {CheckCut, 1, 1, false, "context was full", nil,
			edited(func(t *trace.Trajectory) { t.Calls[1].Stop = trace.StopContext })},
		"cut from the left": {CheckCut, -1, -1, true, "cut from the left", []string{CheckLacks},
			func() *trace.Trajectory {
				return imported(func(t *trace.Trajectory) { t.Lacks = append(t.Lacks, "beginnings") })
			}},
		"temperature 0 that sampled": {CheckSampler, -1, -1, true, "yet not greedy", nil,
			edited(func(t *trace.Trajectory) { t.Sampler.Temperature = 0 })},
		"top-p 0": {CheckSampler, -1, -1, true, "nothing is left", nil, edited(func(t *trace.Trajectory) { t.Sampler.TopP = 0 })},
		"raw log-probs of other draws": {CheckSampler, -1, -1, true, "before temperature 0.6, top_p 0.9, top_k 40", nil,
			edited(func(t *trace.Trajectory) { t.Sampler.Meaning = trace.MeaningRaw })},
		"log-probs of who knows what": {CheckSampler, -1, -1, false, "before or after temperature 0.6, top_p 0.9, top_k 40", nil,
			edited(func(t *trace.Trajectory) { t.Sampler.Meaning = trace.MeaningUnknown })},
		"settings not known": {CheckSampler, -1, -1, false, "top_p not known", []string{CheckLacks},
			edited(func(t *trace.Trajectory) { t.Lacks = []string{"top_p"}; t.Sampler.TopP = 0 })},
	} {
		a := auditOf(Options{}, c.make())
		for _, row := range a.Rows() {
			n := row.Failures + row.Warnings
			if row.Check != c.check {
				if n > 0 && !slices.Contains(c.also, row.Check) {
					t.Errorf("%s: also %v", name, row.First)
				}
				continue
			}
			f := row.First
			if f == nil || f.Call != c.call || f.Token != c.token || f.Failure != c.failure || f.Failure != (row.Failures > 0) ||
				!strings.Contains(f.Problem, c.says) || f.Trajectory != "a" {
				t.Errorf("%s: %+v, first %+v; want call %d, token %d, %q", name, row, f, c.call, c.token, c.says)
			}
		}
		if (a.Failures() > 0) != c.failure {
			t.Errorf("%s: %d failures", name, a.Failures())
		}
	}
}

func edited(edit func(*trace.Trajectory)) func() *trace.Trajectory {
	return func() *trace.Trajectory {
		t := recorded()
		edit(t)
		return t
	}
}

// Raw log-probs are those of the draw at temperature 1 without top-p and top-k, and
// of a greedy one they are what a ledger holds anyway.
func TestRawLogProbsThatFit(t *testing.T) {
	for _, s := range []trace.Sampler{{Temperature: 1, TopP: 1, Meaning: trace.MeaningRaw}, {Greedy: true, Meaning: trace.MeaningRaw}} {
		tr := recorded()
		tr.Sampler = s
		if row := rowOf(auditOf(Options{}, tr), CheckSampler); row.Failures+row.Warnings > 0 {
			t.Errorf("%+v: %v", s, row.First)
		}
	}
}

func rowOf(a *Audit, check string) Row {
	for _, row := range a.Rows() {
		if row.Check == check {
			return row
		}
	}
	return Row{}
}

// A log-prob of exactly 0 is a value: recorded() holds three, and nothing is said.
func TestLogProbOfZeroIsReal(t *testing.T) {
	if row := rowOf(auditOf(Options{}, recorded()), CheckLogProbs); row.Failures+row.Warnings > 0 || row.Tokens != 6 {
		t.Errorf("%+v", row)
	}
}

// What stops outputs is told, or found: by reasons, by given ids, by what ends several.
func TestStopIDs(t *testing.T) {
	junk := func(stop trace.StopReason) *trace.Trajectory {
		return imported(func(t *trace.Trajectory) {
			t.Calls[0].Output[1], t.Calls[1].Context[3] = eos, eos
			t.Calls[0].Stop, t.Calls[1].Stop = stop, stop
		})
	}
	for _, c := range []struct {
		name     string
		o        Options
		stop     trace.StopReason
		fail     int
		warn     int
		ofTokens int
	}{
		{"by reason", Options{}, trace.StopEOS, 1, 0, 6},
		{"given", Options{StopIDs: []int32{eos}}, trace.StopTag, 1, 0, 6},
		{"given, another", Options{StopIDs: []int32{77}}, trace.StopEOS, 2, 0, 6}, // both outputs end with an id that stops nothing
		{"ends several", Options{}, trace.StopUnknown, 0, 1, 6},
		{"not known", Options{}, trace.StopTag, 0, 0, 0},
	} {
		row := rowOf(auditOf(c.o, junk(c.stop)), CheckStops)
		if row.Failures != c.fail || row.Warnings != c.warn || row.Tokens != c.ofTokens {
			t.Errorf("%s: %+v", c.name, row)
		}
	}
}

func words(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.NewWordLevel([]string{"<s>", "</s>", "a", "b", "c", "?"}, "?", "<s>", "</s>")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestFindingsAreBounded(t *testing.T) {
	a := New(Options{})
	for range findingsKept + 7 {
		tr := recorded()
		tr.Calls[1].LogProbs = nil
		a.Add(tr)
	}
	if n := len(a.Findings(CheckLogProbs)); n != findingsKept || rowOf(a, CheckLogProbs).Warnings != findingsKept+7 {
		t.Errorf("%d findings, %+v", n, rowOf(a, CheckLogProbs))
	}
}
