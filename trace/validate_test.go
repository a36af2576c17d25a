package trace

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// four returns a valid trajectory with at least three calls, the second one with log-probs.
func four(t *testing.T) *Trajectory {
	t.Helper()
	for seed := uint64(1); seed < 100; seed++ {
		tr := sample(seed)
		if len(tr.Calls) >= 3 && tr.Calls[1].LogProbs != nil && len(tr.Calls[1].Output) > 1 {
			return tr
		}
	}
	t.Fatal("no such sample")
	return nil
}

func TestValidateAcceptsSamples(t *testing.T) {
	for seed := range uint64(200) {
		if err := sample(seed).Validate(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cancelled().Validate(); err != nil {
		t.Fatal(err)
	}
	partial := four(t)
	// A copy of a part of an output, as suffix retention makes it.
	c := &partial.Calls[2]
	s := &c.Spans[1]
	cut := s.End - s.Start - 1
	c.Context = append(append([]int32{}, c.Context[:s.Start]...), c.Context[s.Start+cut:]...)
	s.Offset, s.End = cut, s.Start+1
	c.Spans[2].Start, c.Spans[2].End = s.End, c.Spans[2].End-cut
	if err := partial.Validate(); err != nil {
		t.Fatal(err)
	}
}

var nan = math.NaN()

// faults damage a valid trajectory; call and field are what Validate must name.
var faults = map[string]struct {
	field  string
	call   int
	damage func(*Trajectory)
}{
	"schema":              {"schema", -1, func(t *Trajectory) { t.Schema = 2 }},
	"no id":               {"id", -1, func(t *Trajectory) { t.ID = "" }},
	"no task":             {"task_id", -1, func(t *Trajectory) { t.TaskID = "" }},
	"no agent":            {"agent", -1, func(t *Trajectory) { t.Agent = "" }},
	"model not UTF-8":     {"model", -1, func(t *Trajectory) { t.Model = "\xff" }},
	"reward":              {"reward", -1, func(t *Trajectory) { t.Reward = nan }},
	"score":               {"scores", -1, func(t *Trajectory) { t.Scores["em"] = math.Inf(1) }},
	"temperature":         {"sampler", -1, func(t *Trajectory) { t.Sampler.Temperature = -1 }},
	"top-p":               {"sampler", -1, func(t *Trajectory) { t.Sampler.TopP = 1.5 }},
	"end unknown":         {"end", -1, func(t *Trajectory) { t.End = "gone" }},
	"end not answered":    {"end", -1, func(t *Trajectory) { t.End = EndTurnLimit }},
	"seeds alike":         {"calls", -1, func(t *Trajectory) { t.Calls[1].Seed = t.Calls[0].Seed }},
	"negative prefix id":  {"prefix", -1, func(t *Trajectory) { t.Prefix[0] = -1 }},
	"index":               {"index", 1, func(t *Trajectory) { t.Calls[1].Index = 0 }},
	"other prefix":        {"context", 1, func(t *Trajectory) { t.Calls[1].Context[0]++ }},
	"short context":       {"context", 1, func(t *Trajectory) { t.Calls[1].Context = nil }},
	"copy differs":        {"spans", 2, func(t *Trajectory) { t.Calls[2].Context[t.Calls[2].Spans[1].Start]++ }},
	"output differs":      {"spans", 2, func(t *Trajectory) { t.Calls[1].Output[0]++ }},
	"observation differs": {"spans", 2, func(t *Trajectory) { t.Calls[1].Observation[0]++ }},
	"overlap":             {"spans", 2, func(t *Trajectory) { t.Calls[2].Spans[2].Start-- }},
	"tail without span":   {"spans", 2, func(t *Trajectory) { t.Calls[2].Spans = t.Calls[2].Spans[:2] }},
	"span past the end":   {"spans", 2, func(t *Trajectory) { t.Calls[2].Spans[2].End++ }},
	"offset past source":  {"spans", 2, func(t *Trajectory) { t.Calls[2].Spans[1].Offset = 1 << 40 }},
	"span from call -1":   {"spans", 2, func(t *Trajectory) { t.Calls[2].Spans[1].FromCall = -1 }},
	"origin unknown":      {"spans", 2, func(t *Trajectory) { t.Calls[2].Spans[1].Origin = "x" }},
	"prefix span later":   {"spans", 2, func(t *Trajectory) { t.Calls[2].Spans[1].Origin = OriginPrefix }},
	"log-prob lacks":      {"log_probs", 1, func(t *Trajectory) { t.Calls[1].LogProbs = t.Calls[1].LogProbs[1:] }},
	"log-prob above 0":    {"log_probs", 1, func(t *Trajectory) { t.Calls[1].LogProbs[0] = .5 }},
	"log-prob NaN":        {"log_probs", 1, func(t *Trajectory) { t.Calls[1].LogProbs[0] = float32(nan) }},
	"log-probs empty":     {"log_probs", 1, func(t *Trajectory) { t.Calls[1].LogProbs = []float32{} }},
	"output empty":        {"output", 1, func(t *Trajectory) { t.Calls[1].Output = nil }},
	"output too long":     {"output", 1, func(t *Trajectory) { t.Calls[1].MaxNewTokens = 1 }},
	"output negative":     {"output", 1, func(t *Trajectory) { t.Calls[1].Output[0] = -5 }},
	"stop unknown":        {"stop", 1, func(t *Trajectory) { t.Calls[1].Stop = "" }},
	"stop at length":      {"stop", 1, func(t *Trajectory) { t.Calls[1].Stop, t.Calls[1].MaxNewTokens = StopLength, 99 }},
	"outcome unknown":     {"outcome", 1, func(t *Trajectory) { t.Calls[1].Outcome = "" }},
	"goes on after":       {"outcome", 1, func(t *Trajectory) { t.Calls[1].Outcome = OutcomeAnswer }},
	"no query":            {"query", 1, func(t *Trajectory) { t.Calls[1].Query = "" }},
	"no observation":      {"observation", 1, func(t *Trajectory) { t.Calls[1].Observation = nil }},
	"reason on a search":  {"reason", 1, func(t *Trajectory) { t.Calls[1].Reason = "x" }},
	"query not UTF-8":     {"query", 1, func(t *Trajectory) { t.Calls[1].Query = "a\xffb" }},
	"seconds":             {"seconds", 1, func(t *Trajectory) { t.Calls[1].Seconds = -1 }},
	"failed yet found":    {"retrieval_error", 1, func(t *Trajectory) { t.Calls[1].RetrievalError, t.Calls[1].Documents = "x", []string{"d"} }},
	"retrieval seconds":   {"retrieval_seconds", 1, func(t *Trajectory) { t.Calls[1].RetrievalSeconds = nan }},
}

func TestValidateFinds(t *testing.T) {
	for name, tc := range faults {
		t.Run(name, func(t *testing.T) {
			tr := four(t)
			tc.damage(tr)
			err := tr.Validate()
			if err == nil {
				t.Fatal("nothing found")
			}
			if !strings.Contains(err.Error(), tr.ID) {
				t.Errorf("%v: does not name the trajectory", err)
			}
			if !names(err, tc.call, tc.field) {
				t.Errorf("%v: names no call %d, field %s", err, tc.call, tc.field)
			}
		})
	}
}

// A gap between spans, and a copy of an output within its own context, each in a
// record that has no other fault.
func TestValidateFindsAlone(t *testing.T) {
	gap := four(t)
	c := &gap.Calls[2]
	c.Context = append(c.Context, 5)
	c.Spans[2].Start, c.Spans[2].End = c.Spans[2].Start+1, c.Spans[2].End+1
	copy(c.Context[c.Spans[2].Start:], gap.Calls[1].Observation)

	own := four(t)
	c = &own.Calls[2]
	c.Context = append(c.Context[:c.Spans[0].End:c.Spans[0].End], c.Output...)
	c.Spans = []Span{c.Spans[0], {Origin: OriginRetained, FromCall: 2, Start: c.Spans[0].End, End: len(c.Context)}}

	for says, tr := range map[string]*Trajectory{"span 2 is [": gap, "span 1 is from call 2": own} {
		err := tr.Validate()
		if err == nil || !strings.Contains(err.Error(), says) || !names(err, 2, "spans") {
			t.Errorf("%v: does not say %q", err, says)
		}
	}
}

// names says whether one of the joined errors is about the call and field.
func names(err error, call int, field string) bool {
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var f *FieldError
		if errors.As(e, &f) && f.Call == call && f.Field == field {
			return true
		}
	}
	return false
}
