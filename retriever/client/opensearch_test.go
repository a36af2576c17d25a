package client

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/retriever"
)

// found is an answer of the form that OpenSearch 2 and Elasticsearch 8 give.
const found = `{"took": 3, "timed_out": false, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
 "hits": {"max_score": 2.5, "hits": [
  {"_index": "wiki", "_id": "7", "_score": 2.5, "_source": {"contents": "\"A\"\nx"}},
  {"_index": "wiki", "_id": "8", "_score": 1, "_source": {"title": "B", "text": "z"}}]}}`

func cluster(t *testing.T, path string, answer http.HandlerFunc) *OpenSearch {
	t.Helper()
	h := httptest.NewServer(answer)
	t.Cleanup(h.Close)
	c, err := NewOpenSearch(OpenSearchScheme+h.URL+path, Options{TimeoutSeconds: 2, AttemptsMax: 3, BackoffSeconds: 0.001, BackoffMaxSeconds: 0.002})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpenSearch(t *testing.T) {
	for name, c := range map[string]struct {
		environment map[string]string
		path        string
		field, auth string
	}{
		"open":     {nil, "/wiki", "contents", ""},
		"password": {map[string]string{UserVariable: "u", PasswordVariable: "secret"}, "/wiki?field=text", "text", "Basic " + base64.StdEncoding.EncodeToString([]byte("u:secret"))},
		"API key":  {map[string]string{APIKeyVariable: "k3y"}, "/wiki/", "contents", "ApiKey k3y"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{UserVariable, PasswordVariable, APIKeyVariable} {
				t.Setenv(v, c.environment[v])
			}
			client := cluster(t, c.path, func(w http.ResponseWriter, r *http.Request) {
				var body map[string]any
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				query := map[string]any{"match": map[string]any{c.field: map[string]any{"query": "a +b"}}}
				if r.Method != "POST" || r.URL.Path != "/wiki/_search" || r.Header.Get("Authorization") != c.auth || body["size"] != 2.0 || !reflect.DeepEqual(body["query"], query) {
					t.Errorf("%s %s %q %v", r.Method, r.URL, r.Header.Get("Authorization"), body)
				}
				io.WriteString(w, found)
			})
			want := []retriever.Hit{
				{Document: retriever.Document{ID: "7", Title: "A", Text: "x"}, Score: 2.5},
				{Document: retriever.Document{ID: "8", Title: "B", Text: "z"}, Score: 1},
			}
			if hits, err := client.Search(t.Context(), "", "a +b", 2); err != nil || !slices.Equal(hits, want) {
				t.Errorf("%+v, %v", hits, err)
			}
			if strings.Contains(client.shown, "secret") || strings.Contains(client.shown, "k3y") {
				t.Errorf("shows %s", client.shown)
			}
		})
	}
}

// Equal scores are in the order of IDs, whatever the cluster's is.
func TestOpenSearchTies(t *testing.T) {
	c := cluster(t, "/wiki", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"hits": {"hits": [{"_id": "9", "_score": 2, "_source": {"text": ""}},
			{"_id": "8", "_score": 1, "_source": {"text": ""}}, {"_id": "10", "_score": 1, "_source": {"text": ""}}]}}`)
	})
	hits, err := c.Search(t.Context(), "", "a", 3)
	if err != nil || len(hits) != 3 || hits[0].ID != "9" || hits[1].ID != "10" || hits[2].ID != "8" {
		t.Errorf("%+v, %v", hits, err)
	}
}

func TestOpenSearchCheck(t *testing.T) {
	for path, says := range map[string]string{"/wiki": "", "/wiki?field=body": `no document has the field "body"`, "/other": "status 404"} {
		c := cluster(t, path, func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Size  int
				Query struct{ Exists struct{ Field string } }
			}
			err := json.NewDecoder(r.Body).Decode(&body)
			switch {
			case err != nil || body.Size != 1:
				t.Errorf("%+v, %v", body, err)
			case r.URL.Path != "/wiki/_search":
				w.WriteHeader(404)
			case body.Query.Exists.Field == "contents":
				io.WriteString(w, found)
			default:
				io.WriteString(w, `{"hits": {"hits": []}}`)
			}
		})
		if err := c.Check(t.Context()); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
}

func TestOpenSearchFaults(t *testing.T) {
	for name, c := range map[string]struct {
		status   int
		answer   string
		attempts int
		err      error
		says     string
	}{
		"nothing found":  {200, `{"timed_out": false, "hits": {"hits": []}}`, 1, nil, ""},
		"no such index":  {404, `{"error": {"type": "index_not_found_exception"}, "status": 404}`, 1, ErrRefused, "index_not_found"},
		"not allowed":    {401, `Unauthorized`, 1, ErrRefused, "status 401"},
		"busy":           {429, `{"error": {"type": "circuit_breaking_exception"}}`, 3, ErrUnavailable, "circuit_breaking"},
		"a proxy's page": {200, `<html>`, 3, ErrUnavailable, "not that of _search"},
		"shards failed":  {200, `{"timed_out": false, "_shards": {"failed": 2}, "hits": {"hits": []}}`, 3, ErrUnavailable, "2 shards failed"},
		"timed out":      {200, `{"timed_out": true, "hits": {"hits": []}}`, 3, ErrUnavailable, "timed out: true"},
		"no source":      {200, `{"hits": {"hits": [{"_id": "1", "_score": 1}]}}`, 3, ErrUnavailable, "no _source"},
		"other fields":   {200, `{"hits": {"hits": [{"_id": "1", "_score": 1, "_source": {"body": "x"}}]}}`, 1, ErrRefused, "neither contents nor text"},
	} {
		asked := 0
		client := cluster(t, "/wiki", func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(c.status)
			io.WriteString(w, c.answer)
		})
		hits, err := client.Search(t.Context(), "", "a", 3)
		if c.err == nil && (err != nil || len(hits) != 0) || c.err != nil && (!errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says)) || asked != c.attempts {
			t.Errorf("%s: %v, %v after %d attempts", name, hits, err, asked)
		}
	}
}

func TestOpenSearchURLs(t *testing.T) {
	for url, says := range map[string]string{
		"opensearch+https://h:9200": "no single index", "opensearch+https://h/a,b": "no single index", "opensearch+https://h/*": "no single index",
		"opensearch+ftp://h/a": "no URL", "opensearch+https://u:p@h/a": "credentials",
	} {
		if _, err := NewOpenSearch(url, DefaultOptions()); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), ":p@") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
