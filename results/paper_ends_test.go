package results

import (
	"strings"
	"testing"
)

// How episodes end is counted over all seeds; F1 is of those that answered.
func TestEndsOfEpisodes(t *testing.T) {
	row := func(variant, task, end string, calls int, f1 float64) TaskRow {
		r := taskRow(variant, 0, "q2", task, f1, f1, 1, 1)
		r.End, r.Calls = end, calls
		return r
	}
	evidence := &Evidence{Rows: []TaskRow{
		row("ppo", "a", "answered", 2, .5), row("ppo", "b", "turn_limit", 6, 0), row("ppo", "c", "answered", 4, 1), row("ppo", "d", "turn_limit", 6, 0),
		row("memopd", "a", "answered", 3, 1), row("memopd", "b", "unusable", 1, 0), row("memopd", "c", "answered", 3, 1), row("memopd", "d", "answered", 3, .25),
	}}
	var got *Table
	for _, p := range paperTables(t, evidence) {
		for _, table := range p.Tables {
			if table.Name == "ends" {
				got = table
			}
		}
	}
	if got == nil {
		t.Fatal("no table of ends")
	}
	want := []string{
		"horizon variant episodes calls answered turn_limit unusable F1 of answered",
		"q2 ppo 4 4.5 2 (50.00%) 2 (50.00%) 0 (0.00%) 0.750",
		"q2 memopd 4 2.5 3 (75.00%) 0 (0.00%) 1 (25.00%) 0.750",
	}
	lines := []string{strings.Join(got.heads(), " ")}
	for _, r := range got.Rows {
		lines = append(lines, strings.Join(texts(r), " "))
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	evidence.Rows[1] = row("ppo", "a", "unusable", 9, .5)
	if _, err := PaperTables(evidence); err == nil || !strings.Contains(err.Error(), "occurs twice") {
		t.Errorf("a trajectory that occurs twice with another end: %v", err)
	}
}
