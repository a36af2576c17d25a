package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/retriever"
)

// scripted is a searcher that a test steers.
type scripted func(ctx context.Context, query string, k int) ([]retriever.Hit, error)

func (s scripted) Search(ctx context.Context, _, query string, k int) ([]retriever.Hit, error) {
	return s(ctx, query, k)
}

// small has two documents; every word but "nothing" finds both.
func small(_ context.Context, query string, k int) ([]retriever.Hit, error) {
	hits := []retriever.Hit{
		{Document: retriever.Document{ID: "7", Title: `A "b" <c>`, Text: "x\ny"}, Score: 2.5},
		{Document: retriever.Document{ID: "8", Title: "B", Text: "é"}, Score: 1},
	}
	if query == "" || query == "nothing" {
		return nil, nil
	}
	return hits[:min(k, len(hits))], nil
}

func testOptions() Options {
	o := DefaultOptions(2)
	o.QueriesMax, o.TopKMax, o.BodyBytesMax = 3, 50, 1000
	return o
}

func start(t *testing.T, s retriever.Searcher, o Options) *httptest.Server {
	t.Helper()
	x, err := New(s, About{Index: "small", Documents: 2, Scoring: "bm25-lucene", K1: 0.9, B: 0.4, Analyser: "plain"}, o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(x)
	t.Cleanup(h.Close)
	return h
}

func ask(t *testing.T, method, url, body string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, strings.TrimSpace(string(text)), w.Header
}

const (
	first  = `{"id":"7","title":"A \"b\" <c>","text":"x\ny","contents":"\"A \"b\" <c>\"\nx\ny"}`
	second = `{"id":"8","title":"B","text":"é","contents":"\"B\"\né"}`
)

// The contract, in all its spellings.
func TestRetrieve(t *testing.T) {
	h := start(t, scripted(small), testOptions())
	scores := `[{"document":` + first + `,"score":2.5},{"document":` + second + `,"score":1}]`
	for body, want := range map[string]string{
		`{"queries": ["a"], "topk": 2, "return_scores": true}`:                  `{"result":[` + scores + `]}`,
		`{"queries": "a", "return_scores": true}`:                               `{"result":[` + scores + `]}`,
		`{"query": "a", "topk": null, "return_scores": true}`:                   `{"result":[` + scores + `]}`,
		`{"queries": ["a"], "return_scores": false}`:                            `{"result":[[` + first + `,` + second + `]]}`,
		`{"queries": ["a", "nothing", ""], "topk": 1}`:                          `{"result":[[` + first + `],[],[]]}`,
		`{"queries": ["nothing"], "return_scores": true, "something else": {}}`: `{"result":[[]]}`,
	} {
		if status, got, header := ask(t, "POST", h.URL+"/retrieve", body); status != 200 || got != want || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s, want %s", body, status, got, want)
		}
	}
}

