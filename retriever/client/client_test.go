package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/retriever"
)

// scripted is a server whose answers a test writes; n counts requests from 0.
func scripted(t *testing.T, answer func(w http.ResponseWriter, body string, n int)) (*SearchR1, *atomic.Int64, *[]time.Duration) {
	t.Helper()
	asked, pauses := &atomic.Int64{}, &[]time.Duration{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/retrieve" || r.Method != http.MethodPost {
			t.Errorf("%s %s, %v", r.Method, r.URL.Path, err)
		}
		answer(w, string(body), int(asked.Add(1)-1))
	}))
	t.Cleanup(h.Close)
	o := Options{TimeoutSeconds: 0.3, AttemptsMax: 3, BackoffSeconds: 1, BackoffMaxSeconds: 8}
	c, err := New(h.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = func(ctx context.Context, d time.Duration) error {
		*pauses = append(*pauses, d)
		return ctx.Err()
	}
	return c, asked, pauses
}

const two = `{"result": [[{"document": {"id": 7, "contents": "\"A \"b\"\"\nx\ny"}, "score": 2.5}, {"document": {"id": "8", "title": "B", "text": "z", "contents": "?"}, "score": 1}]]}`

func TestSearch(t *testing.T) {
	var got string
	c, _, _ := scripted(t, func(w http.ResponseWriter, body string, _ int) {
		got = body
		io.WriteString(w, two)
	})
	want := []retriever.Hit{
		{Document: retriever.Document{ID: "7", Title: `A "b"`, Text: "x\ny"}, Score: 2.5},
		{Document: retriever.Document{ID: "8", Title: "B", Text: "z"}, Score: 1},
	}
	for k, n := range map[int]int{1: 1, 2: 2, 5: 2} { // a server may give more than asked, or fewer
		hits, err := c.Search(t.Context(), "", "a \"quoted\" query", k)
		if err != nil || !slices.Equal(hits, want[:n]) {
			t.Errorf("k %d: %+v, %v", k, hits, err)
		}
		if body := fmt.Sprintf(`{"queries":["a \"quoted\" query"],"return_scores":true,"topk":%d}`, k); got != body {
			t.Errorf("sent %s, want %s", got, body)
		}
	}
	if _, err := c.Search(t.Context(), "w1", "a", 1); err == nil || !strings.Contains(err.Error(), "local indexes") {
		t.Errorf("a world: %v", err)
	}
	if _, err := c.Search(t.Context(), "", "a", 0); err == nil {
		t.Error("k 0: no error")
	}
}

// Nothing found is a result.
func TestNothingFound(t *testing.T) {
	c, _, _ := scripted(t, func(w http.ResponseWriter, _ string, _ int) { io.WriteString(w, `{"result": [[]]}`) })
	if hits, err := c.Search(t.Context(), "", "a", 3); err != nil || len(hits) != 0 || c.Stats() != (Stats{Searches: 1}) {
		t.Errorf("%v, %v, %+v", hits, err, c.Stats())
	}
}

