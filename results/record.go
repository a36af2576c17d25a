// Package results keeps what runs measured: record rows, a manifest of how they
// came about, statistics, and tables. Published numbers are data of their own,
// marked as published wherever they are shown.
package results

import (
	"fmt"
	"math"
)

// Values are the metrics of one task's trajectory, or their means over tasks.
// InferenceSeconds is nil, and null in JSON, where no trajectory ran alone.
type Values struct {
	EM               float64  `json:"em"`                // squad, mean over a task's questions
	F1               float64  `json:"f1"`                // squad, mean over a task's questions
	EMMEM1           float64  `json:"em_mem1"`           // mem1, sum over a task's questions
	F1MEM1           float64  `json:"f1_mem1"`           // mem1, sum over a task's questions
	PeakContext      float64  `json:"peak_context"`      // tokens
	Dependency       float64  `json:"dependency"`        // token pairs
	InferenceSeconds *float64 `json:"inference_seconds"` // model time, retrieval apart
}

// Record is one evaluated model on one horizon: means over the tasks.
type Record struct {
	Variant string `json:"variant"`
	Seed    int64  `json:"seed"`
	Horizon string `json:"horizon"`
	Tasks   int    `json:"tasks"`
	Values
}

// TaskRow is one trajectory's metrics. Run counts the trajectories of one task.
type TaskRow struct {
	Variant string `json:"variant"`
	Seed    int64  `json:"seed"`
	Horizon string `json:"horizon"`
	TaskID  string `json:"task_id"`
	Run     int    `json:"run"`
	End     string `json:"end,omitempty"`   // how it ended, as a ledger says; empty: not recorded
	Calls   int    `json:"calls,omitempty"` // of the model; 0: not recorded
	Values
}

// Metric describes one of Values' fields. Tables and statistics go through
// Metrics, so that none is forgotten.
type Metric struct {
	Key      string // as in JSON
	Head     string // as in a table's head
	Decimals int
	Better   int                    // +1: more is better, -1: less is
	get      func(*Values) *float64 // nil where it was not measured
}

// Metrics lists the metrics in the order of the tables.
var Metrics = []Metric{
	{"em", "EM (squad)", 3, +1, func(v *Values) *float64 { return &v.EM }},
	{"f1", "F1 (squad)", 3, +1, func(v *Values) *float64 { return &v.F1 }},
	{"em_mem1", "EM (mem1)", 3, +1, func(v *Values) *float64 { return &v.EMMEM1 }},
	{"f1_mem1", "F1 (mem1)", 3, +1, func(v *Values) *float64 { return &v.F1MEM1 }},
	{"peak_context", "peak context", 1, -1, func(v *Values) *float64 { return &v.PeakContext }},
	{"dependency", "dependency", 0, -1, func(v *Values) *float64 { return &v.Dependency }},
	{"inference_seconds", "time (s)", 3, -1, func(v *Values) *float64 { return v.InferenceSeconds }},
}

// score tells EM and F1, by either scorer, from costs.
func (m Metric) score() bool { return m.Better > 0 }

// Of is the metric's value, false where it was not measured.
func (m Metric) Of(v Values) (float64, bool) {
	if x := m.get(&v); x != nil {
		return *x, true
	}
	return 0, false
}

func (v Values) validate() error {
	for _, m := range Metrics {
		if x, _ := m.Of(v); math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
			return fmt.Errorf("%s is %v", m.Key, x)
		}
	}
	return nil
}

// Validate refuses a record that no table could show: no names, no tasks, or a
// value that is negative or not finite.
func (r Record) Validate() error {
	switch {
	case r.Variant == "" || r.Horizon == "":
		return fmt.Errorf("record: variant %q, horizon %q", r.Variant, r.Horizon)
	case r.Tasks <= 0:
		return fmt.Errorf("record: %d tasks", r.Tasks)
	}
	return wrap("record", r.validate())
}

// Validate refuses a row without names, or with a value that is negative or not finite.
func (r TaskRow) Validate() error {
	if r.Variant == "" || r.Horizon == "" || r.TaskID == "" {
		return fmt.Errorf("task row: variant %q, horizon %q, task %q", r.Variant, r.Horizon, r.TaskID)
	}
	return wrap("task row", r.validate())
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Records averages task rows to one record for each variant, seed and horizon,
// in the order in which these first occur. Tasks counts different tasks; a value
// that some trajectories lack is the mean of those that have it.
func Records(rows []TaskRow) ([]Record, error) {
	type key struct {
		variant, horizon string
		seed             int64
	}
	var order []key
	groups := map[key][]TaskRow{}
	for _, r := range rows {
		if err := r.Validate(); err != nil {
			return nil, err
		}
		k := key{r.Variant, r.Horizon, r.Seed}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	var records []Record
	for _, k := range order {
		tasks := map[string]bool{}
		for _, r := range groups[k] {
			tasks[r.TaskID] = true
		}
		records = append(records, Record{k.variant, k.seed, k.horizon, len(tasks), meanValues(groups[k])})
	}
	return records, nil
}

func meanValues(rows []TaskRow) Values {
	var v Values
	for _, m := range Metrics {
		mean, ok := meanOfRows(m, rows)
		switch x := m.get(&v); {
		case x != nil:
			*x = mean
		case ok: // the one value that may be lacking
			v.InferenceSeconds = &mean
		}
	}
	return v
}

// meanOfRows is a metric's mean over the rows that have it, false if none has.
func meanOfRows(m Metric, rows []TaskRow) (float64, bool) {
	var values []float64
	for _, r := range rows {
		if x, ok := m.Of(r.Values); ok {
			values = append(values, x)
		}
	}
	return Mean(values), len(values) > 0
}
