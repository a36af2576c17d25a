package results

import (
	"fmt"
	"math"
	"strconv"
)

// RecordTable shows records as they are, one a line.
func RecordTable(records []Record) *Table {
	t := &Table{Columns: []Column{
		{"variant", false, []string{"variant"}}, {"seed", true, []string{"seed"}},
		{"horizon", false, []string{"horizon"}}, {"tasks", true, []string{"tasks"}},
	}}
	for _, m := range Metrics {
		t.Columns = append(t.Columns, Column{m.Head, true, []string{m.Key}})
	}
	for _, r := range records {
		row := []Cell{Text(r.Variant), Text(r.Seed), Text(r.Horizon), Text(r.Tasks)}
		for _, m := range Metrics {
			cell := absent
			if v, ok := m.Of(r.Values); ok {
				cell = Cell{decimal(v, m.Decimals), []any{v}}
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// SummaryTable shows means with half their 95 % intervals: over seeds where
// overSeeds is set and there are at least two, else over tasks.
func SummaryTable(summaries []Summary, overSeeds bool) *Table {
	t := &Table{
		Title: "Evaluation",
		Columns: []Column{
			{"horizon", false, []string{"horizon"}}, {"variant", false, []string{"variant"}},
			{"seeds", true, []string{"seeds"}}, {"tasks", true, []string{"tasks"}}, {"±", false, []string{"interval"}},
		},
		Notes: []string{"squad: mean over a task's questions; mem1: MEM1's rules, sum over them. " +
			"±: half the 95 % interval over tasks (bootstrap) or seeds (t)."},
	}
	for _, m := range Metrics {
		t.Columns = append(t.Columns, Column{m.Head, true, []string{m.Key, m.Key + "_low", m.Key + "_high"}})
	}
	for _, s := range summaries {
		over, from := "tasks", s.OverTasks
		if overSeeds && s.OverSeeds != nil {
			over, from = "seeds", s.OverSeeds
		}
		row := []Cell{Text(s.Horizon), Text(s.Variant), Text(s.Seeds), Text(s.Tasks), Text(over)}
		for _, m := range Metrics {
			cell := absent
			if i, ok := from[m.Key]; ok {
				text := decimal(i.Mean, m.Decimals) + " ±" + decimal(i.Half(), m.Decimals)
				cell = Cell{text, []any{i.Mean, i.Low, i.High}}
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ChangeTable shows each variant's change against the baseline in percent with
// its 95 % interval, and below a horizon's rows the published changes, marked so.
func ChangeTable(summaries []Summary, baseline string, published []Published) *Table {
	t := &Table{
		Title: "Change against " + baseline + " in %",
		Columns: []Column{
			{"horizon", false, []string{"horizon"}}, {"variant", false, []string{"variant"}},
			{"source", false, []string{"source"}},
		},
	}
	for _, m := range Metrics {
		t.Columns = append(t.Columns, Column{m.Head, true, []string{m.Key, m.Key + "_low", m.Key + "_high"}})
	}
	measured := false
	for i, s := range summaries {
		if s.Changes != nil {
			t.Rows = append(t.Rows, changeRow(s))
			measured = true
		} else if s.NoChange != "" {
			t.Notes = append(t.Notes, "No change: "+s.NoChange+".")
		}
		if i+1 == len(summaries) || summaries[i+1].Horizon != s.Horizon {
			t.Rows = append(t.Rows, publishedRows(s.Horizon, baseline, published)...)
		}
	}
	if measured {
		t.Notes = append(t.Notes, "In brackets the 95 % interval of a paired bootstrap over tasks; n/a: the baseline is 0, or it was not measured.")
	}
	if len(published) > 0 {
		t.Notes = append(t.Notes, "published: "+PublishedSource+"; there EM and F1 are not said to be squad's or mem1's, and they stand under squad.")
	}
	return t
}

func changeRow(s Summary) []Cell {
	row := []Cell{Text(s.Horizon), Text(s.Variant), Text("measured")}
	for _, m := range Metrics {
		p := s.Changes[m.Key].Percent
		if p == nil {
			row = append(row, absent)
			continue
		}
		text := fmt.Sprintf("%s [%s, %s]", signed(p.Mean), signed(p.Low), signed(p.High))
		row = append(row, Cell{text, []any{p.Mean, number(p.Low), number(p.High)}})
	}
	return row
}

// publishedRows makes one row for each published table and variant of a horizon.
func publishedRows(horizon, baseline string, published []Published) [][]Cell {
	var rows [][]Cell
	at := map[[2]string]int{}
	for _, p := range published {
		if p.Unit != UnitChange || p.Horizon != horizon || p.Baseline != baseline {
			continue
		}
		k := [2]string{p.Table, p.Variant}
		if _, found := at[k]; !found {
			at[k] = len(rows)
			row := []Cell{Text(horizon), Text(p.Variant), Text("published " + p.Table)}
			rows = append(rows, append(row, make([]Cell, len(Metrics))...))
		}
		for j, m := range Metrics {
			if m.Key == p.Metric {
				rows[at[k]][3+j] = Cell{signed(p.Value), []any{p.Value}}
			}
		}
	}
	return rows
}

// absent stands for what was not measured.
var absent = Cell{Text: "n/a"}

func decimal(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

func signed(percent float64) string {
	if math.IsInf(percent, 1) {
		return "∞"
	}
	return fmt.Sprintf("%+.1f", percent)
}

// number is null where JSON has no number.
func number(v float64) any {
	if !finite(v) {
		return nil
	}
	return v
}
