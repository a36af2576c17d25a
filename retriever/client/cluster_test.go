package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/retriever"
)

// startCluster runs a node of OpenSearch and returns its address and what ends it.
func startCluster(t *testing.T) (address string, end func()) {
	t.Helper()
	lib := os.Getenv("OPENSEARCH_LIB")
	if lib == "" {
		t.Skip("OPENSEARCH_LIB names no folder with OpenSearch's jars (scripts/peers/opensearch.sh fetches them)")
	}
	source := filepath.Join("..", "..", "scripts", "peers", "opensearch", "Cluster.java")
	java := exec.CommandContext(t.Context(), "java", "-Xmx1g", "-cp", filepath.Join(lib, "*"), source, t.TempDir())
	var log bytes.Buffer
	java.Stderr = &log
	in, err1 := java.StdinPipe()
	out, err2 := java.StdoutPipe()
	if err := errors.Join(err1, err2, java.Start()); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			in.Close()
			java.Wait()
		}
	}
	t.Cleanup(end)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		port := 0
		if _, err := fmt.Sscanf(lines.Text(), "%d", &port); err == nil && port > 0 {
			return fmt.Sprintf("http://127.0.0.1:%d", port), end
		}
	}
	t.Fatalf("no node: %s", log.String())
	return "", nil
}

// put sends a request that the cluster has to take.
func put(t *testing.T, method, url, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	answer, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode > 299 || bytes.Contains(answer, []byte(`"errors":true`)) {
		t.Fatalf("%s %s: %d %.500s, %v", method, url, w.StatusCode, answer, err)
	}
}

var (
	stems = strings.Fields("run city relation hope general operate river bridge sky generous probable fly die electric music nation history connect adjust form sensible rate happy argue")
	ends  = strings.Fields("- - - s ed ing 's er ly ness ation al ize ful ement ies")
	small = strings.Fields("the of and a in to is was not with THE It")
)

// sentence is text that an English analyser has work with. Lucene keeps the lengths of
// shorter texts than 40 terms exactly.
func sentence(r *rand.Rand, words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteString([]string{" ", " ", " ", ", ", "-", ". "}[r.IntN(6)])
		}
		if r.IntN(3) == 0 {
			b.WriteString(small[r.IntN(len(small))])
			continue
		}
		word := stems[int(float64(len(stems))*math.Pow(r.Float64(), 2))] + strings.TrimPrefix(ends[r.IntN(len(ends))], "-")
		if r.IntN(4) == 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

// legacy is the factor that OpenSearch's BM25 keeps from Lucene before version 8, k1+1;
// it changes no ranking.
const legacy = 0.9 + 1

// A real cluster with the same k1, b and English analyser finds what the exact index
// finds, in the same order, with the same scores but for that factor; what it refuses
// and its end are the errors they should be.
func TestRealCluster(t *testing.T) {
	server, end := startCluster(t)
	put(t, "PUT", server+"/wiki", `{"settings": {"number_of_shards": 1, "number_of_replicas": 0,
		"similarity": {"default": {"type": "BM25", "k1": 0.9, "b": 0.4}}},
		"mappings": {"properties": {"contents": {"type": "text", "analyzer": "english"}}}}`)
	r := rand.New(rand.NewPCG(1, 2))
	var bulk, corpus strings.Builder
	for i := range 2000 {
		title, text := sentence(r, 1+r.IntN(3)), sentence(r, 3+r.IntN(33))
		d := retriever.Document{ID: fmt.Sprintf("d%04d", i), Title: title, Text: text}
		line, err1 := json.Marshal(d)
		contents, err2 := json.Marshal(map[string]string{"contents": `"` + title + "\"\n" + text})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&corpus, "%s\n", line)
		fmt.Fprintf(&bulk, "{\"index\": {\"_id\": %q}}\n%s\n", d.ID, contents)
	}
	put(t, "POST", server+"/wiki/_bulk?refresh=true", bulk.String())
	put(t, "POST", server+"/wiki/_forcemerge?max_num_segments=1", "")
	index := build(t, corpus.String())
	c, err := NewOpenSearch(OpenSearchScheme+server+"/wiki", Options{TimeoutSeconds: 30, AttemptsMax: 2, BackoffSeconds: 0.01, BackoffMaxSeconds: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for range 300 {
		query := sentence(r, 1+r.IntN(8))
		want, err1 := index.Search(t.Context(), "", query, 10)
		got, err2 := c.Search(t.Context(), "", query, 10)
		if err := errors.Join(err1, err2); err != nil || len(got) != len(want) {
			t.Fatalf("%q: %d hits, want %d, %v", query, len(got), len(want), err)
		}
		for i, h := range got {
			cut := want[i].Score-want[len(want)-1].Score < 1e-6 // which of these ties are found is the cluster's choice
			if h.Document != want[i].Document && !cut || math.Abs(h.Score/legacy-want[i].Score) > 1e-6*max(1, want[i].Score) {
				t.Errorf("%q, place %d: %s %q %g, want %s %q %g", query, i, h.ID, h.Title, h.Score/legacy, want[i].ID, want[i].Title, want[i].Score)
			}
			compared++
		}
	}
	if compared < 1000 {
		t.Errorf("only %d hits compared", compared)
	}
	t.Logf("%d hits compared", compared)
	odd(t, c)
	for url, want := range map[string]error{"/nowhere": ErrRefused, "/wiki?field=body": nil} {
		other, err := NewOpenSearch(OpenSearchScheme+server+url, c.options)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Check(t.Context()); err == nil || !errors.Is(err, want) && want != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	end()
	if _, err := c.Search(t.Context(), "", "river", 3); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after the end: %v", err)
	}
}

// odd queries are plain text to the cluster too.
func odd(t *testing.T, c *OpenSearch) {
	t.Helper()
	for _, query := range []string{"", " ", "\x00", "\xff", `"`, `river" OR "a`, "+a -b ~c^2 (d [e TO f] {g} \\ /h/ *?:", "日本語 😀", strings.Repeat("river ", 1000)} {
		if _, err := c.Search(t.Context(), "", query, 3); err != nil {
			t.Errorf("%.40q: %v", query, err)
		}
	}
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "word%d ", i)
	}
	if _, err := c.Search(t.Context(), "", many.String(), 3); !errors.Is(err, ErrRefused) { // it takes 1,024
		t.Errorf("10,000 terms: %v", err)
	}
	if _, err := c.Search(t.Context(), "", "river", 20_000); !errors.Is(err, ErrRefused) {
		t.Errorf("k 20,000: %v", err)
	}
}

// build indexes a corpus for exact BM25 as the cluster does.
func build(t *testing.T, corpus string) *retriever.Index {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "corpus.jsonl")
	if err := os.WriteFile(file, []byte(corpus), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := retriever.OpenCorpus([]string{file}, retriever.CorpusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o := retriever.DefaultBuildOptions()
	o.Analyser, o.TitleBoost = retriever.AnalyserEnglish, 0
	if _, err := retriever.Build(t.Context(), filepath.Join(dir, "index"), c, o); err != nil {
		t.Fatal(err)
	}
	index, err := retriever.Open(filepath.Join(dir, "index"), retriever.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { index.Close() })
	return index
}
