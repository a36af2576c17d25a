package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/trace"
)

// bench eval through a server that runs the model: ids in, ids out, log-probs in
// the ledger.
func TestEvalThroughAServer(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	w.tinyModel("tiny", 1)
	w.mustBench("data build --dir real --source nq/test=nq.jsonl --corpus passages.jsonl --horizon q1")
	tok, err := tokenizer.Load(filepath.Join(w.dir, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	output := tok.Encode("<think> nothing </think> <answer> " + madeUp[0].town + " </answer>")
	s := httptest.NewServer(&vllmFake{tok: tok, output: output, logProb: -0.25, asked: func(prompt string, stops []int32) bool {
		if !strings.Contains(prompt, "where was") || len(stops) != 1 || stops[0] != 1 {
			t.Errorf("asked %q, to stop at %v", prompt, stops)
		}
		return true
	}})
	defer s.Close()
	line := "eval --data real --horizon q1 --model tiny --chat-template none --ledger jsonl --timed-tasks 1 --out runs --server " + s.URL
	if out := w.mustBench(line); !strings.Contains(out, "tiny-vllm") {
		t.Errorf("printed %s", out)
	}
	ledger, err := trace.ReadAll(filepath.Join(w.dir, "runs/eval/test-q1/tiny-vllm/seed-0/ledger.jsonl"))
	if err != nil || len(ledger) != len(madeUp) {
		t.Fatalf("%d trajectories, %v", len(ledger), err)
	}
	right := 0
	for _, tr := range ledger {
		if c := tr.Calls[0]; tr.End != trace.EndAnswered || len(c.LogProbs) != len(output) || c.LogProbs[0] != -0.25 || tr.Model != "vllm tiny" {
			t.Errorf("%s: %s, %+v", tr.ID, tr.End, c)
		}
		if strings.Contains(tok.Decode(tr.Prefix), strings.ToLower(madeUp[0].person)) {
			right++
		}
	}
	if right != 1 {
		t.Errorf("%d tasks about one person", right)
	}
	for bad, says := range map[string]string{" --model tiny,tiny": "one --model", " --scripted search-each": "no --scripted", " --server-kind openai": "no token ids"} {
		if _, stderr, status := w.bench(line + bad); status == 0 || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d: %s", bad, status, stderr)
		}
	}
}

// vllmFake answers output to every prompt, as vLLM does; asked may refuse one.
type vllmFake struct {
	tok     *tokenizer.Tokenizer
	output  []int32
	logProb float64 // of each of its ids
	asked   func(prompt string, stops []int32) bool
}

func (f *vllmFake) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/v1/models" {
		io.WriteString(rw, `{"data": [{"id": "tiny", "max_model_len": 4000}]}`)
		return
	}
	var body struct {
		Prompt       []int32 `json:"prompt"`
		StopTokenIDs []int32 `json:"stop_token_ids"`
	}
	json.NewDecoder(r.Body).Decode(&body)
	if !f.asked(f.tok.Decode(body.Prompt), body.StopTokenIDs) {
		http.Error(rw, "out of memory", http.StatusInternalServerError)
		return
	}
	json.NewEncoder(rw).Encode(map[string]any{"choices": []any{map[string]any{
		"token_ids": f.output, "prompt_token_ids": body.Prompt, "finish_reason": "stop", "stop_reason": "</answer>",
		"logprobs": map[string]any{"token_logprobs": slices.Repeat([]float64{f.logProb}, len(f.output))},
	}}})
}

// What a server failed is told, also where the run goes on; nothing that was answered is lost, and nothing older stands beside it.
func TestEvalThroughAFailingServer(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	w.tinyModel("tiny", 1)
	w.mustBench("data build --dir real --source nq/test=nq.jsonl --corpus passages.jsonl --horizon q1")
	tok, err := tokenizer.Load(filepath.Join(w.dir, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	var fails func(prompt string) bool
	var lasts atomic.Int64 // answers that are left
	s := httptest.NewServer(&vllmFake{
		tok: tok, output: tok.Encode("<think> nothing </think> <answer> nothing </answer>"),
		asked: func(prompt string, _ []int32) bool { return !fails(prompt) && lasts.Add(-1) >= 0 },
	})
	defer s.Close()
	line := "eval --data real --horizon q1 --model tiny --chat-template none --timed-tasks 0 --out runs --request-attempts 1 --server " + s.URL
	const dir = "runs/eval/test-q1/tiny-vllm/seed-0/"

	fails = func(p string) bool { return strings.Contains(p, strings.ToLower(madeUp[0].person)) }
	lasts.Store(1000)
	_, stderr, status := w.bench(line + " --ledger jsonl")
	if status != 0 || !strings.Contains(stderr, fmt.Sprintf("1 of %d tasks failed and count as wrong", len(madeUp))) || !strings.Contains(stderr, "500") {
		t.Errorf("one failure: exit %d: %s", status, stderr)
	}
	if n := len(w.ledger(dir + "ledger.jsonl")); n != len(madeUp) {
		t.Errorf("%d trajectories", n)
	}

	fails = func(string) bool { return true }
	_, stderr, status = w.bench(line + " --tasks 3")
	if status == 0 || !strings.Contains(stderr, "all 3 tasks failed, the first: ") || !strings.Contains(stderr, "500") {
		t.Errorf("failures alone: exit %d: %s", status, stderr)
	}
	if n := strings.Count(string(w.file(dir+"tasks.jsonl")), `"end":"model_error"`); n != 3 {
		t.Errorf("%d failures in the records", n)
	}
	if _, err := os.Stat(filepath.Join(w.dir, dir, "ledger.jsonl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the ledger of the tasks before stands beside these records: %v", err)
	}

	fails = func(string) bool { return false }
	lasts.Store(4)
	records := w.file(dir + "tasks.jsonl")
	_, stderr, status = w.bench(line + " --failures-max 1 --requests 1")
	if status == 0 || !strings.Contains(stderr, "the 4 trajectories that had ended are in ") {
		t.Errorf("broken off: exit %d: %s", status, stderr)
	}
	for _, tr := range w.ledger(dir + partialFile) {
		if tr.End != trace.EndAnswered {
			t.Errorf("kept: %s, %s", tr.ID, tr.End)
		}
	}
	if string(records) != string(w.file(dir+"tasks.jsonl")) {
		t.Error("the records of the evaluation before are changed")
	}
	lasts.Store(1000)
	w.mustBench(line)
	if _, err := os.Stat(filepath.Join(w.dir, dir, partialFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was broken off stands beside the whole: %v", err)
	}
}
