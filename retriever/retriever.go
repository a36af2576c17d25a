// Package retriever turns documents into an index on disk and plain-text queries
// into ranked documents.
//
// A [Corpus] reads documents from files as a stream, [Build] writes them into an
// index folder, and [Open] gives an [Index] that many goroutines, and many
// processes, may search at once.
//
// # Ranking
//
// Scores are BM25 by Lucene's or Robertson's formula as written ([Scoring], package
// bm25): the true average length, idf once, the statistics of the whole index, also
// for a search within one world and over many shards. bleve parts text into terms and
// holds postings and documents. A term that a query says n times counts n times; with
// a title boost the score of the title field, times the boost, is added to that of the
// contents, which hold the title too. So rankings compare with those of Pyserini, bm25s and
// rank-bm25 on the same terms; Lucene itself rounds lengths to one byte.
//
// bleve's own scoring is there for comparison ([ScoringBleveBM25]) and is not BM25: the
// term frequency enters as its square root, the inverse document frequency enters twice
// where a query has several clauses, the sum is multiplied by the share of clauses that
// matched, and the average document length is the number of distinct terms over the
// number of documents, rounded up.
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
