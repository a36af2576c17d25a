package agent

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

func recorded() []trace.Call {
	return []trace.Call{
		{Output: []int32{1, 2}, Observation: []int32{3}},
		{Output: []int32{4}, Observation: []int32{5, 6, 7}},
	}
}

// Every rule on an episode of four calls, by hand: what each call sees after the
// prefix. y and o are short for an output and an observation.
func TestUpdates(t *testing.T) {
	tok := newWords()
	var calls []trace.Call
	for _, c := range [][2]string{
		{"<think> a </think> <search> s0 </search>", "o0 x"},
		{"so <think> b <think> c </think> <search> s1 </search>", "o1 y"},
		{"<search> s2 </search>", "o2"},
	} {
		calls = append(calls, trace.Call{Output: tok.Encode(c[0]), Observation: tok.Encode(c[1])})
	}
	const (
		y0 = "<think> a </think> <search> s0 </search>"
		y1 = "so <think> b <think> c </think> <search> s1 </search>"
		y2 = "<search> s2 </search>"
	)
	for name, want := range map[string][4]string{
		"mem1":          {"", y0 + " o0 x", y1 + " o1 y", y2 + " o2"},
		"full-response": {"", y0 + " o0 x", y1 + " o1 y", y2 + " o2"},
		"suffix:2":      {"", "s0 </search> o0 x", "s1 </search> o1 y", "s2 </search> o2"},
		"suffix:4":      {"", "</think> <search> s0 </search> o0 x", "</think> <search> s1 </search> o1 y", y2 + " o2"},
		"summary":       {"", "<think> a </think> o0 x", "<think> b <think> c </think> o1 y", y2 + " o2"},
		"window:1":      {"", y0 + " o0 x", y1 + " o1 y", y2 + " o2"},
		"window:2":      {"", y0 + " o0 x", y0 + " o0 x " + y1 + " o1 y", y1 + " o1 y " + y2 + " o2"},
		"refresh":       {"", y0 + " o0 x", y0 + " " + y1 + " o1 y", y0 + " " + y1 + " " + y2 + " o2"},
		"full":          {"", y0 + " o0 x", y0 + " o0 x " + y1 + " o1 y", y0 + " o0 x " + y1 + " o1 y " + y2 + " o2"},
	} {
		u, err := UpdateNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		for k := range want {
			ids, _, err := Assemble(tok.Encode("task :"), calls[:k], u.Retain(calls[:k], tok))
			if got := tok.Decode(ids); err != nil || got != strings.TrimSpace("task : "+want[k]) {
				t.Errorf("%s, call %d: %v\n got %q\nwant %q", name, k, err, got, "task : "+want[k])
			}
		}
	}
}

// The spans of whole and of cut copies name their sources.
func TestSpansOfUpdates(t *testing.T) {
	prefix := []int32{9, 9}
	head := trace.Span{Origin: trace.OriginPrefix, FromCall: -1, End: 2}
	for _, tc := range []struct {
		update Update
		want   []int32
		spans  []trace.Span
	}{
		{MEM1Update{}, []int32{9, 9, 4, 5, 6, 7}, []trace.Span{head,
			{Origin: trace.OriginRetained, FromCall: 1, Start: 2, End: 3},
			{Origin: trace.OriginObservation, FromCall: 1, Start: 3, End: 6}}},
		{RefreshUpdate{}, []int32{9, 9, 1, 2, 4, 5, 6, 7}, []trace.Span{head,
			{Origin: trace.OriginRetained, FromCall: 0, Start: 2, End: 4},
			{Origin: trace.OriginRetained, FromCall: 1, Start: 4, End: 5},
			{Origin: trace.OriginObservation, FromCall: 1, Start: 5, End: 8}}},
		{FullUpdate{}, []int32{9, 9, 1, 2, 3, 4, 5, 6, 7}, []trace.Span{head,
			{Origin: trace.OriginRetained, FromCall: 0, Start: 2, End: 4},
			{Origin: trace.OriginObservation, FromCall: 0, Start: 4, End: 5},
			{Origin: trace.OriginRetained, FromCall: 1, Start: 5, End: 6},
			{Origin: trace.OriginObservation, FromCall: 1, Start: 6, End: 9}}},
	} {
		calls := recorded()
		ids, spans, err := Assemble(prefix, calls, tc.update.Retain(calls, chars{}))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ids, tc.want) || !reflect.DeepEqual(spans, tc.spans) {
			t.Errorf("%s: %v, %+v", tc.update.Name(), ids, spans)
		}
	}
	calls := recorded()[:1]
	ids, spans, err := Assemble(prefix, calls, SuffixUpdate{IDs: 1}.Retain(calls, chars{}))
	want := []trace.Span{head,
		{Origin: trace.OriginRetained, FromCall: 0, Offset: 1, Start: 2, End: 3},
		{Origin: trace.OriginObservation, FromCall: 0, Start: 3, End: 4}}
	if err != nil || !reflect.DeepEqual(ids, []int32{9, 9, 2, 3}) || !reflect.DeepEqual(spans, want) {
		t.Errorf("%v, %+v, %v", ids, spans, err)
	}
}

