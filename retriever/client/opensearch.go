package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/opensearch-project/opensearch-go/v4"

	"github.com/memopd/memopd-bench/retriever"
)

// The environment variables with OpenSearch's credentials: a user's name and
// password, or an API key of Elasticsearch's kind. They are never printed.
const (
	UserVariable     = "OPENSEARCH_USERNAME"
	PasswordVariable = "OPENSEARCH_PASSWORD"
	APIKeyVariable   = "OPENSEARCH_API_KEY"
)

// OpenSearch is a client of one index of an OpenSearch cluster, or of Elasticsearch,
// whose search is the same. The ranking is the cluster's: BM25 with Lucene's lengths
// of one byte, by shard unless the index has a single one; scores are k1+1 times those
// of Lucene's formula. A cluster refuses queries of more than 1,024 terms by default.
type OpenSearch struct {
	caller
	client *opensearch.Client
	index  string
	field  string // that is searched
}

var _ retriever.Searcher = (*OpenSearch)(nil)

// NewOpenSearch makes a client of the index at opensearch+https://HOST:PORT/INDEX, with
// ?field=NAME for the field that is searched, "contents" by default. Documents have the
// fields title and text, contents as Search-R1's corpora have it, or text alone. Nothing is sent yet.
func NewOpenSearch(server string, o Options) (*OpenSearch, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimPrefix(server, OpenSearchScheme))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("retrieval client: %q is no URL of the form %shttps://HOST:PORT/INDEX", server, OpenSearchScheme)
	}
	if u.User != nil {
		return nil, fmt.Errorf("retrieval client: a URL with credentials would be written into results; set %s and %s, or %s", UserVariable, PasswordVariable, APIKeyVariable)
	}
	c := &OpenSearch{index: strings.Trim(u.Path, "/"), field: cmp.Or(u.Query().Get("field"), "contents")}
	if c.index == "" || strings.ContainsAny(c.index, "/,*") {
		return nil, fmt.Errorf("retrieval client: %q names no single index", server)
	}
	c.caller = newCaller(server, o)
	config := opensearch.Config{
		Addresses: []string{u.Scheme + "://" + u.Host}, DisableRetry: true, Transport: transport(),
		Username: os.Getenv(UserVariable), Password: os.Getenv(PasswordVariable),
	}
	if key := os.Getenv(APIKeyVariable); key != "" {
		config.Header = http.Header{"Authorization": {"ApiKey " + key}}
	}
	if c.client, err = opensearch.NewClient(config); err != nil {
		return nil, fmt.Errorf("retrieval client: %w", err)
	}
	return c, nil
}

// OpenSearchScheme goes before the URL of an OpenSearch index.
const OpenSearchScheme = "opensearch+"

// Search implements retriever.Searcher. Equal scores are in the order of IDs, but which
// of them are among the k is the cluster's choice.
func (c *OpenSearch) Search(ctx context.Context, world, query string, k int) ([]retriever.Hit, error) {
	return c.ask(ctx, world, map[string]any{"match": map[string]any{c.field: map[string]any{"query": query}}}, k)
}

// Check looks for a document with the field that is searched, so that a wrong address,
// index or field is found before a run begins.
func (c *OpenSearch) Check(ctx context.Context) error {
	hits, err := c.ask(ctx, "", map[string]any{"exists": map[string]any{"field": c.field}}, 1)
	if err == nil && len(hits) == 0 {
		err = fmt.Errorf("search %s: no document has the field %q; ?field=NAME names another", c.shown, c.field)
	}
	return err
}

func (c *OpenSearch) ask(ctx context.Context, world string, query any, k int) ([]retriever.Hit, error) {
	body := map[string]any{
		"size": k, "_source": []string{"title", "text", "contents"}, "track_total_hits": false, "query": query,
	}
	return c.search(ctx, world, k, body, func(ctx context.Context, body []byte) ([]retriever.Hit, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/"+url.PathEscape(c.index)+"/_search", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := answerOf(c.client.Stream(r))
		if err != nil {
			return nil, err
		}
		return decodeOpenSearch(answer)
	})
}

// decodeOpenSearch reads the answer of _search. Hits of a part of the shards are none:
// they would be another ranking.
func decodeOpenSearch(answer []byte) ([]retriever.Hit, error) {
	bad := func(format string, args ...any) error {
		return passing{error: fmt.Errorf("the answer is not that of _search: "+format+": %s", append(args, excerpt(answer))...)}
	}
	var body struct {
		TimedOut bool `json:"timed_out"`
		Shards   struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
		Hits *struct {
			Hits []struct {
				ID     string    `json:"_id"`
				Score  *float64  `json:"_score"`
				Source *document `json:"_source"`
			}
		}
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, bad("%v", err)
	}
	switch {
	case body.Hits == nil:
		return nil, bad("no hits")
	case body.TimedOut || body.Shards.Failed > 0:
		return nil, passing{error: fmt.Errorf("%d shards failed, timed out: %v", body.Shards.Failed, body.TimedOut)}
	}
	hits := []retriever.Hit{}
	for i, h := range body.Hits.Hits {
		if h.Source == nil || h.Score == nil {
			return nil, bad("hit %d has no _source or no _score", i)
		}
		d, err := h.Source.read()
		if err != nil {
			return nil, fmt.Errorf("%w: document %q has %w", ErrRefused, h.ID, err)
		}
		d.ID = h.ID
		hits = append(hits, retriever.Hit{Document: d, Score: *h.Score})
	}
	slices.SortStableFunc(hits, func(a, b retriever.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return hits, nil
}
