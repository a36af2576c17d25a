package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/retriever/server"
	"github.com/memopd/memopd-bench/trace"
)

// serveIndex serves an index of the workplace; requests for which fails holds meet an error.
func (w workplace) serveIndex(folder string, fails func(body string) bool) string {
	w.t.Helper()
	index, err := retriever.Open(filepath.Join(w.dir, folder), retriever.OpenOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { index.Close() })
	x, err := server.New(index, server.AboutIndex(folder, index.Manifest()), server.DefaultOptions(2))
	if err != nil {
		w.t.Fatal(err)
	}
	h := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || fails(string(body)) {
			http.Error(out, "no memory", http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		x.ServeHTTP(out, r)
	}))
	w.t.Cleanup(h.Close)
	return h.URL
}

// The same agents search an index and a server of it alike; searches that the server
// never answers are told to the agent and counted, and no task is lost.
func TestEvalThroughRetriever(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	w.mustBench(buildReal)
	eval := func(out, more string) (string, string) {
		stdout, log, status := w.bench("eval --preset small --data real --horizon q2 --scripted search-each --json --ledger jsonl --out " + out + more)
		if status != 0 {
			t.Fatalf("exit %d\n%s", status, log)
		}
		return stdout, log
	}
	indexed, _ := eval("local", "")
	through, log := eval("served", " --retriever "+w.serveIndex("real/index", func(string) bool { return false }))
	if indexed != through || strings.Contains(log, "retrieval server:") {
		t.Errorf("by the index\n%s\nthrough the server\n%s\n%s", indexed, through, log)
	}
	broken, log := eval("broken", " --retriever "+w.serveIndex("real/index", func(body string) bool { return strings.Contains(strings.ToLower(body), "ada brook") }))
	if broken == "" || !strings.Contains(log, "failed and were told to the agent") {
		t.Errorf("%s\n%s", broken, log)
	}
	failures := 0
	err := filepath.WalkDir(filepath.Join(w.dir, "broken"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "ledger.jsonl" {
			return err
		}
		for tr, err := range trace.All(path) {
			if err != nil {
				return err
			}
			failures += tr.RetrievalFailures()
			if tr.End == trace.EndRetrieval {
				t.Errorf("%s ended at a search that failed", tr.ID)
			}
		}
		return nil
	})
	if err != nil || failures == 0 {
		t.Errorf("%d failures in the ledgers, %v", failures, err)
	}
	var rows []json.RawMessage
	if err := json.Unmarshal([]byte(broken), &rows); err != nil || len(rows) != 1 {
		t.Errorf("rows %s, %v", broken, err)
	}
	if _, log, status := w.bench("eval --horizon q2 --tasks 1 --retriever http://127.0.0.1:1"); status == 0 || !strings.Contains(log, "knows no worlds") {
		t.Errorf("the mini-wiki through a server: exit %d\n%s", status, log)
	}
}
