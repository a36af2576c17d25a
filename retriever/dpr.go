package retriever

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// dprLayout gives the column of each field; a DPR file has id, text, title.
type dprLayout struct{ id, text, title int }

// dprColumns returns the layout that a header line names, nil if it is no header.
func dprColumns(cells []string) *dprLayout {
	l := dprLayout{-1, -1, -1}
	for i, c := range cells {
		switch strings.TrimSpace(c) {
		case "id":
			l.id = i
		case "text":
			l.text = i
		case "title":
			l.title = i
		}
	}
	if l.id < 0 || l.text < 0 || l.title < 0 {
		return nil
	}
	return &l
}

// document takes the fields of one row.
func (l dprLayout) document(cells []string) (Document, error) {
	if need := max(l.id, l.text, l.title) + 1; len(cells) < need {
		return Document{}, fmt.Errorf("%d fields, %d needed", len(cells), need)
	}
	d := Document{ID: cells[l.id], Title: cells[l.title], Text: cells[l.text]}
	switch {
	case d.ID == "":
		return Document{}, errors.New("field id is empty")
	case !utf8.ValidString(d.ID + d.Title + d.Text):
		return Document{}, errors.New("not UTF-8")
	}
	return d, nil
}

// maxQuotedBytes is how far the end of a quoted field is looked for in the lines
// that follow.
const maxQuotedBytes = 256 << 10

// errOpenQuote says that a record goes on in the next line.
var errOpenQuote = errors.New("quote not closed")

// splitTSV parts one record at tabs. A field that begins with a quote ends at
// the next single quote; doubled quotes within are one (RFC 4180, which is what
// Python's csv module writes). Quotes within an unquoted field are ordinary, as
// Python reads them.
func splitTSV(record []byte) ([]string, error) {
	var cells []string
	for {
		if len(record) == 0 || record[0] != '"' {
			cell, rest, more := bytes.Cut(record, []byte{'\t'})
			cells = append(cells, string(cell))
			if !more {
				return cells, nil
			}
			record = rest
			continue
		}
		cell, rest, err := quotedCell(record[1:])
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
		if len(rest) == 0 {
			return cells, nil
		}
		if rest[0] != '\t' {
			return nil, errors.New("text after a closing quote")
		}
		record = rest[1:]
	}
}

// quotedCell reads up to the closing quote and returns what follows it.
func quotedCell(s []byte) (cell string, rest []byte, err error) {
	var b strings.Builder
	for {
		i := bytes.IndexByte(s, '"')
		if i < 0 {
			return "", nil, errOpenQuote
		}
		b.Write(s[:i])
		s = s[i+1:]
		if len(s) == 0 || s[0] != '"' {
			return b.String(), s, nil
		}
		b.WriteByte('"')
		s = s[1:]
	}
}
