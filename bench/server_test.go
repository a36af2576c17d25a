package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
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
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
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
		if !strings.Contains(tok.Decode(body.Prompt), "where was") || len(body.StopTokenIDs) != 1 || body.StopTokenIDs[0] != 1 {
			t.Errorf("asked %v", body)
		}
		logProbs := make([]float64, len(output))
		for i := range logProbs {
			logProbs[i] = -0.25
		}
		json.NewEncoder(rw).Encode(map[string]any{"choices": []any{map[string]any{
			"token_ids": output, "prompt_token_ids": body.Prompt, "finish_reason": "stop", "stop_reason": "</answer>",
			"logprobs": map[string]any{"token_logprobs": logProbs},
		}}})
	}))
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
