package report

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/results"
)

// step is a line of metrics.
func step(variant string, seed int64, n float64, metrics map[string]float64) results.Curve {
	c := results.Curve{Variant: variant, Seed: seed, Metrics: map[string]*float64{stepKey: &n}}
	for k, v := range metrics {
		c.Metrics[k] = &v
	}
	return c
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 || math.IsNaN(a) && math.IsNaN(b) }

// Curves are means over seeds with the t interval: for .2, .3, .7 the half width is
// 4.302653 * s / sqrt(3), s = sqrt(.07).
func TestDevFigure(t *testing.T) {
	var curves []results.Curve
	for seed, v := range []float64{.2, .3, .7} {
		curves = append(curves, step("ppo", int64(seed), 0, map[string]float64{"eval/q2_f1": v, "eval/q16_f1": .1}),
			step("ppo", int64(seed), 20, map[string]float64{"eval/q2_f1": v + .1}))
	}
	curves = append(curves, step("memopd", 0, 0, map[string]float64{"eval/q2_f1": .5}))
	f := devFigure(curves, "bench reproduce")
	if len(f.Panels) != 2 || f.Panels[0].Title != "Q2: 2 questions a task" || f.Panels[1].Title != "Q16: 16 questions a task" || len(f.Missing) != 0 {
		t.Fatalf("%+v", f)
	}
	s := f.Panels[0].Series
	if len(s) != 2 || s[0].Name != "ppo" || s[1].Name != "memopd" || len(s[0].Points) != 2 {
		t.Fatalf("%+v", s)
	}
	half := 4.302652729911275 * math.Sqrt(.07) / math.Sqrt(3)
	if p := s[0].Points[0]; !near(p.X, 0) || !near(p.Y, .4) || !near(p.Low, .4-half) || !near(p.High, .4+half) || p.N != 3 {
		t.Errorf("step 0: %+v", p)
	}
	if p := s[0].Points[1]; !near(p.X, 20) || !near(p.Y, .5) {
		t.Errorf("step 20: %+v", p)
	}
	if p := s[1].Points[0]; p.banded() || p.Y != .5 {
		t.Errorf("one seed has the band %+v", p)
	}
	if !strings.Contains(f.Caption, "1 to 3 seeds") {
		t.Errorf("caption %q", f.Caption)
	}
}

// Long curves are averaged within each run first; values of 0 have no place on a
// logarithmic axis; what no run has is named.
func TestLearningFigure(t *testing.T) {
	var curves []results.Curve
	for n := 1.; n <= 100; n++ {
		kl := .01
		if n == 1 {
			kl = 0
		}
		curves = append(curves, step("memopd", 0, n, map[string]float64{"score/reward": n / 100, "actor/teacher_kl": kl}),
			step("memopd", 1, n, map[string]float64{"score/reward": n / 100}))
	}
	f := learningFigure(curves, "bench reproduce")
	if len(f.Panels) != 2 || len(f.Missing) != 1 || !strings.Contains(f.Missing[0].What, "actor/reference_kl") {
		t.Fatalf("%d panels, missing %v", len(f.Panels), f.Missing)
	}
	points := f.Panels[0].Series[0].Points
	if len(points) != 50 || !near(points[0].X, 1) || !near(points[0].Y, .015) || !near(points[49].Y, .995) || points[0].N != 2 || !near(points[0].High, .015) || f.Panels[0].X.Label != "step (means of 2)" {
		t.Errorf("%d points from %+v to %+v, axis %q", len(points), points[0], points[len(points)-1], f.Panels[0].X.Label)
	}
	for _, p := range f.Panels[1].Series[0].Points {
		if !near(p.Y, .01) {
			t.Errorf("teacher KL %+v", p)
		}
	}
}

