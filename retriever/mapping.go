package retriever

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/char/asciifolding"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/porter"
	"github.com/blevesearch/bleve/v2/analysis/token/stop"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/whitespace"
	"github.com/blevesearch/bleve/v2/analysis/tokenmap"
	"github.com/blevesearch/bleve/v2/mapping"
	index "github.com/blevesearch/bleve_index_api"
)

// Analyser names the way from text to terms, of documents and queries alike.
type Analyser string

// The analysers. Plain and English part words as Unicode's UAX #29 does and keep
// digits (bleve's "simple" would drop them).
const (
	// AnalyserPlain lowers the case and keeps every word: for names and made-up words.
	AnalyserPlain Analyser = "plain"
	// AnalyserEnglish removes possessive 's, lowers the case, removes Lucene's 33
	// English stop words and stems with Porter's algorithm, as Lucene's
	// EnglishAnalyzer does: for English prose.
	AnalyserEnglish Analyser = "english"
	// AnalyserWhitespace lowers the case and parts at white space alone, as the
	// examples of rank-bm25 do: for comparison.
	AnalyserWhitespace Analyser = "whitespace"
)

// Analysers lists them.
var Analysers = []Analyser{AnalyserPlain, AnalyserEnglish, AnalyserWhitespace}

// luceneStopWords are those of Lucene's EnglishAnalyzer.
var luceneStopWords = strings.Fields(`a an and are as at be but by for if in into is it no not of on or such that the
	their then there these they this to was will with`)

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
func newMapping(a Analyser, foldASCII bool) (mapping.IndexMapping, error) {
	m := bleve.NewIndexMapping()
	filters, tokenizer, folding := []any{lowercase.Name}, unicode.Name, []any{}
	switch a {
	case AnalyserEnglish:
		words := make([]any, len(luceneStopWords))
		for i, w := range luceneStopWords {
			words[i] = w
		}
		const name = "lucene-stop-words"
		err := errors.Join(
			m.AddCustomTokenMap(name, map[string]any{"type": tokenmap.Name, "tokens": words}),
			m.AddCustomTokenFilter(name, map[string]any{"type": stop.Name, "stop_token_map": name}))
		if err != nil {
			return nil, err
		}
		filters = []any{en.PossessiveName, lowercase.Name, name, porter.Name}
	case AnalyserWhitespace:
		tokenizer = whitespace.Name
	}
	if foldASCII {
		folding = append(folding, asciifolding.Name)
	}
	err := m.AddCustomAnalyzer(string(a), map[string]any{
		"type": custom.Name, "char_filters": folding, "tokenizer": tokenizer, "token_filters": filters,
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
