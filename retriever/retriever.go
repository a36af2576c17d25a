// Package retriever turns documents into a bleve index on disk and plain-text
// queries into ranked documents.
//
// A [Corpus] reads documents from files as a stream, [Build] writes them into an
// index folder, and [Open] gives an [Index] that many goroutines, and many
// processes, may search at once.
//
// # Ranking
//
// The scores are bleve's variant of BM25 ([ScoringBleveBM25]), which is not BM25
// as Robertson or Lucene define it: the term frequency enters as its square
// root, the inverse document frequency enters twice where a query has several
// clauses, the sum is multiplied by the share of clauses that matched, and the
// average document length is the number of distinct terms over the number of
// documents, rounded up. Rankings from it must not be compared with those of
// Lucene, Pyserini or bm25s. Statistics are those of the whole index, not of one
// world. The manifest of each index names its scoring, so that another one can
// be added beside it.
//
// Equal scores are ordered by document ID, also where the cut after k falls
// among them, so a search has one right result.
package retriever

import (
	"context"
	"errors"
)

// Document is one passage of a corpus.
type Document struct {
	ID    string `json:"id"`              // unique in an index
	World string `json:"world,omitempty"` // what a search can be restricted to; empty for ordinary corpora
	Title string `json:"title"`
	Text  string `json:"text"`
}

// Hit is a document found, with its score. Scores compare within one search.
type Hit struct {
	Document
	Score float64 `json:"score"`
}

// Searcher finds documents; [Index] is one.
type Searcher interface {
	// Search returns at most k documents in descending order of score, then
	// ascending order of ID. A world that is not empty restricts the search to
	// the documents of that world, without changing their scores. The query is
	// plain text: no character has a meaning of its own. A query without any
	// term gives no hits and no error. Safe for many goroutines.
	Search(ctx context.Context, world, query string, k int) ([]Hit, error)
}

var _ Searcher = (*Index)(nil)

// What can be wrong with an index folder. Errors of [Open] and [Build] wrap one
// of these and say what to do.
var (
	ErrNoIndex   = errors.New("no index")               // nothing there
	ErrForeign   = errors.New("not one of our indexes") // a folder with something else in it
	ErrHalfBuilt = errors.New("half-built index")       // a build was stopped
	ErrCorrupt   = errors.New("damaged index")          // files missing, cut short or altered
	ErrVersion   = errors.New("index of another version")
	ErrBusy      = errors.New("index is in use by another process")
	ErrExists    = errors.New("already exists")
	ErrClosed    = errors.New("index is closed")
)
