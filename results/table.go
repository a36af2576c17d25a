package results

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is rows for people and machines at once: each cell has a text, shown in
// terminals, Markdown and LaTeX, and values, written to CSV and JSON. One without
// columns has nothing to show but its notes.
type Table struct {
	Name    string // in a file's name, where a table is one of several; may be empty
	Title   string
	Columns []Column
	Rows    [][]Cell
	Notes   []string // what a reader must know, below the table
}

// Column heads one cell of each row.
type Column struct {
	Head  string
	Right bool // aligned right, as numbers are
	Keys  []string
}

// Cell is one text, and one value for each of its column's Keys; without values
// all of them are null.
type Cell struct {
	Text   string
	Values []any
}

// Text is a cell of one word or number, the same for people and machines.
func Text(v any) Cell { return Cell{fmt.Sprint(v), []any{v}} }

// WriteText writes the table in aligned columns.
func (t *Table) WriteText(w io.Writer) error {
	width := t.widths()
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintf(&b, "%s\n", t.Title)
	}
	line := func(texts []string) {
		for i, s := range texts {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(s))
			if t.Columns[i].Right {
				texts[i] = pad + s
			} else {
				texts[i] = s + pad
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(texts, "  "), " ") + "\n")
	}
	if len(t.Columns) == 0 {
		b.WriteString(strings.Join(t.Notes, "\n") + "\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	line(t.heads())
	rules := make([]string, len(width))
	for i, n := range width {
		rules[i] = strings.Repeat("-", n)
	}
	line(rules)
	for _, row := range t.Rows {
		line(texts(row))
	}
	for _, note := range t.Notes {
		b.WriteString(note + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) widths() []int {
	width := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		width[i] = utf8.RuneCountInString(c.Head)
		for _, row := range t.Rows {
			width[i] = max(width[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	return width
}

func (t *Table) heads() []string {
	heads := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		heads[i] = c.Head
	}
	return heads
}

func texts(row []Cell) []string {
	out := make([]string, len(row))
	for i, c := range row {
		out[i] = c.Text
	}
	return out
}

// WriteMarkdown writes a GitHub table.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintf(&b, "**%s**\n\n", t.Title)
	}
	escape := strings.NewReplacer("|", `\|`, "\n", " ")
	line := func(texts []string) {
		for i, s := range texts {
			texts[i] = escape.Replace(s)
		}
		b.WriteString("| " + strings.Join(texts, " | ") + " |\n")
	}
	if len(t.Columns) == 0 {
		b.WriteString(strings.Join(t.Notes, "\n\n") + "\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	line(t.heads())
	for _, c := range t.Columns {
		b.WriteString(map[bool]string{false: "|---", true: "|--:"}[c.Right])
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(texts(row))
	}
	for _, note := range t.Notes {
		b.WriteString("\n" + note + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// latexEscape makes text of characters that LaTeX takes for something else, or
// whose glyph its oldest fonts lack.
var latexEscape = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`,
	"_", `\_`, "{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "\n", " ",
	"<", `$<$`, ">", `$>$`, "|", `$|$`, "±", `$\pm$`, "∞", `$\infty$`, "Δ", `$\Delta$`)

// WriteLaTeX writes a tabular environment with booktabs' rules.
func (t *Table) WriteLaTeX(w io.Writer) error {
	var b strings.Builder
	align := ""
	for _, c := range t.Columns {
		align += map[bool]string{false: "l", true: "r"}[c.Right]
	}
	line := func(texts []string) {
		for i, s := range texts {
			texts[i] = latexEscape.Replace(s)
		}
		if strings.HasPrefix(texts[0], "[") || strings.HasPrefix(texts[0], "*") { // else read as \\'s argument
			texts[0] = "{}" + texts[0]
		}
		b.WriteString(strings.Join(texts, " & ") + ` \\` + "\n")
	}
	comments := append([]string{t.Title}, t.Notes...)
	for _, s := range comments {
		if s != "" {
			b.WriteString("% " + strings.ReplaceAll(s, "\n", "\n% ") + "\n")
		}
	}
	if len(t.Columns) == 0 {
		_, err := io.WriteString(w, b.String())
		return err
	}
	b.WriteString(`\begin{tabular}{` + align + "}\n\\toprule\n")
	line(t.heads())
	b.WriteString("\\midrule\n")
	for _, row := range t.Rows {
		line(texts(row))
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// keys and values flatten columns to what machines read.
func (t *Table) keys() []string {
	var keys []string
	for _, c := range t.Columns {
		keys = append(keys, c.Keys...)
	}
	return keys
}

func (t *Table) values(row []Cell) []any {
	var values []any
	for i, c := range t.Columns {
		for j := range c.Keys {
			var v any
			if j < len(row[i].Values) {
				v = row[i].Values[j]
			}
			values = append(values, v)
		}
	}
	return values
}

// WriteCSV writes a head of keys and a line a row, full precision, null as
// nothing.
func (t *Table) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.Write(t.keys()); err != nil {
		return err
	}
	for _, row := range t.Rows {
		var fields []string
		for _, v := range t.values(row) {
			s := ""
			if v != nil {
				s = fmt.Sprint(v)
			}
			fields = append(fields, s)
		}
		if err := c.Write(fields); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// WriteJSON writes an array with one object a row, keys in column order.
func (t *Table) WriteJSON(w io.Writer) error {
	var b strings.Builder
	b.WriteString("[")
	keys := t.keys()
	for i, row := range t.Rows {
		b.WriteString(map[bool]string{true: "\n  {", false: ",\n  {"}[i == 0])
		for j, v := range t.values(row) {
			data, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("table %q, row %d, %s: %w", t.Title, i, keys[j], err)
			}
			if j > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%q: %s", keys[j], data)
		}
		b.WriteString("}")
	}
	b.WriteString("\n]\n")
	_, err := io.WriteString(w, b.String())
	return err
}
