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

// serveIndex serves an index of the workplace; requests with the words meet the status.
func (w workplace) serveIndex(folder, words string, status int) string {
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
		if err != nil || words != "" && strings.Contains(strings.ToLower(string(body)), words) {
			http.Error(out, "not these words", status)
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
	through, log := eval("served", " --retriever "+w.serveIndex("real/index", "", 0))
	if indexed != through || strings.Contains(log, "retrieval server:") {
		t.Errorf("by the index\n%s\nthrough the server\n%s\n%s", indexed, through, log)
	}
	for name, status := range map[string]int{"broken": http.StatusInternalServerError, "refusing": http.StatusBadRequest} {
		rows, log := eval(name, " --retriever "+w.serveIndex("real/index", "ada brook", status))
		var parsed []json.RawMessage
		if err := json.Unmarshal([]byte(rows), &parsed); err != nil || len(parsed) != 1 || !strings.Contains(log, "failed and were told to the agent") {
			t.Errorf("%s: rows %s, %v\n%s", name, rows, err, log)
		}
		if n := w.failedSearches(name); n == 0 {
			t.Errorf("%s: no failure in the ledgers", name)
		}
	}
	if _, log, status := w.bench("eval --preset small --data real --horizon q2 --scripted search-each --out dead --retriever http://127.0.0.1:1"); status == 0 || !strings.Contains(log, "after 4 attempts") {
		t.Errorf("no server at the start: exit %d\n%s", status, log)
	}
	if _, log, status := w.bench("eval --horizon q2 --tasks 1 --retriever http://127.0.0.1:1"); status == 0 || !strings.Contains(log, "knows no worlds") {
		t.Errorf("the mini-wiki through a server: exit %d\n%s", status, log)
	}
}

// failedSearches counts those in the ledgers of a folder; none may have ended its task.
func (w workplace) failedSearches(folder string) int {
	w.t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(w.dir, folder), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "ledger.jsonl" {
			return err
		}
		for tr, err := range trace.All(path) {
			if err != nil {
				return err
			}
			n += tr.RetrievalFailures()
			if tr.End == trace.EndRetrieval {
				w.t.Errorf("%s ended at a search that failed", tr.ID)
			}
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
	return n
}