func TestAssembleParts(t *testing.T) {
	ids, spans, err := Assemble(nil, recorded(), []Segment{
		{Origin: trace.OriginObservation, FromCall: 1, Offset: 1},
		{Origin: trace.OriginRetained, FromCall: 0, Offset: 2}, // nothing left: no span
		{Origin: trace.OriginObservation, FromCall: 1, Offset: 0, Length: 2},
	})
	want := []trace.Span{
		{Origin: trace.OriginObservation, FromCall: 1, Offset: 1, Start: 0, End: 2},
		{Origin: trace.OriginObservation, FromCall: 1, Offset: 0, Start: 2, End: 4},
	}
	if err != nil || !reflect.DeepEqual(ids, []int32{6, 7, 5, 6}) || !reflect.DeepEqual(spans, want) {
		t.Errorf("%v, %+v, %v", ids, spans, err)
	}
}

func TestAssembleRefuses(t *testing.T) {
	retained := trace.OriginRetained
	for name, seg := range map[string]Segment{
		"call to come":    {Origin: retained, FromCall: 2},
		"call before all": {Origin: retained, FromCall: -1},
		"prefix":          {Origin: trace.OriginPrefix, FromCall: 0},
		"no origin":       {FromCall: 0},
		"offset":          {Origin: retained, FromCall: 0, Offset: 3},
		"offset below 0":  {Origin: retained, FromCall: 0, Offset: -1},
		"length":          {Origin: retained, FromCall: 0, Offset: 1, Length: 2},
		"length overflow": {Origin: retained, FromCall: 0, Offset: 1, Length: int(^uint(0) >> 1)},
	} {
		if _, _, err := Assemble(nil, recorded(), []Segment{seg}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestUpdateNamed(t *testing.T) {
	for _, name := range UpdateNames() {
		name = strings.Replace(name, ":N", ":12", 1)
		if u, err := UpdateNamed(name); err != nil || u.Name() != name {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
	for name, says := range map[string]string{
		"":                            "known: mem1, full, full-response, suffix:N, summary, window:N, refresh",
		"windows":                     `unknown context update "windows"`,
		"mem1:2":                      "unknown",
		"window":                      "want window:N",
		"window:":                     "whole number",
		"window:0":                    "1 or more",
		"window:-1":                   "1 or more",
		"window:02":                   "want window:N",
		"window:+2":                   "want window:N",
		"window:2 ":                   "want window:N",
		"suffix:x":                    "want suffix:N",
		"suffix:1:":                   "want suffix:N",
		"suffix:99999999999999999999": "want suffix:N",
	} {
		if u, err := UpdateNamed(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v", name, u, err)
		}
	}
}

// forgetful retains nothing at all, and hoarder everything in any order.
type forgetful struct{}
type hoarder struct{}

func (forgetful) Name() string                           { return "forgetful" }
func (forgetful) Retain([]trace.Call, Decoder) []Segment { return nil }
func (hoarder) Name() string                             { return "hoarder" }
func (hoarder) Retain(calls []trace.Call, _ Decoder) []Segment {
	var all []Segment
	for k := range calls {
		all = append(all, observed(len(calls)-1-k), retained(k), retained(k))
	}
	return all
}

// Whatever a context is rebuilt from, the task stands before it, whole, and the
// record says what each call saw.
func TestRebuiltContextsKeepTheTask(t *testing.T) {
	for _, u := range append([]Update{forgetful{}, hoarder{}}, allUpdates...) {
		o := miniOptions()
		o.Update = u
		tr := run(t, oracle(o.Tokenizer), miniWorld, o, miniTask)[0]
		if len(tr.Calls) != 4 {
			t.Fatalf("%s: %d calls, %s", u.Name(), len(tr.Calls), tr.Error)
		}
		task := o.Tokenizer.Encode(o.Protocol.Prefix(miniTask.Questions))
		for _, c := range tr.Calls {
			head, covered := c.Spans[0], 0
			for _, s := range c.Spans {
				covered += s.End - s.Start
			}
			if head.Origin != trace.OriginPrefix || !slices.Equal(c.Context[head.Start:head.End], task) || covered != len(c.Context) {
				t.Errorf("%s, call %d: spans %+v of %d ids", u.Name(), c.Index, c.Spans, len(c.Context))
			}
		}
	}
}

// A context that grows is counted: the episode ends before a call that does not fit.
func TestGrowingContextsAreCounted(t *testing.T) {
	for _, u := range allUpdates {
		o := miniOptions()
		o.Update = u
		free := run(t, oracle(o.Tokenizer), miniWorld, o, miniTask)[0]
		longest := 0
		for _, c := range free.Calls {
			longest = max(longest, len(c.Context)+c.MaxNewTokens)
		}
		for room, calls := range map[int]int{longest: 4, longest - 1: 3} {
			o.ContextTokens = room
			tr := run(t, oracle(o.Tokenizer), miniWorld, o, miniTask)[0]
			if fits := tr.End == trace.EndAnswered; fits != (calls == 4) || len(tr.Calls) > calls || !fits && tr.End != trace.EndContext {
				t.Errorf("%s in %d tokens of %d: %d calls, %s", u.Name(), room, longest, len(tr.Calls), tr.End)
			}
		}
	}
}
