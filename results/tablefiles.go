package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// TableFile is one file of a folder of tables.
type TableFile struct {
	Name string
	Data []byte
}

// TableFormats lists the formats of tables.
var TableFormats = []string{"text", "markdown", "csv", "latex", "json"}

// Write writes all parts of a table in one of TableFormats, with empty lines
// between them.
func (p PaperTable) Write(w io.Writer, format string) error {
	if format == "json" {
		return p.writeJSON(w)
	}
	write := map[string]func(*Table, io.Writer) error{
		"text": (*Table).WriteText, "markdown": (*Table).WriteMarkdown, "csv": (*Table).WriteCSV, "latex": (*Table).WriteLaTeX,
	}[format]
	if write == nil {
		return fmt.Errorf("format %q: known are %q", format, TableFormats)
	}
	for i, t := range p.Tables {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := write(t, w); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes an object with each part's title, notes and rows, a row a line.
func (p PaperTable) writeJSON(w io.Writer) error {
	var b bytes.Buffer
	text := func(v any) string {
		var one bytes.Buffer
		e := json.NewEncoder(&one)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // strings and lists of them
		return strings.TrimSpace(one.String())
	}
	fmt.Fprintf(&b, "{\"table\": %s, \"parts\": [", text(p.Name))
	for i, t := range p.Tables {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n{\"name\": %s, \"title\": %s, \"notes\": %s, \"rows\": ", text(t.Name), text(t.Title), text(append([]string{}, t.Notes...)))
		if err := t.WriteJSON(&b); err != nil {
			return err
		}
		b.WriteByte('}')
	}
	b.WriteString("]}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// TableFiles makes the files of a folder of tables: NAME.md, NAME.tex and
// NAME.json with all parts of a table, a CSV file a part (NAME.csv the first,
// NAME.PART.csv the others), and tables.md with everything.
func TableFiles(ts []PaperTable) ([]TableFile, error) {
	var files []TableFile
	var all bytes.Buffer
	for _, p := range ts {
		for _, f := range []struct{ ending, format string }{{"md", "markdown"}, {"tex", "latex"}, {"json", "json"}} {
			var b bytes.Buffer
			if err := p.Write(&b, f.format); err != nil {
				return nil, fmt.Errorf("table %s: %w", p.Name, err)
			}
			files = append(files, TableFile{p.Name + "." + f.ending, b.Bytes()})
			if f.ending == "md" {
				if all.Len() > 0 {
					all.WriteByte('\n')
				}
				all.Write(b.Bytes())
			}
		}
		for i, t := range p.Tables {
			if len(t.Columns) == 0 {
				continue
			}
			name := p.Name + ".csv"
			if i > 0 {
				name = p.Name + "." + t.Name + ".csv"
			}
			var b bytes.Buffer
			if err := t.WriteCSV(&b); err != nil {
				return nil, fmt.Errorf("table %s: %w", p.Name, err)
			}
			files = append(files, TableFile{name, b.Bytes()})
		}
	}
	return append(files, TableFile{"tables.md", all.Bytes()}), nil
}

// WriteTables writes a folder with each table in every format and tables.md with
// all of them, each file whole or not at all. Tables' files of before that are
// not made any more are removed.
func WriteTables(dir string, ts []PaperTable) error {
	files, err := TableFiles(ts)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := WriteFile(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	stale, err := staleTables(dir, files)
	for _, name := range stale {
		err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
	}
	return err
}

var tableFileName = regexp.MustCompile(`^t[0-9]+b?(\.[a-z0-9-]+)?\.(md|tex|json|csv)$`)

// staleTables lists the tables' files of a folder that are not among some.
func staleTables(dir string, files []TableFile) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, e := range entries {
		if tableFileName.MatchString(e.Name()) && !slices.ContainsFunc(files, func(f TableFile) bool { return f.Name == e.Name() }) {
			stale = append(stale, e.Name())
		}
	}
	return stale, nil
}

// DifferentTables lists the files of a folder of tables that WriteTables would
// change, make or remove.
func DifferentTables(dir string, ts []PaperTable) ([]string, error) {
	files, err := TableFiles(ts)
	if err != nil {
		return nil, err
	}
	different, err := staleTables(dir, files)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err != nil || !bytes.Equal(data, f.Data) {
			different = append(different, f.Name)
		}
	}
	slices.Sort(different)
	return different, nil
}
