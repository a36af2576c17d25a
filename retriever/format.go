package retriever

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Format names the layout of a corpus file. Any of them may be gzipped.
type Format string

// The formats.
const (
	// FormatAuto looks at the first record.
	FormatAuto Format = ""
	// FormatDocuments is one JSON object a line: id, world (optional), title, text.
	FormatDocuments Format = "documents"
	// FormatContents is Search-R1's and FlashRAG's layout, one JSON object a line:
	// id, contents. The first line of contents is the title, mostly in quotes.
	FormatContents Format = "contents"
	// FormatTitleText is one JSON object a line: title, text. The ID is the number
	// of the line, from 0.
	FormatTitleText Format = "title-text"
	// FormatDPR is DPR's psgs_w100.tsv: tab-separated id, text, title under a header
	// line, fields quoted as in CSV.
	FormatDPR Format = "dpr"
)

// Formats lists the formats that can be named.
var Formats = []Format{FormatDocuments, FormatContents, FormatTitleText, FormatDPR}

// ParseFormat returns the format of a name ("auto" and "" are FormatAuto), or an
// error that lists the names.
func ParseFormat(name string) (Format, error) {
	if name == "" || name == "auto" {
		return FormatAuto, nil
	}
	names := []string{"auto"}
	for _, f := range Formats {
		if string(f) == name {
			return f, nil
		}
		names = append(names, string(f))
	}
	return "", fmt.Errorf("unknown corpus format %q; known are %s", name, strings.Join(names, ", "))
}

// jsonRecord has the fields of all JSON formats. Pointers tell what was there.
type jsonRecord struct {
	ID       json.RawMessage `json:"id"`
	World    string          `json:"world"`
	Title    *string         `json:"title"`
	Text     *string         `json:"text"`
	Contents *string         `json:"contents"`
}

// detectFormat judges by the first line of a file that is not blank.
func detectFormat(line []byte) (Format, error) {
	if cells := strings.Split(string(line), "\t"); len(cells) >= 3 && dprColumns(cells) != nil {
		return FormatDPR, nil
	}
	var r jsonRecord
	if err := json.Unmarshal(line, &r); err != nil {
		return "", fmt.Errorf("format not recognised (%v); name one of %v", err, Formats)
	}
	switch {
	case r.Contents != nil:
		return FormatContents, nil
	case r.Text != nil && len(r.ID) > 0:
		return FormatDocuments, nil
	case r.Text != nil && r.Title != nil:
		return FormatTitleText, nil
	}
	return "", fmt.Errorf("format not recognised: the first record has neither contents nor title and text; name one of %v", Formats)
}

// parseJSON reads one line of a JSON format; line counts from 1.
func parseJSON(format Format, raw []byte, line int) (Document, error) {
	if !utf8.Valid(raw) {
		return Document{}, errors.New("not UTF-8")
	}
	var r jsonRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return Document{}, err
	}
	d := Document{World: r.World}
	if format == FormatTitleText {
		d.ID = fmt.Sprint(line - 1)
	} else {
		id, err := parseID(r.ID)
		if err != nil {
			return Document{}, err
		}
		d.ID = id
	}
	if format == FormatContents {
		if r.Contents == nil {
			return Document{}, errors.New("no field contents")
		}
		d.Title, d.Text = splitContents(*r.Contents)
		return d, nil
	}
	if r.Title == nil || r.Text == nil {
		return Document{}, errors.New("no field title or no field text")
	}
	d.Title, d.Text = *r.Title, *r.Text
	return d, nil
}

// parseID takes a string or a number.
func parseID(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", errors.New("no field id")
	}
	var number json.Number
	if raw[0] != '"' {
		if err := json.Unmarshal(raw, &number); err != nil {
			return "", errors.New("field id is neither text nor a number")
		}
		return number.String(), nil
	}
	var id string
	if err := json.Unmarshal(raw, &id); err != nil {
		return "", fmt.Errorf("field id: %w", err)
	}
	if id == "" {
		return "", errors.New("field id is empty")
	}
	return id, nil
}

// splitContents parts Search-R1's contents into title (first line) and text.
// Contents of a single line without quotes are all text.
func splitContents(contents string) (title, text string) {
	first, rest, found := strings.Cut(contents, "\n")
	if !found && unquoteTitle(first) == first {
		return "", contents
	}
	return unquoteTitle(first), rest
}

// unquoteTitle removes the quotes that Search-R1 puts around a title, and the CSV
// quoting that some titles kept inside them: `"""Heroes"" (song)"` is
// `"Heroes" (song)`. A title that merely begins and ends with quoted words, such
// as `"A" and "B"`, stays as it is; so does one without quotes (an eighth of
// wiki-18's).
func unquoteTitle(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	inner := s[1 : len(s)-1]
	without := strings.ReplaceAll(inner, `""`, "")
	switch {
	case !strings.Contains(without, `"`): // none, or all of them doubled
		return strings.ReplaceAll(inner, `""`, `"`)
	case strings.HasPrefix(inner, `"`) || strings.HasSuffix(inner, `"`):
		return inner // quotes put around a title that has its own
	}
	return s
}
