package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/retriever/client"
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
		stdout, log, status := w.bench("eval --preset small --data real --horizon q2 --scripted search-each --json --ledger jsonl --retriever-attempts 2 --out " + out + more)
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
	if _, log, status := w.bench("eval --preset small --data real --horizon q2 --scripted search-each --out dead --retriever-attempts 2 --retriever http://127.0.0.1:1"); status == 0 || !strings.Contains(log, "after 2 attempts") {
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

// bench serve retriever says where it listens, warns when that is not this machine
// alone, answers, and ends well when it is told to.
func TestServeRetriever(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	w.mustBench(buildReal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for address, warned := range map[string]bool{"127.0.0.1:0": false, "0.0.0.0:0": true} {
		cmd := exec.CommandContext(t.Context(), self, "serve", "retriever", "--index", "real/index", "--address", address)
		cmd.Dir, cmd.Env = w.dir, append(os.Environ(), asBench+"=1")
		out, err := cmd.StderrPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		log := ""
		for lines := bufio.NewScanner(out); lines.Scan(); {
			log += lines.Text() + "\n"
			_, port, serving := strings.Cut(lines.Text(), " documents at http://")
			if !serving {
				continue
			}
			port = port[strings.LastIndexByte(port, ':'):]
			c, err := client.New("http://127.0.0.1"+port, client.DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			if hits, err := c.Search(t.Context(), "", "ada brook", 1); err != nil || len(hits) != 1 {
				t.Errorf("%v, %v", hits, err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
		if err := cmd.Wait(); err != nil || !strings.HasSuffix(log, "\nended\n") || strings.Contains(log, "other machines can reach") != warned {
			t.Errorf("%s: %v\n%s", address, err, log)
		}
	}
	if _, log, status := w.bench("serve retriever --index nowhere"); status == 0 || !strings.Contains(log, "no index") {
		t.Errorf("no index: exit %d\n%s", status, log)
	}
}
