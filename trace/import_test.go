package trace

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// imported is a trajectory as an importer leaves it: little is known of it, and
// its last prompt has no output.
func imported() *Trajectory {
	prefix := Span{Origin: OriginPrefix, FromCall: -1, End: 2}
	return &Trajectory{
		Schema: SchemaVersion, ID: "rows.jsonl:1", TaskID: "7", Agent: "given", Prefix: []int32{1, 2}, End: EndUnknown,
		Sampler: Sampler{Meaning: MeaningUnknown}, Lacks: []string{"log-probs", "generation"},
		Calls: []Call{
			{Index: 0, Context: []int32{1, 2}, Spans: []Span{prefix}, Output: []int32{3, 4}, Stop: StopLength, Outcome: OutcomeUnknown},
			{Index: 1, Context: []int32{1, 2, 9, 3}, Spans: []Span{prefix, {Origin: OriginUnknown, FromCall: -1, Start: 2, End: 3},
				{Origin: OriginRetained, FromCall: 0, Start: 3, End: 4}}, Stop: StopUnknown, Outcome: OutcomeUnknown},
		},
	}
}

func TestImportsValidate(t *testing.T) {
	if err := imported().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		field  string
		call   int
		damage func(*Trajectory)
	}{
		"meaning":               {"sampler", -1, func(t *Trajectory) { t.Sampler.Meaning = "cooked" }},
		"nameless lack":         {"lacks", -1, func(t *Trajectory) { t.Lacks[1] = "" }},
		"lack not UTF-8":        {"lacks", -1, func(t *Trajectory) { t.Lacks[1] = "\xff" }},
		"unknown from a call":   {"spans", 1, func(t *Trajectory) { t.Calls[1].Spans[1].FromCall = 0 }},
		"unknown as prefix":     {"spans", 1, func(t *Trajectory) { t.Calls[1].Spans[0].Origin = OriginUnknown }},
		"empty after a stop":    {"output", 1, func(t *Trajectory) { t.Calls[1].Stop = StopEOS }},
		"empty after a search":  {"output", 1, func(t *Trajectory) { t.Calls[1].Outcome, t.Calls[1].Query = OutcomeSearch, "x" }},
		"a query nobody read":   {"query", 1, func(t *Trajectory) { t.Calls[1].Query = "x" }},
		"answers nobody read":   {"answers", -1, func(t *Trajectory) { t.Answers = []string{"x"} }},
		"length below a limit":  {"stop", 0, func(t *Trajectory) { t.Calls[0].MaxNewTokens = 3 }},
		"longer than its limit": {"output", 0, func(t *Trajectory) { t.Calls[0].MaxNewTokens = 1 }},
		"no limit of a search":  {"max_new_tokens", 0, func(t *Trajectory) { t.Calls[0].Outcome, t.Calls[0].Query = OutcomeSearch, "x" }},
	} {
		tr := imported()
		tc.damage(tr)
		if err := tr.Validate(); err == nil || !names(err, tc.call, tc.field) {
			t.Errorf("%s: %v, want one of call %d, field %s", name, err, tc.call, tc.field)
		}
	}
}

func TestImportsRoundTrip(t *testing.T) {
	for _, name := range []string{"l.jsonl", "l.parquet"} {
		path := filepath.Join(t.TempDir(), name)
		if err := WriteAll(path, []*Trajectory{imported()}); err != nil {
			t.Fatal(err)
		}
		got, err := ReadAll(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || !reflect.DeepEqual(got[0], imported()) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Ledgers that were written before `lacks` and `meaning` existed read as they did.
func TestLedgersFromBeforeReadAlike(t *testing.T) {
	want := []*Trajectory{sample(3), cancelled()}
	for _, name := range []string{"testdata/before_lacks.jsonl", "testdata/before_lacks.parquet"} {
		got, err := ReadAll(name)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

// An unchecked reader hands out what does not validate; a checked one does not.
func TestOpenUnchecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.jsonl")
	a, _, err := Append(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(imported()); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	spoilFile(t, path, `"context":[1,2,9,3]`, `"context":[1,2,9,8]`)
	if _, err := ReadAll(path); err == nil || !strings.Contains(err.Error(), "in the retained of call 0 it is 3") {
		t.Errorf("checked: %v", err)
	}
	r, err := OpenUnchecked(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tr, err := r.Next()
	if err != nil || tr.Calls[1].Context[3] != 8 {
		t.Errorf("unchecked: %v, %+v", err, tr)
	}
	if _, err := OpenUnchecked("l.txt"); err == nil {
		t.Error("l.txt opens")
	}
}

func spoilFile(t *testing.T, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), from) {
		t.Fatalf("%s holds no %s: %s", path, from, data)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), from, to, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