// Wrong requests are told what is wrong, in JSON.
func TestRefuses(t *testing.T) {
	h := start(t, scripted(small), testOptions())
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/retrieve", ``, 400, "not the JSON"},
		{"POST", "/retrieve", `{"queries": ["a"]`, 400, "not the JSON"},
		{"POST", "/retrieve", `["a"]`, 400, "a JSON object is wanted, not array"},
		{"POST", "/retrieve", `7`, 400, "a JSON object is wanted, not number"},
		{"POST", "/retrieve", `{"queries": "a", "return_scores": 1}`, 400, "return_scores is number, want true or false"},
		{"POST", "/retrieve", `{"queries": "a", "topk": 1.5}`, 400, "topk is number 1.5, want a whole number"},
		{"POST", "/retrieve", `{"queries": ["a"], "topk": 0}`, 400, "topk is 0, 1 to 50"},
		{"POST", "/retrieve", `null`, 400, "no queries"},
		{"POST", "/retrieve", `{}`, 400, "no queries"},
		{"POST", "/retrieve", `{"queries": []}`, 400, "no queries"},
		{"POST", "/retrieve", `{"queries": null}`, 400, "no queries"},
		{"POST", "/retrieve", `{"queries": [1]}`, 400, "neither a string nor a list"},
		{"POST", "/retrieve", `{"queries": [null]}`, 400, "query 0 is null"},
		{"POST", "/retrieve", `{"queries": {"a": 1}}`, 400, "neither a string nor a list"},
		{"POST", "/retrieve", `{"queries": ["a"], "query": "a"}`, 400, "one is needed"},
		{"POST", "/retrieve", `{"queries": ["a"], "topk": -1}`, 400, "topk is -1, 1 to 50"},
		{"POST", "/retrieve", `{"queries": ["a"], "topk": 1000000000}`, 400, "1 to 50"},
		{"POST", "/retrieve", `{"queries": ["a"], "topk": "3"}`, 400, "topk is string, want a whole number"},
		{"POST", "/retrieve", `{"queries": ["a", "b", "c", "d"]}`, 400, "4 queries, at most 3"},
		{"POST", "/retrieve", `{"queries": ["` + strings.Repeat("a", 1000) + `"]}`, 413, "longer than 1000 bytes"},
		{"GET", "/retrieve", ``, 405, "takes POST"},
		{"POST", "/healthz", ``, 405, "takes GET"},
		{"POST", "/health", ``, 405, "takes GET"},
		{"POST", "/search", `{}`, 404, "no /search here"},
	} {
		status, got, header := ask(t, c.method, h.URL+c.path, c.body)
		var e struct{ Error string }
		if err := json.Unmarshal([]byte(got), &e); err != nil || status != c.status || !strings.Contains(e.Error, c.says) {
			t.Errorf("%s %s %.60s: %d %s, want %d and %q", c.method, c.path, c.body, status, got, c.status, c.says)
		}
		if strings.Contains(e.Error, "Go ") || strings.Contains(e.Error, "server.") || strings.Contains(e.Error, "json:") {
			t.Errorf("%s: %s shows what the server is made of", c.body, e.Error)
		}
		if c.status == 405 && header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", c.path)
		}
	}
}

