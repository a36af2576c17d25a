package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/memopd/memopd-bench/trace"
)

// teacher is a chat server whose behaviour depends on whom it is asked about.
type teacher struct {
	*httptest.Server
	mu     sync.Mutex
	asked  map[string]int // requests by person
	begun  map[string]int // trajectories by person
	broken bool           // answers nothing any more
}

func newTeacher(t *testing.T) *teacher {
	s := &teacher{asked: map[string]int{}, begun: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *teacher) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/v1/models" {
		io.WriteString(w, `{"data": [{"id": "big"}]}`)
		return
	}
	var body struct{ Messages []struct{ Content string } }
	json.NewDecoder(r.Body).Decode(&body)
	prompt := body.Messages[0].Content
	_, question, _ := strings.Cut(prompt, "\nQuestions: ")
	for i, m := range madeUp {
		if !strings.HasPrefix(question, "where was "+strings.ToLower(m.person)) {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.broken {
			panic(http.ErrAbortHandler)
		}
		s.asked[m.person]++
		first := !strings.Contains(question, "Doc 1(")
		if first {
			s.begun[m.person]++
		}
		status, text := teacherText(i, first, s.begun[m.person], s.asked[m.person])
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": text}, "finish_reason": "stop"}}})
		return
	}
	w.WriteHeader(http.StatusTeapot)
}

// teacherText is what the teacher writes about person i in its attempt at a task.
func teacherText(i int, first bool, attempt, asked int) (int, string) {
	m := madeUp[i]
	search := "<think> memory </think> <search> " + m.person + " " // the server takes the tag off
	answer := "<think> memory </think> <answer> " + m.town + " "
	switch i {
	case 1: // wrong at first
		if attempt == 1 {
			answer = "<think> memory </think> <answer> river "
		}
	case 2: // no memory
		search, answer = "<search> "+m.person+" ", "<answer> "+m.town+" "
	case 3: // nothing that the protocol takes
		return 200, "river"
	case 4: // does not fit
		return 400, ""
	case 5: // never answers
		return 200, search
	case 6: // two answers for one question
		answer = "<think> memory </think> <answer> " + m.town + " ; " + m.town + " "
	case 8: // once too busy
		if asked == 1 {
			return 503, ""
		}
	}
	if first {
		return 200, search
	}
	return 200, answer
}

// sftLine is a run with two attempts a task.
func sftLine(s *teacher) string {
	return "data sft --server " + s.URL + " --tokenizer tiny --data real --horizon q1 --attempts 2 --requests 2 --out out/l.jsonl --chat-template none"
}

