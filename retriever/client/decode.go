package client

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/memopd/memopd-bench/retriever"
)

// document is what servers give of one: some have title and text, all contents.
type document struct {
	ID       json.RawMessage `json:"id"` // a string or a number
	Title    *string         `json:"title"`
	Text     *string         `json:"text"`
	Contents *string         `json:"contents"`
}

// decode reads the answer to one query. One that is not the contract's may be the
// next time: a proxy's page, a body that was cut.
func decode(answer []byte) ([]retriever.Hit, error) {
	bad := func(format string, args ...any) error {
		return passing{error: fmt.Errorf("the answer is not the contract's: "+format+": %s", append(args, excerpt(answer))...)}
	}
	var body struct {
		Result *[][]struct {
			Document *document `json:"document"`
			Score    *float64  `json:"score"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, bad("%v", err)
	}
	if body.Result == nil || len(*body.Result) != 1 {
		return nil, bad("no result of one query")
	}
	hits := []retriever.Hit{}
	for i, h := range (*body.Result)[0] {
		if h.Document == nil || h.Score == nil {
			return nil, bad("hit %d has no document or no score", i)
		}
		d, err := h.Document.read()
		if err != nil {
			return nil, bad("hit %d: %v", i, err)
		}
		hits = append(hits, retriever.Hit{Document: d, Score: *h.Score})
	}
	return hits, nil
}

// read takes title and text where both are given, else parts contents at its first
// line feed, where the title loses its quotes, else takes the text.
func (d *document) read() (retriever.Document, error) {
	out := retriever.Document{ID: strings.Trim(string(d.ID), `"`)}
	if out.ID == "null" {
		out.ID = ""
	}
	switch {
	case d.Title != nil && d.Text != nil:
		out.Title, out.Text = *d.Title, *d.Text
	case d.Contents != nil:
		title, text, _ := strings.Cut(*d.Contents, "\n")
		if len(title) > 1 && title[0] == '"' && title[len(title)-1] == '"' {
			title = title[1 : len(title)-1]
		}
		out.Title, out.Text = title, text
	case d.Text != nil:
		out.Text = *d.Text
	default:
		return out, fmt.Errorf("neither contents nor text")
	}
	return out, nil
}