func TestHealthAndMetrics(t *testing.T) {
	h := start(t, scripted(small), testOptions())
	ask(t, "POST", h.URL+"/retrieve", `{"queries": ["a", "b"]}`)
	ask(t, "POST", h.URL+"/retrieve", `{`)
	want := `{"status":"ok","index":"small","documents":2,"scoring":"bm25-lucene","k1":0.9,"b":0.4,"analyser":"plain"}`
	for _, path := range []string{"/healthz", "/health"} {
		if status, got, _ := ask(t, "GET", h.URL+path, ""); status != 200 || got != want {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	got := ""
	for range 100 { // a request is counted once its answer has gone out
		if _, got, _ = ask(t, "GET", h.URL+"/metrics", ""); strings.Contains(got, `retriever_request_seconds_count{path="/retrieve"} 2`) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, line := range []string{
		`retriever_queries_total 2`, `retriever_requests_total{code="200",path="/retrieve"} 1`,
		`retriever_requests_total{code="400",path="/retrieve"} 1`, `retriever_request_seconds_count{path="/retrieve"} 2`,
	} {
		if !strings.Contains(got+"\n", line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	_, got, _ = ask(t, "GET", h.URL+"/openapi.json", "")
	var described struct{ Paths map[string]any }
	if err := json.Unmarshal([]byte(got), &described); err != nil || described.Paths["/retrieve"] == nil {
		t.Errorf("openapi.json: %v, %v", described.Paths, err)
	}
	if status, got, _ := ask(t, "GET", h.URL+"/", ""); status != 200 || !strings.Contains(got, "<title>Retrieval server") {
		t.Errorf("page: %d", status)
	}
}

// What the index does wrong has a status each, and a damaged one a metric.
func TestSearchErrors(t *testing.T) {
	o := testOptions()
	o.RequestTimeout = 50 * time.Millisecond
	h := start(t, scripted(func(ctx context.Context, query string, _ int) ([]retriever.Hit, error) {
		switch query {
		case "corrupt":
			return nil, fmt.Errorf("search: %w: torn", retriever.ErrCorrupt)
		case "slow":
			<-ctx.Done()
			return nil, ctx.Err()
		case "closed":
			return nil, retriever.ErrClosed
		case "panics":
			panic("no")
		}
		return nil, nil
	}), o)
	for query, want := range map[string]struct {
		status int
		says   string
	}{"corrupt": {500, "damaged index: torn"}, "slow": {504, "longer than 50ms"}, "closed": {503, "closed"}, "panics": {500, "panicked"}} {
		status, got, _ := ask(t, "POST", h.URL+"/retrieve", `{"queries": ["fine", "`+query+`", "fine"]}`)
		if status != want.status || !strings.Contains(got, want.says) {
			t.Errorf("%s: %d %s, want %d and %q", query, status, got, want.status, want.says)
		}
	}
	if _, got, _ := ask(t, "GET", h.URL+"/metrics", ""); !strings.Contains(got+"\n", "retriever_corrupt_total 1\n") {
		t.Error("the damaged index is not counted")
	}
}

// A client that hangs up ends its searches, which count as no answer.
func TestClientGone(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	h := start(t, scripted(func(ctx context.Context, _ string, _ int) ([]retriever.Hit, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}), testOptions())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	r, err := http.NewRequestWithContext(ctx, "POST", h.URL+"/retrieve", strings.NewReader(`{"queries": "a"}`))
	if err != nil {
		t.Fatal(err)
	}
	if w, err := http.DefaultClient.Do(r); err == nil {
		t.Errorf("answered %d", w.StatusCode)
		w.Body.Close()
	}
	<-ended
	got := ""
	for range 500 { // counted once the handler is done
		if _, got, _ = ask(t, "GET", h.URL+"/metrics", ""); strings.Contains(got, `{code="499",path="/retrieve"} 1`) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !strings.Contains(got, `{code="499",path="/retrieve"} 1`) || !strings.Contains(got, "retriever_queries_total 0\n") {
		t.Error("the request is not counted as 499, or its query as answered")
	}
}

// As many searches run as there are slots; what waits beyond the limit is refused
// and told when to come again.
func TestLimits(t *testing.T) {
	o := testOptions()
	o.SearchesMax, o.RequestsWaiting = 2, 3
	hold := make(chan struct{})
	var mu sync.Mutex
	running, most := 0, 0
	h := start(t, scripted(func(ctx context.Context, query string, k int) ([]retriever.Hit, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-hold
		mu.Lock()
		running--
		mu.Unlock()
		return small(ctx, query, k)
	}), o)
	codes := make(chan int, 9)
	var wg sync.WaitGroup
	for range 9 {
		wg.Go(func() {
			status, _, header := ask(t, "POST", h.URL+"/retrieve", `{"queries": ["a", "b"]}`)
			if status == 503 && header.Get("Retry-After") != "1" {
				t.Error("no Retry-After")
			}
			codes <- status
		})
	}
	for range 4 { // refused at once
		if status := <-codes; status != 503 {
			t.Errorf("status %d, want 503", status)
		}
	}
	close(hold)
	wg.Wait()
	for range 5 {
		if status := <-codes; status != 200 {
			t.Errorf("status %d, want 200", status)
		}
	}
	if most != 2 {
		t.Errorf("%d searches at a time, want 2", most)
	}
}

// Many clients get what one gets, from a real index; queries of every kind are answered.
func TestRealIndex(t *testing.T) {
	dir := t.TempDir()
	corpus := filepath.Join(dir, "corpus.jsonl")
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "{\"id\": \"d%d\", \"title\": \"Title %d\", \"text\": \"word%d and more\"}\n", i, i, i%50)
	}
	if err := os.WriteFile(corpus, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := retriever.OpenCorpus([]string{corpus}, retriever.CorpusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := retriever.Build(t.Context(), filepath.Join(dir, "index"), c, retriever.DefaultBuildOptions())
	if err != nil {
		t.Fatal(errors.Join(err, c.Close()))
	}
	index, err := retriever.Open(filepath.Join(dir, "index"), retriever.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { index.Close() })
	x, err := New(index, AboutIndex("index", *m), DefaultOptions(2))
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(x)
	t.Cleanup(h.Close)
	want := map[string]string{}
	for i := range 50 {
		body := fmt.Sprintf(`{"queries": ["word%d", "title %d"], "return_scores": true}`, i, i)
		_, want[body], _ = ask(t, "POST", h.URL+"/retrieve", body)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for body, result := range want {
				if status, got, _ := ask(t, "POST", h.URL+"/retrieve", body); status != 200 || got != result {
					t.Errorf("%s: %d %s", body, status, got)
				}
			}
		})
	}
	wg.Wait()
	for _, query := range []string{"", "\x00", "\xff", `"`, `+a -b ~c^2 (d`, "日本語 😀", strings.Repeat("word1 other ", 10_000)} {
		body, err := json.Marshal(map[string]any{"queries": []string{query}})
		if err != nil {
			t.Fatal(err)
		}
		if status, got, _ := ask(t, "POST", h.URL+"/retrieve", string(body)); status != 200 {
			t.Errorf("%.20q: %d %s", query, status, got)
		}
	}
}

// A server that is told to end lets the requests that run end, and takes no more.
func TestShutdown(t *testing.T) {
	begun, hold := make(chan struct{}), make(chan struct{})
	x, err := New(scripted(func(ctx context.Context, query string, k int) ([]retriever.Hit, error) {
		close(begun)
		<-hold
		return small(ctx, query, k)
	}), About{}, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Serve(ctx, l) }()
	answered := make(chan int, 1)
	go func() {
		status, _, _ := ask(t, "POST", "http://"+l.Addr().String()+"/retrieve", `{"queries": "a"}`)
		answered <- status
	}()
	<-begun
	cancel()
	select {
	case err := <-ended:
		t.Fatalf("the server ended before its request: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(hold)
	if status := <-answered; status != 200 {
		t.Errorf("the running request got %d", status)
	}
	if err := <-ended; err != nil {
		t.Errorf("end: %v", err)
	}
	if _, err := net.DialTimeout("tcp", l.Addr().String(), time.Second); err == nil {
		t.Error("the port is still open")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"hits a query":       func(o *Options) { o.TopK = 0 },
		"at most":            func(o *Options) { o.TopK = o.TopKMax + 1 },
		"searches at a time": func(o *Options) { o.SearchesMax = -1 },
		"grace":              func(o *Options) { o.ShutdownGrace = 0 },
	} {
		o := testOptions()
		spoil(&o)
		if _, err := New(scripted(small), About{}, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A client in Python of the form that Search-R1's and MEM1's have.
func TestPythonClient(t *testing.T) {
	python := os.Getenv("PEERS_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import requests").CombinedOutput(); err != nil {
		t.Skipf("%s has no requests (PEERS_PYTHON names another): %s", python, out)
	}
	h := start(t, scripted(small), testOptions())
	const client = `
import sys, requests
body = {"queries": ["a", "nothing"], "topk": 2, "return_scores": True}
result = requests.post(sys.argv[1] + "/retrieve", json=body).json()["result"]
for hits in result:
    print("|".join(h["document"]["contents"].split("\n")[0] + " " + str(h["score"]) for h in hits))
`
	out, err := exec.CommandContext(t.Context(), python, "-c", client, h.URL).CombinedOutput()
	if err != nil || string(out) != "\"A \"b\" <c>\" 2.5|\"B\" 1\n\n" && string(out) != "\"A \"b\" <c>\" 2.5|\"B\" 1.0\n\n" {
		t.Errorf("%v: %q", err, out)
	}
}
