package server

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/retriever"
)

// The real passages and questions, which are no part of the repository.
const (
	realCorpus    = "../../../shared/data/corpus/hotpot_nq_union_searchr1.jsonl.gz"
	realQuestions = "../../../shared/data/nq/nq-open-oracle.jsonl.gz"
)

// BenchmarkRetrieve asks a server over loopback, with its clients in this process,
// for three hits of one real question a request, over 17,407 real passages.
func BenchmarkRetrieve(b *testing.B) {
	if _, err := os.Stat(realCorpus); err != nil {
		b.Skipf("no real passages here: %v", err)
	}
	bodies := requestBodies(b)
	x := realIndex(b)
	s, err := New(x, AboutIndex("real", x.Manifest()), DefaultOptions(runtime.GOMAXPROCS(0)))
	if err != nil {
		b.Fatal(err)
	}
	h := httptest.NewServer(s)
	b.Cleanup(h.Close)
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			took := make([]time.Duration, b.N)
			started := time.Now()
			var wg sync.WaitGroup
			for c := range clients {
				wg.Go(func() {
					client := &http.Client{Transport: &http.Transport{}}
					defer client.CloseIdleConnections()
					for i := c; i < b.N; i += clients {
						begun := time.Now()
						if err := retrieve(client, h.URL, bodies[i%len(bodies)]); err != nil {
							b.Error(err)
							return
						}
						took[i] = time.Since(begun)
					}
				})
			}
			wg.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/time.Since(started).Seconds(), "queries/s")
			b.ReportMetric(1e3*took[b.N*99/100].Seconds(), "p99-ms")
		})
	}
}

func retrieve(c *http.Client, url, body string) error {
	r, err := c.Post(url+"/retrieve", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return errors.New(r.Status)
	}
	return nil
}

func realIndex(b *testing.B) *retriever.Index {
	b.Helper()
	corpus, err := retriever.OpenCorpus([]string{realCorpus}, retriever.CorpusOptions{})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir() + "/index"
	_, err = retriever.Build(b.Context(), dir, corpus, retriever.DefaultBuildOptions())
	if err = errors.Join(err, corpus.Close()); err != nil {
		b.Fatal(err)
	}
	x, err := retriever.Open(dir, retriever.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = x.Close() })
	return x
}

// requestBodies are Search-R1's requests for the questions.
func requestBodies(b *testing.B) []string {
	b.Helper()
	f, err := os.Open(realQuestions)
	if err != nil {
		b.Skipf("no real questions here: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	var bodies []string
	for d := json.NewDecoder(z); ; {
		var q struct{ Question string }
		if err := d.Decode(&q); errors.Is(err, io.EOF) {
			return bodies
		} else if err != nil {
			b.Fatal(err)
		}
		body, err := json.Marshal(map[string]any{"queries": []string{q.Question}, "topk": 3, "return_scores": true})
		if err != nil {
			b.Fatal(err)
		}
		bodies = append(bodies, string(body))
	}
}
