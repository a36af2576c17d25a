package ledger

import (
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// long makes a first output of n+1 ids, the last of which ends it.
func long(t *trace.Trajectory, n int) []int32 {
	c := &t.Calls[0]
	c.Output, c.LogProbs = nil, nil
	for i := range n {
		c.Output = append(c.Output, int32(100+i))
	}
	c.Output = append(c.Output, eos)
	return c.Output
}

// Later prompts that hold an output with other ids are found without a tokenizer,
// with the call, the token and the ids of both sides.
func TestRenderedHistoriesDrift(t *testing.T) {
	retained := func(offset, start, end int) trace.Span { return span(trace.OriginRetained, 0, offset, start, end) }
	unknown := func(start, end int) trace.Span { return span(trace.OriginUnknown, -1, 0, start, end) }
	for name, c := range map[string]struct {
		check           string
		failure         bool
		token           int
		recorded, found []int32
		says            string
		make            func(*trace.Trajectory)
	}{
		// [he, llo] is decoded and encoded again as [hello].
		"two tokens merged": {CheckDrift, true, 10, []int32{110, 111}, []int32{55}, "retokenised", func(t *trace.Trajectory) {
			o := long(t, 20)
			seen(t, slices.Concat(o[:10], []int32{55}, o[12:]), retained(0, 2, 12), unknown(12, 13), retained(12, 13, 22))
		}},
		"merged at the very beginning": {CheckDrift, true, 0, []int32{100, 101}, []int32{55}, "retokenised", func(t *trace.Trajectory) {
			o := long(t, 20)
			seen(t, slices.Concat([]int32{55}, o[2:]), unknown(2, 3), retained(2, 3, 22))
		}},
		"merged in an output cut in a word": {CheckDrift, true, 18, []int32{118, 119, eos}, []int32{55, 66}, "rewritten", func(t *trace.Trajectory) {
			o := long(t, 20)
			seen(t, slices.Concat(o[:18], []int32{55, 66}), retained(0, 2, 20), unknown(20, 22))
		}},
		// A template that puts an empty think block where none was sampled.
		"think block inserted": {CheckDrift, true, 0, nil, []int32{60, 61, 62}, "3 ids inserted that nobody sampled", func(t *trace.Trajectory) {
			o := long(t, 20)
			seen(t, slices.Concat([]int32{60, 61, 62}, o), unknown(2, 5), retained(0, 5, 26))
		}},
		"think block emptied": {CheckDrift, true, 1, []int32{101, 102, 103, 104, 105, 106, 107, 108}, []int32{60}, "1 other id for 29 ids", func(t *trace.Trajectory) {
			o := long(t, 50)
			seen(t, slices.Concat(o[:1], []int32{60}, o[30:]), retained(0, 2, 3), unknown(3, 4), retained(30, 4, 25))
		}},
		// A template that strips what was thought, and leaves no trace of it.
		"think block stripped": {CheckParts, false, 0, []int32{100, 101, 102, 103, 104, 105, 106, 107}, nil, "without 30 ids", func(t *trace.Trajectory) {
			o := long(t, 50)
			seen(t, o[30:], retained(30, 2, 23))
		}},
		"the end stripped": {CheckParts, false, 20, []int32{eos}, nil, "without 1 id", func(t *trace.Trajectory) {
			o := long(t, 20)
			seen(t, o[:20], retained(0, 2, 22))
		}},
		"nothing recognised": {CheckDrift, true, 0, []int32{100, 101, 102, 103, 104, eos}, []int32{55, 101, 66, 103, 67, eos}, "rewritten", func(t *trace.Trajectory) {
			long(t, 5)
			seen(t, []int32{55, 101, 66, 103, 67, eos}, unknown(2, 8))
		}},
	} {
		tr := imported(c.make)
		if err := tr.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a := auditOf(Options{}, tr)
		row := rowOf(a, c.check)
		f := row.First
		if f == nil || f.Call != 1 || f.Token != c.token || f.Failure != c.failure || !slices.Equal(f.Recorded, c.recorded) ||
			!slices.Equal(f.Found, c.found) || !strings.Contains(f.Problem, c.says) || !strings.Contains(f.Problem, "call 0's output") {
			t.Errorf("%s: %+v", name, f)
		}
		if row.Failures+row.Warnings != 1 {
			t.Errorf("%s: %d failures, %d warnings: %v", name, row.Failures, row.Warnings, a.Findings(c.check))
		}
		if other := map[string]string{CheckDrift: CheckParts, CheckParts: CheckDrift}[c.check]; rowOf(a, other).First != nil {
			t.Errorf("%s: also %v", name, rowOf(a, other).First)
		}
	}
}

// What an agent of ours left out, it meant to; contexts that are no rendering of
// an output are not taken for one.
func TestNoDrift(t *testing.T) {
	suffix := recorded()
	suffix.Calls[1].Context = []int32{1, 2, 22, eos, 30, 31}
	suffix.Calls[1].Spans = []trace.Span{suffix.Calls[1].Spans[0], span(trace.OriginRetained, 0, 2, 2, 4), span(trace.OriginObservation, 0, 0, 4, 6)}
	quoted := imported(func(t *trace.Trajectory) {
		o := long(t, 20)
		seen(t, slices.Concat([]int32{70, 71}, o[5:]), span(trace.OriginUnknown, -1, 0, 2, 4), span(trace.OriginRetained, 0, 5, 4, 20))
		t.Calls[0].Context, t.Calls[0].Spans = []int32{1, 2, 3}, []trace.Span{t.Calls[0].Spans[0], span(trace.OriginUnknown, -1, 0, 2, 3)}
	})
	summary := imported(func(t *trace.Trajectory) {
		long(t, 20)
		seen(t, []int32{70, 71, 72, 73}, span(trace.OriginUnknown, -1, 0, 2, 6))
	})
	again := imported(func(t *trace.Trajectory) { seen(t, nil) })
	for name, tr := range map[string]*trace.Trajectory{"suffix": suffix, "quoted": quoted, "summary": summary, "asked again": again} {
		if err := tr.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if row := rowOf(auditOf(Options{}, tr), CheckDrift); row.Failures+row.Warnings > 0 || row.Calls != 1 {
			t.Errorf("%s: %+v %v", name, row, row.First)
		}
	}
	if row := rowOf(auditOf(Options{}, suffix), CheckParts); row.Warnings > 0 {
		t.Errorf("suffix: %v", row.First)
	}
}

// A log-prob is valid for its exact prefix alone: the 3 of [1] → [2, 3] that a later
// prompt [1, 3, 4] holds is not called the same token's copy.
func TestRetainedSuffixUnderAnotherPrefix(t *testing.T) {
	tr := imported(func(t *trace.Trajectory) {
		t.Prefix = []int32{1}
		t.Calls[0].Context, t.Calls[0].Spans = []int32{1}, []trace.Span{span(trace.OriginPrefix, -1, 0, 0, 1)}
		t.Calls[0].Output, t.Calls[0].LogProbs, t.Calls[0].Observation = []int32{2, 3}, []float32{-1, -2}, nil
		t.Calls[1].Context = []int32{1, 3, 4}
		t.Calls[1].Spans = []trace.Span{span(trace.OriginPrefix, -1, 0, 0, 1), span(trace.OriginUnknown, -1, 0, 1, 3)}
	})
	row := rowOf(auditOf(Options{}, tr), CheckDrift)
	if row.Failures != 1 || row.First.Token != 0 || !slices.Equal(row.First.Recorded, []int32{2, 3}) || !slices.Equal(row.First.Found, []int32{3, 4}) {
		t.Errorf("%+v %v", row, row.First)
	}
}
