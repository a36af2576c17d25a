package agent

import (
	"reflect"
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

func TestUpdates(t *testing.T) {
	prefix := []int32{9, 9}
	head := trace.Span{Origin: trace.OriginPrefix, FromCall: -1, End: 2}
	for _, tc := range []struct {
		update Update
		calls  int
		want   []int32
		spans  []trace.Span
	}{
		{MEM1Update{}, 0, []int32{9, 9}, []trace.Span{head}},
		{MEM1Update{}, 1, []int32{9, 9, 1, 2, 3}, []trace.Span{head,
			{Origin: trace.OriginRetained, FromCall: 0, Start: 2, End: 4},
			{Origin: trace.OriginObservation, FromCall: 0, Start: 4, End: 5}}},
		{MEM1Update{}, 2, []int32{9, 9, 4, 5, 6, 7}, []trace.Span{head,
			{Origin: trace.OriginRetained, FromCall: 1, Start: 2, End: 3},
			{Origin: trace.OriginObservation, FromCall: 1, Start: 3, End: 6}}},
		{FullUpdate{}, 0, []int32{9, 9}, []trace.Span{head}},
		{FullUpdate{}, 2, []int32{9, 9, 1, 2, 3, 4, 5, 6, 7}, []trace.Span{head,
			{Origin: trace.OriginRetained, FromCall: 0, Start: 2, End: 4},
			{Origin: trace.OriginObservation, FromCall: 0, Start: 4, End: 5},
			{Origin: trace.OriginRetained, FromCall: 1, Start: 5, End: 6},
			{Origin: trace.OriginObservation, FromCall: 1, Start: 6, End: 9}}},
	} {
		calls := recorded()[:tc.calls]
		ids, spans, err := Assemble(prefix, calls, tc.update.Retain(calls))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ids, tc.want) || !reflect.DeepEqual(spans, tc.spans) {
			t.Errorf("%s after %d calls: %v, %+v", tc.update.Name(), tc.calls, ids, spans)
		}
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
	for _, name := range []string{"mem1", "full"} {
		if u, err := UpdateNamed(name); err != nil || u.Name() != name {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
	if _, err := UpdateNamed("window"); err == nil || !strings.Contains(err.Error(), "mem1, full") {
		t.Errorf("got %v", err)
	}
}