func TestHorizonFigure(t *testing.T) {
	o := fixture(t, 3)
	f := horizonFigure(o.summaries, "bench reproduce")
	if len(f.Panels) != 4 {
		t.Fatalf("%d panels", len(f.Panels))
	}
	if names := f.Panels[0].X.Names; !slices.Equal(names, []string{"Q2", "Q8", "Q16", "Wiki-RAG"}) {
		t.Errorf("horizons %v", names)
	}
	records, err := results.Records(o.Rows)
	if err != nil {
		t.Fatal(err)
	}
	var means []float64
	for _, r := range records {
		if r.Variant == "memopd" && r.Horizon == "q8" {
			means = append(means, r.F1)
		}
	}
	want, err := results.TInterval(means)
	if err != nil || len(means) != 3 {
		t.Fatal(err, len(means))
	}
	s := seriesOf(t, f.Panels[0], "memopd")
	if p := s.Points[1]; !near(p.Y, want.Mean) || !near(p.Low, want.Low) || !near(p.High, want.High) || math.Round(p.X) != 1 {
		t.Errorf("memopd on q8 is %+v, want %+v", p, want)
	}
	if s.Points[1].Gap || !s.Points[3].Gap {
		t.Error("Wiki-RAG is joined to the horizons, or those are not to each other")
	}
	published := seriesOf(t, f.Panels[1], "memopd, published")
	var got []float64
	for _, p := range published.Points {
		got = append(got, p.Y)
	}
	if !slices.Equal(got, []float64{14.3, 283.2, 416.2, 7.4}) || !published.Hollow {
		t.Errorf("published %v, hollow %v", got, published.Hollow)
	}
	for _, s := range f.Panels[1].Series {
		if s.Name == "ppo" {
			t.Error("ppo is compared with itself")
		}
	}
}

