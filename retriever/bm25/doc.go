// Package bm25 ranks documents by BM25, exactly. It keeps the postings of a
// collection in files that are mapped into memory, finds the k best documents
// without scoring those that cannot be among them, and gives each the score that
// the formula gives, reckoned in float64 over the query's terms in their order.
// It knows terms, frequencies and lengths; how text becomes terms is the caller's.
//
// # Files
//
// A [Writer] writes one shard: up to some millions of documents, numbered in the
// order of their IDs. For each term of a field the shard has the documents' numbers,
// cut into windows of 65,536 documents so that two bytes hold one, and beside each
// number a code that stands for a pair of term frequency and field length. There are
// few different pairs, so a table of the formula's value for each is made when the
// index is opened: no posting depends on k1, b or the average length, and shards
// can be written one by one, before the whole collection's statistics are known.
//
//	ids.bin, ids.offsets   the documents' IDs
//	terms-N.fst            the terms of field N, to their numbers
//	terms.bin              for each term its document frequency and first chunk
//	chunks.bin             for each term and window the first posting
//	lows.bin, codes.bin    the postings: the low two bytes of a document's number; the code
//	pairs-N.bin            for each code of field N the frequency and the length
//	shard.json             counts
//	bounds.bin             for each chunk the largest value in it, by [WriteBounds]
//
// # Search
//
// Windows are visited in the order of what their best document could score. In each,
// terms whose largest values together cannot reach the k-th best score so far are
// not scanned (Turtle and Flood's MaxScore, 1995), only looked up for documents
// that the other terms found.
package bm25
