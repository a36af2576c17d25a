package retriever

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"
)

// bleveRanker ranks with bleve's own search.
type bleveRanker struct {
	index      bleve.Index
	analyser   Analyser
	titleBoost float64
}

var byScore = search.SortOrder{&search.SortScore{Desc: true}}

// byScoreAndID makes bleve look up the ID of every match, which is slow.
var byScoreAndID = search.SortOrder{&search.SortScore{Desc: true}, &search.SortDocID{}}

func (r *bleveRanker) close() error { return r.index.Close() }

// extraMatches are asked for beyond k, to see how far equal scores reach.
const extraMatches = 16

func (r *bleveRanker) rank(ctx context.Context, world, text string, k int) ([]Ranked, error) {
	q, err := r.query(world, text)
	if q == nil || err != nil {
		return nil, err
	}
	size := k + extraMatches
	found, err := r.find(ctx, q, size, byScore)
	if err != nil {
		return nil, err
	}
	// If equals of the k-th may lie beyond what was asked for, the IDs of all
	// matches matter.
	if len(found) == size && found[k-1].Score == found[size-1].Score {
		if found, err = r.find(ctx, q, k, byScoreAndID); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b *search.DocumentMatch) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	found = found[:min(k, len(found))]
	ranked := make([]Ranked, len(found))
	for i, f := range found {
		ranked[i] = Ranked{ID: f.ID, Score: f.Score}
	}
	return ranked, nil
}

func (r *bleveRanker) find(ctx context.Context, q query.Query, size int, order search.SortOrder) (search.DocumentMatchCollection, error) {
	request := bleve.NewSearchRequestOptions(q, size, 0, false)
	request.Sort = order.Copy()
	result, err := r.index.SearchInContext(ctx, request)
	if err != nil {
		return nil, err
	}
	return result.Hits, nil
}

// document reads the stored fields.
func (r *bleveRanker) document(at Ranked) (Document, error) {
	stored, err := r.index.Document(at.ID)
	if err != nil {
		return Document{}, fmt.Errorf("document %q: %w", at.ID, err)
	}
	d := Document{ID: at.ID}
	to := map[string]*string{fieldWorld: &d.World, fieldTitle: &d.Title, fieldText: &d.Text}
	if stored != nil {
		stored.VisitFields(func(f index.Field) {
			if s, ok := to[f.Name()]; ok {
				*s = string(f.Value())
				delete(to, f.Name())
			}
		})
	}
	if len(to) > 0 {
		return Document{}, fmt.Errorf("%w: document %q lacks %d of its fields; build it again", ErrCorrupt, at.ID, len(to))
	}
	return d, nil
}

// query asks for any of the terms in the contents and, weighted, in the title.
// It is what bleve's match query makes of the text, except that a term that is
// said n times is one clause of weight n: a model that repeats itself costs no
// more. Nil if the text has no terms.
func (r *bleveRanker) query(world, text string) (query.Query, error) {
	terms, counts, err := r.terms(text)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	match := r.anyOf(fieldContents, terms, counts, 1)
	if r.titleBoost > 0 {
		match = query.NewDisjunctionQuery([]query.Query{match, r.anyOf(fieldTitle, terms, counts, r.titleBoost)})
	}
	if world == "" {
		return match, nil
	}
	inWorld := query.NewTermQuery(world)
	inWorld.SetField(fieldWorld)
	inWorld.SetBoost(0) // scores nothing; faster here than a boolean query's filter
	return query.NewConjunctionQuery([]query.Query{inWorld, match}), nil
}

func (r *bleveRanker) anyOf(field string, terms []string, counts map[string]int, weight float64) query.Query {
	clauses := make([]query.Query, len(terms))
	for i, t := range terms {
		clause := query.NewTermQuery(t)
		clause.SetField(field)
		clause.SetBoost(weight * float64(counts[t]))
		clauses[i] = clause
	}
	return query.NewDisjunctionQuery(clauses)
}

// terms returns the distinct terms of a text in order, and how often each is said.
func (r *bleveRanker) terms(text string) ([]string, map[string]int, error) {
	m, ok := r.index.Mapping().(*mapping.IndexMappingImpl)
	if !ok {
		return nil, nil, fmt.Errorf("%w: unknown kind of mapping", ErrCorrupt)
	}
	tokens, err := m.AnalyzeText(string(r.analyser), []byte(text))
	if err != nil {
		return nil, nil, err
	}
	var terms []string
	counts := map[string]int{}
	for _, t := range tokens {
		term := string(t.Term)
		if counts[term]++; counts[term] == 1 {
			terms = append(terms, term)
		}
	}
	return terms, counts, nil
}
