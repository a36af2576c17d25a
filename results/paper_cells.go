package results

import (
	"fmt"
	"slices"
	"strings"
)

// words and figures head columns whose keys are their heads, lower case with _.
func words(heads ...string) []Column   { return columnsOf(false, heads) }
func figures(heads ...string) []Column { return columnsOf(true, heads) }

func columnsOf(right bool, heads []string) []Column {
	var columns []Column
	for _, h := range heads {
		columns = append(columns, Column{h, right, []string{strings.ReplaceAll(h, " ", "_")}})
	}
	return columns
}

// counted heads columns of counts with their share, in percent.
func counted(heads ...string) []Column {
	columns := figures(heads...)
	for i, c := range columns {
		columns[i].Keys = append(c.Keys, c.Keys[0]+"_percent")
	}
	return columns
}

// digits shows a figure to three digits; nil was not measured.
func digits(v *float64) Cell {
	if v == nil {
		return dash
	}
	return Cell{fmt.Sprintf("%.3g", *v), stats(*v)}
}

// share shows a count with its share of all.
func share(n *int, of int) Cell {
	if n == nil {
		return dash
	}
	percent := 100 * float64(*n) / float64(max(1, of))
	return Cell{fmt.Sprintf("%d (%.2f%%)", *n, percent), append([]any{*n}, stats(percent)...)}
}

// first is a cell's first value, false where that is no number.
func first(c Cell) (float64, bool) {
	if len(c.Values) == 0 {
		return 0, false
	}
	v, ok := c.Values[0].(float64)
	return v, ok
}

// verdict shows whether an audit was passed.
func verdict(pass bool) Cell {
	return Cell{map[bool]string{true: "yes", false: "no"}[pass], []any{pass}}
}

// publishedRow is a row of the paper's: words first, dashes where it has no
// number. Numbers go to the columns with the metrics' names; a percent stands in
// the second value of a counted column.
func publishedRow(columns []Column, first []Cell, table, variant string, metrics map[string]string) []Cell {
	row := slices.Repeat([]Cell{dash}, len(columns))
	copy(row, first)
	for _, n := range PublishedNumbers() {
		if n.Table != table || n.Variant != variant {
			continue
		}
		at := slices.IndexFunc(columns, func(c Column) bool { return c.Head == metrics[n.Metric] })
		if at < 0 {
			continue
		}
		row[at] = Cell{fmt.Sprintf("%.6g", n.Value), []any{n.Value}}
		if n.Unit == UnitPercent {
			row[at] = Cell{fmt.Sprintf("%.4g%%", n.Value), append(slices.Repeat([]any{nil}, len(columns[at].Keys)-1), n.Value)}
		}
	}
	return row
}

// publishedNote names the source below a table of audits.
func publishedNote(table string) string {
	return "published: " + PublishedSource + ", table " + table + ", Qwen2.5-3B and a teacher of 7B; its tokens and settings are not ours."
}
