package results

import (
	"strings"
	"testing"
)

// Other shares of flattened transcripts stand in a table of their own, beside the
// manifest's, with their teachers' divergence.
func TestSharesTable(t *testing.T) {
	own := 0.1
	evidence := &Evidence{Manifest: Reproduction{FlattenedShare: &own}}
	add := func(variant string, seed int64, f1 float64) {
		evidence.Rows = append(evidence.Rows, taskRow(variant, seed, "q2", "a", f1, f1, 1, 1))
	}
	for seed := range int64(2) {
		d := .1 * float64(seed)
		add("ppo", seed, .4)
		add("persistent", seed, .5+d)
		add("memopd", seed, .7+d)
		add("persistent-share-0", seed, .1+d)
		add("memopd-share-0", seed, .6+d)
		add("memopd-share-0.4", seed, .6+d)
	}
	for set, of := range map[string][2]float64{"q2": {.25, 3.5}, "q2.share-0": {.75, 1.5}} {
		evidence.Audits.Teacher = append(evidence.Audits.Teacher, TeacherAudit{set, []TeacherPart{{Calls: "before"}, {Calls: "after", Agreement: &of[0], P99: &of[1]}}})
	}
	t9 := paperTables(t, evidence)["t9"]
	if len(t9.Tables) != 1 || t9.Tables[0].Name != "shares" {
		t.Fatalf("T9 holds %d tables", len(t9.Tables))
	}
	var lines []string
	for _, r := range t9.Tables[0].Rows {
		lines = append(lines, strings.Join(texts(r), " "))
	}
	want := []string{
		"0 75.00 1.5 - q2 2 seeds 0.150 ±0.635 0.650 ±0.635 +0.500 [+0.500, +0.500]",
		"0.1 25.00 3.5 - q2 2 seeds 0.550 ±0.635 0.750 ±0.635 +0.200 [+0.200, +0.200]",
		"0.4 - - - q2 - - 0.650 ±0.635 -",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	add("memopd-topk", 0, .5)
	add("memopd-topk", 1, .5)
	if n := len(paperTables(t, evidence)["t9"].Tables); n < 3 {
		t.Errorf("with an estimator T9 holds %d tables, the shares among them", n)
	}
	for _, c := range []struct {
		name, variant string
		share         float64
		ok            bool
	}{{"memopd-share-0.4", "memopd", .4, true}, {"memopd", "memopd", 0, false}, {"a-share-x", "a", 0, false}} {
		if variant, share, ok := TeacherShare(c.name); variant != c.variant || share != c.share || ok != c.ok {
			t.Errorf("%s: %s, %g, %v", c.name, variant, share, ok)
		}
	}
}
