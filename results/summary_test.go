package results

import (
	"strings"
	"testing"
)

var testOptions = SummaryOptions{Baseline: "ppo", Bootstrap: Bootstrap{Resamples: 500, Seed: 1}}

func TestSummarize(t *testing.T) {
	got, err := Summarize(evaluation(), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, s := range got {
		order = append(order, s.Horizon+" "+s.Variant)
	}
	if o := strings.Join(order, ", "); o != "q2 ppo, q2 memopd, q16 memopd" {
		t.Fatalf("order %s", o)
	}
	ppo, memopd, q16 := got[0], got[1], got[2]
	if ppo.Seeds != 2 || ppo.Tasks != 2 || q16.Seeds != 1 || q16.Tasks != 1 {
		t.Errorf("ppo %+v, q16 %+v", ppo, q16)
	}
	// ppo's tasks: a (0.5+0)/2, b 0; its seeds: 0.25, 0.
	if i := ppo.OverTasks["em"]; i != (Interval{0.125, 0, 0.25}) {
		t.Errorf("over tasks %+v", i)
	}
	if i := ppo.OverSeeds["em"]; i.Mean != 0.125 || !near(i.Half(), 12.706204736*0.125, 1e-6) {
		t.Errorf("over seeds %+v", i)
	}
	if ppo.Changes != nil || ppo.NoChange != "" {
		t.Errorf("the baseline has a change: %+v %s", ppo.Changes, ppo.NoChange)
	}
	// memopd against ppo: peak 95 against 110 in the mean, a 96-102, b 94-118.
	c := memopd.Changes["peak_context"]
	if c.Difference.Mean != -15 || c.Difference.Low != -24 || c.Difference.High != -6 {
		t.Errorf("peak context changes by %+v", c.Difference)
	}
	if p := c.Percent; p == nil || !near(p.Mean, -1500.0/110, 1e-9) || !near(p.Low, -2400.0/118, 1e-9) || !near(p.High, -600.0/102, 1e-9) {
		t.Errorf("peak context changes by %+v %%", p)
	}
	if q16.OverSeeds != nil || q16.Changes != nil || q16.NoChange != "ppo was not evaluated on q16" {
		t.Errorf("q16 %+v", q16)
	}
}

// A metric that some tasks lack is compared on the tasks that both have; one that
// none has is left out.
func TestSummarizeWithoutTime(t *testing.T) {
	rows := evaluation()
	for i := range rows {
		if rows[i].TaskID == "b" || rows[i].TaskID == "c" {
			rows[i].InferenceSeconds = nil
		}
	}
	got, err := Summarize(rows, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if i := got[0].OverTasks["inference_seconds"]; i != (Interval{1, 1, 1}) {
		t.Errorf("over tasks %+v", i)
	}
	if c := got[1].Changes["inference_seconds"]; c.Difference != (Interval{}) || c.Percent == nil {
		t.Errorf("change %+v", c)
	}
	if i, ok := got[2].OverTasks["inference_seconds"]; ok {
		t.Errorf("q16's time is %+v", i)
	}
	table := SummaryTable(got, true)
	if cell := table.Rows[2][len(table.Columns)-1]; cell.Text != "n/a" || cell.Values != nil {
		t.Errorf("q16's cell is %+v", cell)
	}
}

func TestSummarizeRefuses(t *testing.T) {
	rows := evaluation()
	if _, err := Summarize(append(rows, rows[0]), testOptions); err == nil || !strings.Contains(err.Error(), "occurs twice") {
		t.Errorf("a trajectory twice: %v", err)
	}
	if _, err := Summarize(rows[:3], testOptions); err == nil || !strings.Contains(err.Error(), "seed 1 has 1 of 2 tasks") {
		t.Errorf("a seed without a task: %v", err)
	}
	more := taskRow("memopd", 0, "q2", "c", 1, 1, 1, 1)
	again := more
	again.Seed = 1
	if got, err := Summarize(append(evaluation(), more, again), testOptions); err != nil || got[1].Changes != nil {
		t.Errorf("a task that the baseline lacks: %+v, %v", got, err)
	}
	rows = evaluation()
	for i := range rows[5:] {
		rows[5+i].TaskID += "x"
	}
	got, err := Summarize(rows, testOptions)
	if err != nil || got[1].Changes != nil || !strings.Contains(got[1].NoChange, "different tasks") {
		t.Errorf("other tasks: %+v, %v", got, err)
	}
}