func TestDataSFT(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	w.tinyModel("tiny", 1, "memory", ";")
	w.mustBench("data build --dir real --source nq/train=nq.jsonl --corpus passages.jsonl --horizon q1")
	s := newTeacher(t)

	// Three tasks, then all: what is done is not asked again.
	out := w.mustBench(sftLine(s) + " --tasks 3")
	if !strings.Contains(out, "out/l.jsonl: ") {
		t.Errorf("printed %q", out)
	}
	before := w.countAsked(s)
	f, err := os.OpenFile(filepath.Join(w.dir, "out/l.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"schema":1,"id":"torn`)
	f.Close()
	_, stderr, status := w.bench(sftLine(s))
	if status != 0 || !strings.Contains(stderr, "torn last line of 22 bytes") {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	for person, n := range before {
		// The person whose requests fail is asked again: failures count for nothing.
		if person != madeUp[4].person && s.asked[person] != n {
			t.Errorf("%s: asked %d times, then %d", person, n, s.asked[person])
		}
	}

	var report sftReport
	w.readJSON("out/l.report.json", &report)
	failures := s.asked[madeUp[4].person]
	want := map[verdict]int{
		verdictWrong: 1, verdictFormat: 2, verdictUnusable: 2, verdictFailed: failures, verdictUnanswered: 2, verdictAnswerCount: 2,
		verdictTruncated: 0, verdictTooLong: 0, verdictDuplicate: 0,
	}
	for v, n := range want {
		if report.Rejected[v] != n {
			t.Errorf("%s: %d, want %d", v, report.Rejected[v], n)
		}
	}
	if !report.Finished || report.Kept != 4 || report.Examples != 8 || report.Searches != 4 || report.Answers != 4 || report.Tasks != 9 ||
		report.Trajectories != 13+failures || report.Teacher != "big" || report.OutputTokens != 4*(7+6) {
		t.Errorf("report %+v", report)
	}
	w.checkKept(4)
	rejected, err := trace.ReadAll(filepath.Join(w.dir, "out/l.rejected.jsonl"))
	if err != nil || len(rejected) != 9+failures {
		t.Errorf("%d rejected, %v", len(rejected), err)
	}

	// What failed is asked again, and nothing else.
	before = w.countAsked(s)
	w.mustBench(sftLine(s))
	for person, n := range w.countAsked(s) {
		if again := n - before[person]; again != map[string]int{madeUp[4].person: 2}[person] {
			t.Errorf("%s: asked %d times more", person, again)
		}
	}

	// Other filters would make another ledger of it.
	if _, stderr, status := w.bench(sftLine(s) + " --min-f1 0"); status == 0 || !strings.Contains(stderr, "min-f1 was 0.8, is 0") {
		t.Errorf("exit %d: %s", status, stderr)
	}
}

// checkKept looks at the ledger: right, whole, scripted, each task once.
func (w workplace) checkKept(n int) {
	w.t.Helper()
	kept, err := trace.ReadAll(filepath.Join(w.dir, "out/l.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	tasks, ids := map[string]bool{}, map[string]bool{}
	for _, tr := range kept {
		tasks[tr.TaskID], ids[tr.ID] = true, true
		if tr.End != trace.EndAnswered || tr.Reward != 1 || tr.Scores["em"] != 1 || len(tr.Calls) != 2 || tr.Calls[0].LogProbs != nil || tr.Calls[0].Stop != trace.StopTag {
			w.t.Errorf("%s: end %s, reward %v, scores %v, %d calls", tr.ID, tr.End, tr.Reward, tr.Scores, len(tr.Calls))
		}
	}
	if len(kept) != n || len(tasks) != n || len(ids) != n {
		w.t.Errorf("%d trajectories of %d tasks with %d ids, want %d", len(kept), len(tasks), len(ids), n)
	}
}

func (w workplace) countAsked(s *teacher) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for person, n := range s.asked {
		out[person] = n
	}
	return out
}

// A server that dies ends the run with an error; what was written stays, and the
// same command finishes the work.
func TestDataSFTServerDies(t *testing.T) {
	w := newWorkplace(t)
	w.realQuestions()
	w.tinyModel("tiny", 1, "memory", ";")
	w.mustBench("data build --dir real --source nq/train=nq.jsonl --corpus passages.jsonl --horizon q1")
	s := newTeacher(t)
	line := sftLine(s) + " --request-attempts 1 --failures-max 2"
	w.mustBench(line + " --tasks 4")
	written := w.file("out/l.jsonl")
	s.broken = true
	_, stderr, status := w.bench(line)
	if status == 0 || !strings.Contains(stderr, "2 requests in a row have failed") || !strings.Contains(stderr, "goes on from there") {
		t.Errorf("exit %d: %s", status, stderr)
	}
	apart := strings.Replace(line, "out/l.jsonl", "out/none.jsonl", 1)
	if _, stderr, status := w.bench(apart + " --tasks 1 --attempts 1"); apart == line || status == 0 || !strings.Contains(stderr, "all 1 trajectories failed: the reasons are in out/none.rejected.jsonl") {
		t.Errorf("failures alone: exit %d: %s", status, stderr)
	}
	var report sftReport
	if w.readJSON("out/l.report.json", &report); report.Finished {
		t.Error("the report says that the run is finished")
	}
	if got := w.file("out/l.jsonl"); string(got) != string(written) {
		t.Error("the ledger has changed")
	}
	s.mu.Lock()
	s.broken = false
	s.mu.Unlock()
	w.mustBench(sftLine(s))
	w.checkKept(4)
}

func TestDataSFTRefuses(t *testing.T) {
	w := newWorkplace(t)
	for line, says := range map[string]string{
		"": "--server is missing", "--server http://x": "--tokenizer is missing",
		"--server http://x --tokenizer t --out a.parquet":           "ends in .jsonl",
		"--server http://x --tokenizer t --attempts 1 --keep 2":     "no more to keep than attempts",
		"--server http://x --tokenizer t --min-f1 2":                "want 0 to 1",
		"--server http://x --tokenizer t --tasks-file nowhere.parq": "unknown model",
	} {
		if _, stderr, status := w.bench("data sft " + line); status == 0 || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d, %s", line, status, stderr)
		}
	}
}

func TestWellFormed(t *testing.T) {
	for text, want := range map[string]bool{
		"<think> a </think> <search> b </search>":                                                   true,
		"\n<think>a</think>\n<answer></answer>\n":                                                   true,
		"<think> I will <search> later </think> <search> b </search>":                               true,
		"<search> b </search>":                                                                      false,
		"<think> </think> <search> b </search>":                                                     false,
		"so <think> a </think> <search> b </search>":                                                false,
		"<think> a </think> so <search> b </search>":                                                false,
		"<think> a </think> <search> b </search> so":                                                false,
		"<think> a <search> b </search>":                                                            false,
		"<think> a </think> <search> b </answer>":                                                   false,
		"<think> a </think> <information> c </information> <think> d </think> <search> b </search>": false,
		"<think> a </think> <think> d </think> <search> b </search>":                                false,
		"": false,
	} {
		if got := wellFormed(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
