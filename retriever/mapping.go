package retriever

import (
	"fmt"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/porter"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/mapping"
	index "github.com/blevesearch/bleve_index_api"
)

// Analyser names the way from text to terms, of documents and queries alike.
type Analyser string

// The analysers. Both part words as Unicode's UAX #29 does and keep digits
// (bleve's "simple" would drop them, and its "standard" drops stop words).
const (
	// AnalyserPlain lowers the case and keeps every word: for names and made-up words.
	AnalyserPlain Analyser = "plain"
	// AnalyserEnglish removes possessive 's and bleve's English stop words, lowers
	// the case and stems with Porter's algorithm: for English prose, where it finds
	// more and is ten times as fast, since no stop words are looked up.
	AnalyserEnglish Analyser = "english"
)

// Analysers lists them.
var Analysers = []Analyser{AnalyserPlain, AnalyserEnglish}

func (a Analyser) check() error {
	for _, known := range Analysers {
		if a == known {
			return nil
		}
	}
	return fmt.Errorf("unknown analyser %q; known are %v", a, Analysers)
}

// The fields of a document in the index. Contents is title and text, the field
// that Search-R1's and Pyserini's indexes have; text is stored for the hits.
const (
	fieldWorld    = "world"
	fieldTitle    = "title"
	fieldText     = "text"
	fieldContents = "contents"
)

// fields is a document as bleve is given it.
type fields struct {
	World    string `json:"world"`
	Title    string `json:"title"`
	Text     string `json:"text"`
	Contents string `json:"contents"`
}

func fieldsOf(d Document) fields {
	return fields{World: d.World, Title: d.Title, Text: d.Text, Contents: d.Title + "\n" + d.Text}
}

// newMapping says how the fields are indexed: nothing that our searches do not
// use (no positions, doc values or catch-all field).
func newMapping(a Analyser) (mapping.IndexMapping, error) {
	m := bleve.NewIndexMapping()
	filters := []any{lowercase.Name}
	if a == AnalyserEnglish {
		filters = []any{en.PossessiveName, lowercase.Name, en.StopName, porter.Name}
	}
	err := m.AddCustomAnalyzer(string(a), map[string]any{
		"type": custom.Name, "tokenizer": unicode.Name, "token_filters": filters,
	})
	if err != nil {
		return nil, err
	}
	m.ScoringModel = index.BM25Scoring
	m.DefaultAnalyzer = string(a)
	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt(fieldWorld, field(keyword.Name, true, true))
	doc.AddFieldMappingsAt(fieldTitle, field(string(a), true, true))
	doc.AddFieldMappingsAt(fieldText, field(string(a), false, true))
	doc.AddFieldMappingsAt(fieldContents, field(string(a), true, false))
	m.DefaultMapping = doc
	return m, m.Validate()
}

func field(analyser string, indexed, stored bool) *mapping.FieldMapping {
	f := bleve.NewTextFieldMapping()
	f.Analyzer, f.Index, f.Store = analyser, indexed, stored
	f.IncludeTermVectors, f.IncludeInAll, f.DocValues = false, false, false
	return f
}
