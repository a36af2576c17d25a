package results

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func taskRow(variant string, seed int64, horizon, task string, em, f1, peak, seconds float64) TaskRow {
	return TaskRow{Variant: variant, Seed: seed, Horizon: horizon, TaskID: task, Values: Values{
		EM: em, F1: f1, EMMEM1: 2 * em, F1MEM1: 2 * f1, PeakContext: peak, Dependency: 1000 * peak, InferenceSeconds: &seconds,
	}}
}

func values(em, f1, emMEM1, f1MEM1, peak, dependency, seconds float64) Values {
	return Values{em, f1, emMEM1, f1MEM1, peak, dependency, &seconds}
}

// evaluation is two variants with two seeds on two tasks each, and one on another horizon.
func evaluation() []TaskRow {
	return []TaskRow{
		taskRow("ppo", 0, "q2", "a", 0.5, 0.5, 100, 1),
		taskRow("ppo", 0, "q2", "b", 0, 0.25, 120, 1.5),
		taskRow("ppo", 1, "q2", "a", 0, 0.5, 104, 1),
		taskRow("ppo", 1, "q2", "b", 0, 0.25, 116, 1.25),
		taskRow("memopd", 0, "q16", "c", 0.25, 0.5, 400, 8),
		taskRow("memopd", 0, "q2", "b", 0.5, 0.5, 90, 1),
		taskRow("memopd", 0, "q2", "a", 1, 1, 95, 1),
		taskRow("memopd", 1, "q2", "a", 1, 1, 97, 1),
		taskRow("memopd", 1, "q2", "b", 0.5, 0.5, 98, 1),
	}
}

func TestRecordKeys(t *testing.T) {
	r := Record{Variant: "ppo", Seed: 3, Horizon: "q2", Tasks: 7, Values: values(1, 2, 3, 4, 5, 6, 7)}
	data, err := json.Marshal(r)
	want := `{"variant":"ppo","seed":3,"horizon":"q2","tasks":7,"em":1,"f1":2,"em_mem1":3,"f1_mem1":4,` +
		`"peak_context":5,"dependency":6,"inference_seconds":7}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v\nwant %s", data, err, want)
	}
}

// Every field of Values is a metric, under its own JSON key.
func TestMetricsAreComplete(t *testing.T) {
	typ := reflect.TypeFor[Values]()
	if typ.NumField() != len(Metrics) {
		t.Fatalf("%d metrics, %d fields", len(Metrics), typ.NumField())
	}
	for i, m := range Metrics {
		v := values(0, 1, 2, 3, 4, 5, 6)
		got, ok := m.Of(v)
		if key := typ.Field(i).Tag.Get("json"); key != m.Key || !ok || got != float64(i) {
			t.Errorf("metric %d is %s with %v, field %s", i, m.Key, got, key)
		}
	}
}

func TestRecords(t *testing.T) {
	got, err := Records(evaluation())
	want := []Record{
		{"ppo", 0, "q2", 2, values(0.25, 0.375, 0.5, 0.75, 110, 110000, 1.25)},
		{"ppo", 1, "q2", 2, values(0, 0.375, 0, 0.75, 110, 110000, 1.125)},
		{"memopd", 0, "q16", 1, values(0.25, 0.5, 0.5, 1, 400, 400000, 8)},
		{"memopd", 0, "q2", 2, values(0.75, 0.75, 1.5, 1.5, 92.5, 92500, 1)},
		{"memopd", 1, "q2", 2, values(0.75, 0.75, 1.5, 1.5, 97.5, 97500, 1)},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("records %+v, %v\nwant %+v", got, err, want)
	}
}

// Two runs of a task are two trajectories and one task.
func TestRecordsOfRuns(t *testing.T) {
	rows := evaluation()[:2]
	rows[1].TaskID, rows[1].Run = "a", 1
	got, err := Records(rows)
	if err != nil || len(got) != 1 || got[0].Tasks != 1 || got[0].PeakContext != 110 {
		t.Errorf("records %+v, %v", got, err)
	}
}

// Time is measured on some tasks alone: the mean is theirs, and null without any.
func TestRecordsWithoutTime(t *testing.T) {
	rows := evaluation()[:3]
	rows[1].InferenceSeconds, rows[2].InferenceSeconds = nil, nil
	got, err := Records(rows)
	if err != nil || len(got) != 2 || *got[0].InferenceSeconds != 1 || got[1].InferenceSeconds != nil {
		t.Fatalf("records %+v, %v", got, err)
	}
	data, err := json.Marshal(got[1])
	if err != nil || !strings.Contains(string(data), `"inference_seconds":null`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestValidate(t *testing.T) {
	good := Record{Variant: "ppo", Horizon: "q2", Tasks: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*Record){
		`variant ""`:         func(r *Record) { r.Variant = "" },
		`horizon ""`:         func(r *Record) { r.Horizon = "" },
		"0 tasks":            func(r *Record) { r.Tasks = 0 },
		"f1 is NaN":          func(r *Record) { r.F1 = math.NaN() },
		"dependency is +Inf": func(r *Record) { r.Dependency = math.Inf(1) },
		"em is -1":           func(r *Record) { r.EM = -1 },
	} {
		r := good
		spoil(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	rows := evaluation()
	rows[3].TaskID = ""
	if _, err := Records(rows); err == nil {
		t.Error("a row without a task is taken")
	}
	rows = evaluation()
	rows[3].EM = math.NaN()
	if _, err := Summarize(rows, SummaryOptions{}); err == nil {
		t.Error("a row with NaN is taken")
	}
}