// What may pass is tried again, what the server refuses is not; each end has its error.
func TestFaults(t *testing.T) {
	page := "<html><body>502 Bad Gateway</body></html>"
	for name, c := range map[string]struct {
		answer   func(w http.ResponseWriter, n int)
		attempts int64
		err      error
		says     string
	}{
		"500":          {func(w http.ResponseWriter, _ int) { http.Error(w, "no memory", 500) }, 3, ErrUnavailable, "after 3 attempts: status 500: no memory"},
		"429":          {func(w http.ResponseWriter, _ int) { w.WriteHeader(429) }, 3, ErrUnavailable, "status 429: nothing"},
		"400":          {func(w http.ResponseWriter, _ int) { http.Error(w, `{"error": "topk"}`, 400) }, 1, ErrRefused, "status 400"},
		"404":          {func(w http.ResponseWriter, _ int) { w.WriteHeader(404) }, 1, ErrRefused, "status 404"},
		"a page":       {func(w http.ResponseWriter, _ int) { io.WriteString(w, page) }, 3, ErrUnavailable, "not the contract's"},
		"cut JSON":     {func(w http.ResponseWriter, _ int) { io.WriteString(w, two[:60]) }, 3, ErrUnavailable, "unexpected end"},
		"nothing":      {func(http.ResponseWriter, int) {}, 3, ErrUnavailable, "not the contract's"},
		"other fields": {func(w http.ResponseWriter, _ int) { io.WriteString(w, `{"results": []}`) }, 3, ErrUnavailable, "no result of one query"},
		"no score":     {func(w http.ResponseWriter, _ int) { io.WriteString(w, `{"result": [[{"document": {}}]]}`) }, 3, ErrUnavailable, "hit 0 has no document or no score"},
		"no contents": {func(w http.ResponseWriter, _ int) {
			io.WriteString(w, `{"result": [[{"document": {"title": "a"}, "score": 1}]]}`)
		}, 3, ErrUnavailable, "neither contents nor text"},
		"cut off": {func(w http.ResponseWriter, _ int) {
			w.Header().Set("Content-Length", "999")
			io.WriteString(w, two)
		}, 3, ErrUnavailable, "breaks off"},
		"slow": {func(_ http.ResponseWriter, _ int) { time.Sleep(400 * time.Millisecond) }, 3, ErrUnavailable, "deadline exceeded"},
		"twice, then well": {func(w http.ResponseWriter, n int) {
			if n < 2 {
				w.WriteHeader(503)
				return
			}
			io.WriteString(w, two)
		}, 3, nil, ""},
	} {
		client, asked, pauses := scripted(t, func(w http.ResponseWriter, _ string, n int) { c.answer(w, n) })
		hits, err := client.Search(t.Context(), "", "a", 3)
		switch {
		case c.err == nil && (err != nil || len(hits) != 2):
			t.Errorf("%s: %v, %v", name, hits, err)
		case c.err != nil && (!errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || hits != nil):
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if asked.Load() != c.attempts || len(*pauses) != int(c.attempts)-1 {
			t.Errorf("%s: %d attempts, pauses %v", name, asked.Load(), *pauses)
		}
		for i, p := range *pauses {
			if most := time.Second << i; p < most/2 || p > most {
				t.Errorf("%s: pause %d is %s", name, i, p)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for after, want := range map[string][2]time.Duration{"5": {5 * time.Second, 5 * time.Second}, "9999": {8 * time.Second, 8 * time.Second},
		"-1": {0, time.Second}, "Wed, 21 Oct 2026 07:28:00 GMT": {0, time.Second}} {
		c, _, pauses := scripted(t, func(w http.ResponseWriter, _ string, n int) {
			if n == 0 {
				w.Header().Set("Retry-After", after)
				w.WriteHeader(503)
				return
			}
			io.WriteString(w, two)
		})
		if _, err := c.Search(t.Context(), "", "a", 1); err != nil || len(*pauses) != 1 || (*pauses)[0] < want[0] || (*pauses)[0] > want[1] {
			t.Errorf("Retry-After %s: pauses %v, %v", after, *pauses, err)
		}
	}
}

// A cancelled search ends with the context's error and is no failure of the server.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, _, _ := scripted(t, func(w http.ResponseWriter, _ string, _ int) { cancel(); w.WriteHeader(500) })
	if _, err := c.Search(ctx, "", "a", 1); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) || c.Stats().Failures != 0 {
		t.Errorf("%v, %+v", err, c.Stats())
	}
}

// A server that ends and begins again at its address is searched as before; many
// goroutines search it meanwhile, and none of their searches is lost.
func TestServerComesBack(t *testing.T) {
	up := func(address string) (*http.Server, string) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, two) })}
		go h.Serve(l)
		return h, l.Addr().String()
	}
	first, address := up("127.0.0.1:0")
	o := Options{TimeoutSeconds: 5, AttemptsMax: 1000, BackoffSeconds: 0.01, BackoffMaxSeconds: 0.01}
	searchR1, err := New("http://"+address, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := searchR1.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if hits, err := searchR1.Search(t.Context(), "", "a", 2); err != nil || len(hits) != 2 {
				t.Errorf("%v, %v", hits, err)
			}
		})
	}
	for searchR1.Stats().Retries < 16 {
		time.Sleep(time.Millisecond)
	}
	second, _ := up(address)
	defer second.Close()
	wg.Wait()
	if n := searchR1.Stats(); n.Searches != 9 || n.Failures != 0 {
		t.Errorf("%+v", n)
	}
}

// A server that is not there is unavailable.
func TestNobodyListens(t *testing.T) {
	c, err := New("http://127.0.0.1:1/search/", Options{TimeoutSeconds: 1, AttemptsMax: 2, BackoffSeconds: 0.01, BackoffMaxSeconds: 0.01})
	if err != nil || c.url != "http://127.0.0.1:1/search/retrieve" {
		t.Fatal(c, err)
	}
	if _, err := c.Search(t.Context(), "", "a", 1); !errors.Is(err, ErrUnavailable) || c.Stats() != (Stats{1, 1, 1}) {
		t.Errorf("%v, %+v", err, c.Stats())
	}
}

func TestNewRefuses(t *testing.T) {
	for _, url := range []string{"", "localhost:8000", "ftp://a/b", "http://"} {
		if _, err := New(url, DefaultOptions()); err == nil {
			t.Errorf("%q: no error", url)
		}
	}
	if _, err := New("http://a", Options{}); err == nil {
		t.Error("no options: no error")
	}
	c, err := New("https://user:secret@a/retrieve", DefaultOptions())
	if err != nil || strings.Contains(c.shown, "secret") {
		t.Errorf("%v: shows %s", err, c.shown)
	}
}
