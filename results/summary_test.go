package results

import (
	"slices"
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
	// ppo's seeds: 0.25, 0; t of one degree of freedom.
	if i := ppo.Means["em"]; ppo.Over != OverSeeds || i.Mean != 0.125 || !near(i.Half(), 12.706204736*0.125, 1e-6) {
		t.Errorf("ppo over %s %+v", ppo.Over, i)
	}
	if ppo.Against != nil {
		t.Errorf("the baseline has a change: %+v", ppo.Against)
	}
	// memopd against ppo, peak context: 92.5 against 110 of seed 0, 97.5 against 110 of seed 1.
	c, p := memopd.Against, memopd.Against.Changes["peak_context"]
	if c.Over != OverSeeds || c.Pairs != 2 || p.Base != 110 || p.New != 95 || p.Difference.Mean != -15 || !near(p.Difference.Half(), 12.706204736*2.5, 1e-6) {
		t.Errorf("%d pairs of %s: %+v", c.Pairs, c.Over, p)
	}
	if i := p.Percent; i == nil || !near(i.Mean, -1500.0/110, 1e-9) || !near(i.Half(), 12.706204736*250/110, 1e-5) {
		t.Errorf("peak context changes by %+v %%", i)
	}
	if q16.Over != OverTasks || q16.Seeds != 1 || q16.Against.Changes != nil || q16.Against.NoChange != "ppo was not evaluated on q16" {
		t.Errorf("q16 %+v, %+v", q16, q16.Against)
	}
}

// oneRun leaves each variant its seed 0.
func oneRun(rows []TaskRow) []TaskRow {
	return slices.DeleteFunc(rows, func(r TaskRow) bool { return r.Seed != 0 })
}

// One run on either side leaves only its tasks to take an interval over.
func TestSummarizeOneRun(t *testing.T) {
	rows := evaluation()
	for _, alone := range []string{"ppo", "memopd"} {
		left := slices.DeleteFunc(slices.Clone(rows), func(r TaskRow) bool { return r.Variant == alone && r.Seed != 0 })
		c, err := Compare(left, "memopd", "ppo", "q2", testOptions.Bootstrap)
		if err != nil || c.Over != OverTasks || c.Pairs != 2 || c.Changes["em"].Test != nil {
			t.Errorf("one run of %s: %+v, %v", alone, c, err)
		}
	}
	got, err := Summarize(oneRun(rows), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if i := got[0].Means["em"]; got[0].Over != OverTasks || i != (Interval{0.25, 0, 0.5}) {
		t.Errorf("over %s %+v", got[0].Over, i)
	}
	var base, new []float64
	for _, r := range oneRun(evaluation()) {
		if r.Horizon == "q2" {
			base, new = splitVariant(r, base, new)
		}
	}
	c := got[1].Against.Changes["peak_context"]
	if want := Mean(new) - Mean(base); c.Difference.Mean != want || c.Percent == nil || !near(c.Percent.Mean, 100*want/Mean(base), 1e-9) {
		t.Errorf("peak context changes by %+v, want %v", c, want)
	}
}

func splitVariant(r TaskRow, base, new []float64) (b, n []float64) {
	if r.Variant == "ppo" {
		return append(base, r.PeakContext), new
	}
	return base, append(new, r.PeakContext)
}

// A metric that some tasks lack is compared on the tasks that both have; one that
// none has is left out.
func TestSummarizeWithoutTime(t *testing.T) {
	rows := oneRun(evaluation())
	for i := range rows {
		if rows[i].TaskID == "b" || rows[i].TaskID == "c" {
			rows[i].InferenceSeconds = nil
		}
	}
	got, err := Summarize(rows, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if i := got[0].Means["inference_seconds"]; i != (Interval{1, 1, 1}) {
		t.Errorf("over tasks %+v", i)
	}
	if c := got[1].Against.Changes["inference_seconds"]; c.Difference != (Interval{}) || c.Percent == nil {
		t.Errorf("change %+v", c)
	}
	if i, ok := got[2].Means["inference_seconds"]; ok {
		t.Errorf("q16's time is %+v", i)
	}
	table := SummaryTable(got)
	if cell := table.Rows[2][len(table.Columns)-1]; cell.Text != "n/a" || cell.Values != nil {
		t.Errorf("q16's cell is %+v", cell)
	}
}

// A seed whose tasks all lack a metric leaves that metric out over seeds, and no other.
func TestSummarizeSeedWithoutTime(t *testing.T) {
	rows := evaluation()
	for i := range rows {
		if rows[i].Variant == "memopd" && rows[i].Seed == 1 {
			rows[i].InferenceSeconds = nil
		}
	}
	got, err := Summarize(rows, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := got[1].Against.Changes["inference_seconds"]; ok || len(got[1].Against.Changes) != len(Metrics)-1 || len(got[1].Means) != len(Metrics)-1 {
		t.Errorf("%+v, %+v", got[1], got[1].Against)
	}
}

// Only the seeds that both have are pairs, whatever the order of rows.
func TestCompareCommonSeeds(t *testing.T) {
	var rows []TaskRow
	for _, s := range []struct {
		variant string
		seed    int64
		em      float64
	}{{"ppo", 2, 0.2}, {"ppo", 0, 0.1}, {"ppo", 1, 0.4}, {"memopd", 3, 1}, {"memopd", 1, 0.6}, {"memopd", 2, 0.5}} {
		rows = append(rows, taskRow(s.variant, s.seed, "q2", "a", s.em, s.em, 100, 1))
	}
	c, err := Compare(rows, "memopd", "ppo", "q2", testOptions.Bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	want, err := PairedT([]float64{0.4, 0.2}, []float64{0.6, 0.5})
	if em := c.Changes["em"]; err != nil || c.Pairs != 2 || c.Over != OverSeeds || !near(em.Test.T, want.T, 1e-9) || !near(em.Difference.Mean, 0.25, 1e-12) {
		t.Errorf("%+v, %v", c, err)
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
	if got, err := Summarize(append(evaluation(), more, again), testOptions); err != nil || got[1].Against.Changes != nil {
		t.Errorf("a task that the baseline lacks: %+v, %v", got, err)
	}
	rows = evaluation()
	for i := range rows[5:] {
		rows[5+i].TaskID += "x"
	}
	got, err := Summarize(rows, testOptions)
	if err != nil || got[1].Against.Changes != nil || !strings.Contains(got[1].Against.NoChange, "different tasks") {
		t.Errorf("other tasks: %+v, %v", got, err)
	}
}
