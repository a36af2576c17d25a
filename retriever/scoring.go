package retriever

import (
	"fmt"
	"slices"

	"github.com/blevesearch/bleve/v2/search"

	"github.com/memopd/memopd-bench/retriever/bm25"
)

// The scorings. The two of BM25 are exact (see [bm25.Formula]).
const (
	ScoringLucene    = "bm25-lucene"    // Lucene's BM25, which Pyserini and bm25s have too
	ScoringRobertson = "bm25-robertson" // Robertson's, with rank-bm25's floor of negative terms
	ScoringBleveBM25 = "bleve-bm25"     // bleve's own, for comparison; see the package comment
)

// Scorings lists them.
var Scorings = []string{ScoringLucene, ScoringRobertson, ScoringBleveBM25}

// Scoring is how an index ranks.
type Scoring struct {
	Name    string  `json:"name"`
	K1      float64 `json:"k1"`      // how soon a term's repetitions stop counting
	B       float64 `json:"b"`       // how much a document's length counts, 0 to 1
	Epsilon float64 `json:"epsilon"` // of bm25-robertson alone: its floor, as a share of the mean idf
}

// DefaultScoring is Lucene's formula with Pyserini's k1 0.9 and b 0.4. Lucene's own
// defaults are 1.2 and 0.75.
func DefaultScoring() Scoring { return Scoring{Name: ScoringLucene, K1: 0.9, B: 0.4} }

// BleveScoring is bleve's own variant with its k1 and b, which are the program's.
func BleveScoring() Scoring {
	return Scoring{Name: ScoringBleveBM25, K1: search.BM25_k1, B: search.BM25_b}
}

// exact tells whether the ranking is ours; bleve ranks otherwise.
func (s Scoring) exact() bool { return s.Name != ScoringBleveBM25 }

func (s Scoring) parameters() bm25.Parameters {
	p := bm25.Parameters{Formula: bm25.Lucene, K1: s.K1, B: s.B}
	if s.Name == ScoringRobertson {
		p.Formula, p.Epsilon = bm25.Robertson, s.Epsilon
	}
	return p
}

func (s Scoring) check() error {
	switch {
	case !slices.Contains(Scorings, s.Name):
		return fmt.Errorf("unknown scoring %q (known: %v)", s.Name, Scorings)
	case s.exact():
		return s.parameters().Check()
	case s.K1 != search.BM25_k1 || s.B != search.BM25_b: // process-wide in bleve
		return fmt.Errorf("scoring %s with k1 %g and b %g: bleve's are set to %g and %g", s.Name, s.K1, s.B, search.BM25_k1, search.BM25_b)
	}
	return nil
}
