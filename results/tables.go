package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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

// SummaryTable shows means with half their 95 % intervals, over seeds where
// there are several, else over tasks.
func SummaryTable(summaries []Summary) *Table {
	t := &Table{
		Title: "Evaluation",
		Columns: []Column{
			{"horizon", false, []string{"horizon"}}, {"variant", false, []string{"variant"}},
			{"seeds", true, []string{"seeds"}}, {"tasks", true, []string{"tasks"}}, {"±", false, []string{"interval"}},
		},
		Notes: []string{"squad: mean over a task's questions; mem1: MEM1's rules, sum over them. " +
			"±: half the 95 % interval, over seeds (t, of the seeds' means) or of one run over its tasks (bootstrap). " +
			"time: the model's, over the tasks that ran alone."},
	}
	for _, m := range Metrics {
		t.Columns = append(t.Columns, Column{m.Head, true, []string{m.Key, m.Key + "_low", m.Key + "_high"}})
	}
	for _, s := range summaries {
		row := []Cell{Text(s.Horizon), Text(s.Variant), Text(s.Seeds), Text(s.Tasks), Text(string(s.Over))}
		for _, m := range Metrics {
			cell := absent
			if i, ok := s.Means[m.Key]; ok {
				cell = meanCell(m, i)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ChangeTable shows each comparison's changes in percent with their 95 %
// intervals, and below a horizon's rows the published changes against the same
// baseline, marked so.
func ChangeTable(comparisons []Comparison, baseline string, published []Published) *Table {
	t := &Table{
		Title: "Change against " + baseline + " in %",
		Columns: []Column{
			{"horizon", false, []string{"horizon"}}, {"variant", false, []string{"variant"}},
			{"source", false, []string{"source"}}, {"pairs", true, []string{"pairs", "over"}},
		},
	}
	for _, m := range Metrics {
		t.Columns = append(t.Columns, Column{m.Head, true, changeKeys(m.Key)})
	}
	over := map[Over]bool{}
	for i, c := range comparisons {
		if c.Changes != nil {
			t.Rows = append(t.Rows, changeRow(c))
			over[c.Over] = true
		} else if why := "No change: " + c.NoChange + "."; c.NoChange != "" && !slices.Contains(t.Notes, why) {
			t.Notes = append(t.Notes, why)
		}
		if i+1 == len(comparisons) || comparisons[i+1].Horizon != c.Horizon {
			t.Rows = append(t.Rows, publishedRows(c.Horizon, baseline, published)...)
		}
	}
	if over[OverSeeds] {
		t.Notes = append(t.Notes, "Pairs of seeds: ± is half the 95 % interval of the paired t-test over the seeds' means, in percent of the baseline's mean, with the test's p.")
	}
	if over[OverTasks] {
		t.Notes = append(t.Notes, "Pairs of tasks: in brackets the 95 % interval of a paired bootstrap over tasks.")
	}
	if over[OverSeeds] {
		t.Notes = append(t.Notes, "p values are not corrected for the number of comparisons.")
	}
	if slices.ContainsFunc(t.Rows, func(row []Cell) bool {
		return slices.ContainsFunc(row, func(c Cell) bool { return c.Text == absent.Text })
	}) {
		t.Notes = append(t.Notes, "n/a: the baseline is 0, or it was not measured.")
	}
	if len(published) > 0 {
		t.Notes = append(t.Notes, "published: "+PublishedSource+"; there EM and F1 are not said to be squad's or mem1's, and they stand under squad.")
	}
	return t
}

// Comparisons lists what the summaries were compared with.
func Comparisons(summaries []Summary) []Comparison {
	var list []Comparison
	for _, s := range summaries {
		if s.Against != nil {
			list = append(list, *s.Against)
		}
	}
	return list
}

func changeKeys(key string) []string {
	keys := []string{key + "_percent", key + "_percent_low", key + "_percent_high"}
	return append(keys, key+"_difference", key+"_difference_low", key+"_difference_high", key+"_t", key+"_p")
}

func changeRow(c Comparison) []Cell {
	row := []Cell{Text(c.Horizon), Text(c.Variant), Text("measured"), pairsCell(c)}
	for _, m := range Metrics {
		change, ok := c.Changes[m.Key]
		if !ok {
			row = append(row, absent)
			continue
		}
		row = append(row, changeCell(change))
	}
	return row
}

// meanCell is a mean with half its interval.
func meanCell(m Metric, i Interval) Cell {
	return Cell{decimal(i.Mean, m.Decimals) + " ±" + decimal(i.Half(), m.Decimals), stats(i.Mean, i.Low, i.High)}
}

// pairsCell says over how many pairs, and of what.
func pairsCell(c Comparison) Cell {
	return Cell{fmt.Sprintf("%d %s", c.Pairs, c.Over), []any{c.Pairs, string(c.Over)}}
}

// differenceCell is a difference of means with its interval.
func differenceCell(m Metric, c Change) Cell {
	d := c.Difference
	return Cell{fmt.Sprintf("%+.*f [%+.*f, %+.*f]", m.Decimals, d.Mean, m.Decimals, d.Low, m.Decimals, d.High), stats(d.Mean, d.Low, d.High)}
}

// changeCell shows the percent, and holds the difference too.
func changeCell(c Change) Cell {
	cell := Cell{absent.Text, []any{nil, nil, nil}}
	if p := c.Percent; p != nil {
		cell = Cell{fmt.Sprintf("%s [%s, %s]", signed(p.Mean), signed(p.Low), signed(p.High)), stats(p.Mean, p.Low, p.High)}
		if c.Test != nil {
			cell.Text = fmt.Sprintf("%s ±%.1f, %s", signed(p.Mean), p.Half(), probability(c.Test.P))
		}
	}
	cell.Values = append(cell.Values, stats(c.Difference.Mean, c.Difference.Low, c.Difference.High)...)
	if c.Test != nil {
		cell.Values = append(cell.Values, stats(c.Test.T, c.Test.P)...)
	}
	return cell
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
			row := []Cell{Text(horizon), Text(p.Variant), Text("published " + p.Table), {}}
			rows = append(rows, append(row, make([]Cell, len(Metrics))...))
		}
		for j, m := range Metrics {
			if m.Key == p.Metric {
				rows[at[k]][4+j] = Cell{signed(p.Value), []any{p.Value}}
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

// probability shows a p value.
func probability(p float64) string {
	if p < 0.001 {
		return "p<.001"
	}
	return "p=" + strings.TrimPrefix(decimal(p, 3), "0")
}

// stats are statistics for machines, to nine digits, which are the same on any
// processor; null where JSON has no number.
func stats(values ...float64) []any {
	out := make([]any, len(values))
	for i, v := range values {
		if finite(v) {
			// What FormatFloat writes ParseFloat reads.
			out[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 9, 64), 64)
		}
	}
	return out
}