func seriesOf(t *testing.T, p Panel, name string) Series {
	t.Helper()
	for _, s := range p.Series {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s has no series %s", p.Title, name)
	return Series{}
}

// Errors by call are the certificate's own.
func TestPositionFigure(t *testing.T) {
	data, err := os.ReadFile("../results/audit/mini.q2.rce.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Layouts []struct {
			Name   string
			ByCall []struct{ P99 float64 } `json:"by_call"`
		}
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	f := positionFigure(fixture(t, 2).Audits.RCE, "results/x")
	if len(f.Panels) != 2 || f.Panels[0].Title != "mini.q2: 3963 tokens, certified" {
		t.Fatalf("%d panels, %q", len(f.Panels), f.Panels[0].Title)
	}
	compared := 0
	for _, l := range c.Layouts {
		if !slices.Contains(shownLayouts, l.Name) {
			continue
		}
		points := seriesOf(t, f.Panels[0], l.Name).Points
		for k, call := range l.ByCall {
			if !near(points[k].Y, max(call.P99, 1e-8)) || points[k].X != float64(k) {
				t.Errorf("%s, call %d: %+v, want %g", l.Name, k, points[k], call.P99)
			}
			compared++
		}
	}
	if compared != 36 {
		t.Errorf("compared %d", compared)
	}
	if f := positionFigure(nil, "results/x"); len(f.Panels) != 0 || len(f.Missing) != 1 || !strings.Contains(f.Missing[0].Command, "--certificate results/x/audit/rce.q2.json") {
		t.Errorf("without certificates: %+v", f)
	}
}

func TestContextFigure(t *testing.T) {
	view := func(variant, horizon string, tokens ...int) results.TrajectoryView {
		v := results.TrajectoryView{Variant: variant, Horizon: horizon, TaskID: variant}
		for _, n := range tokens {
			v.Calls = append(v.Calls, results.CallView{ContextTokens: n})
		}
		return v
	}
	f := contextFigure([]results.TrajectoryView{view("ppo", "q2", 1), view("ppo", "q16", 10, 30), view("memopd", "q16", 4), view("ppo", "q16", 20), view("ppo", "wikirag", 9)},
		fixture(t, 2).Audits.Updates, "results/x", "bench reproduce")
	if len(f.Panels) != 2 || f.Panels[0].Title != "By variant, Q16 (tasks sampled: 2)" {
		t.Fatalf("%+v", f.Panels)
	}
	if p := seriesOf(t, f.Panels[0], "ppo").Points; len(p) != 2 || p[0].Y != 15 || p[1].Y != 30 || p[0].N != 2 {
		t.Errorf("%+v", p)
	}
	if p := seriesOf(t, f.Panels[1], "full-response").Points; !near(p[1].Y, 41.40625) {
		t.Errorf("%+v", p)
	}
}

func TestSpeedFigure(t *testing.T) {
	var a results.SpeedAudit
	a.Config.Shape, a.Libtorch = "memory", "2.15.0, OpenBLAS"
	a.Rows = []results.SpeedRow{{Prefix: 750, Calls: 4, CallTokens: 250, Ratio: 2.5, Ideal: 3}, {Prefix: 250, Calls: 4, CallTokens: 250, Ratio: 1.5, Ideal: 1.6}, {Prefix: 250, Calls: 8, CallTokens: 250, Ratio: 1.7, Ideal: 1.8}}
	f := speedFigure([]results.SpeedAudit{a}, "results/x")
	if len(f.Panels) != 2 || len(f.Missing) != 0 {
		t.Fatalf("%+v", f)
	}
	s := seriesOf(t, f.Panels[0], "4 calls")
	if len(s.Points) != 2 || !near(s.Points[0].Y, 1.5) || !near(s.Points[0].X, 50) || !near(s.Points[1].X, 75) || !near(s.Points[1].Y, 2.5) {
		t.Errorf("%+v", s.Points)
	}
	if ideal := seriesOf(t, f.Panels[1], "prefix 50 % ideal"); len(ideal.Points) != 2 || !near(ideal.Points[1].X, 8) || !near(ideal.Points[1].Y, 1.8) || !ideal.Hollow {
		t.Errorf("%+v", ideal)
	}
	if r := f.Panels[0].Rules; len(r) != 1 || r[0].Y != 1.63 || !strings.Contains(r[0].Label, "published") {
		t.Errorf("rules %+v", r)
	}
	a.Rows = a.Rows[:2]
	if f := speedFigure([]results.SpeedAudit{a}, "results/x"); len(f.Panels) != 1 || len(f.Missing) != 1 {
		t.Errorf("one number of calls: %d panels, missing %v", len(f.Panels), f.Missing)
	}
}

// Other teachers stand in a figure of their own, by their share, and in no other.
func TestSharesFigure(t *testing.T) {
	var summaries []results.Summary
	var evidence results.Evidence
	for name, f1 := range map[string]float64{"persistent": .5, "memopd": .6, "persistent-share-0.4": .7, "memopd-share-0.4": .75, "persistent-share-0": .1, "memopd-share-0": .65} {
		summaries = append(summaries, results.Summary{Variant: name, Horizon: "q2", Seeds: 2, Over: results.OverSeeds, Means: map[string]results.Interval{"f1": {Mean: f1, Low: f1 - .05, High: f1 + .05}}})
		evidence.Rows = append(evidence.Rows, results.TaskRow{Variant: name})
	}
	own, kl, low := .1, .5, .25
	evidence.Manifest.FlattenedShare = &own
	evidence.Audits.Teacher = []results.TeacherAudit{{Set: "q8", Parts: []results.TeacherPart{{Calls: "after", MeanKL: &kl}}},
		{Set: "q2", Parts: []results.TeacherPart{{Calls: "before", MeanKL: &kl}, {Calls: "after", MeanKL: &low}}}, {Set: "q2.share-0", Parts: []results.TeacherPart{{Calls: "after", MeanKL: &kl}}}}
	f := sharesFigure(summaries, evidence.Teachers())
	if len(f.Panels) != 2 {
		t.Fatalf("%d panels", len(f.Panels))
	}
	if p := seriesOf(t, f.Panels[0], "persistent").Points; len(p) != 3 || p[0].X != 0 || !near(p[0].Y, .1) || p[1].X != .1 || !near(p[1].Y, .5) || p[2].X != .4 || !near(p[2].Low, .65) {
		t.Errorf("%+v", p)
	}
	if p := seriesOf(t, f.Panels[1], "teacher").Points; len(p) != 2 || p[0].X != 0 || p[0].Y != .5 || p[1].X != .1 || p[1].Y != .25 {
		t.Errorf("%+v", p)
	}
	rest := ownTeacher(summaries, func(s results.Summary) string { return s.Variant })
	if len(rest) != 2 {
		t.Errorf("%d variants with the preset's teacher", len(rest))
	}
	evidence.Rows = ownTeacher(evidence.Rows, func(r results.TaskRow) string { return r.Variant })
	if n := len(evidence.Rows); n != 2 || evidence.Teachers() != nil {
		t.Errorf("%d variants of one teacher give a figure of shares", n)
	}
}
