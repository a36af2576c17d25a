package hub

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnswersThatPass(t *testing.T) {
	data := content(1, 1000)
	for _, status := range []int{408, 425, 429, 500, 502, 503, 504} {
		s := newFileServer(t, data)
		s.wrong = func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n < 3 {
				w.WriteHeader(status)
			}
			return n < 3
		}
		path := filepath.Join(t.TempDir(), "file")
		if _, err := quick(t).Download(t.Context(), File{URL: s.URL}, path); err != nil || len(s.requests) != 4 {
			t.Errorf("%d: %v after %d requests", status, err, len(s.requests))
		}
	}
}

func TestAnswersThatStay(t *testing.T) {
	for status, want := range map[int]struct {
		requests int
		is       error
	}{401: {1, ErrAccess}, 403: {1, ErrAccess}, 404: {1, ErrNotFound}, 410: {1, ErrNotFound}, 400: {1, nil}, 501: {1, nil}, 503: {4, nil}, 429: {4, nil}} {
		s := newFileServer(t, nil)
		s.wrong = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "because", status)
			return true
		}
		d := quick(t)
		d.Attempts = 4
		_, err := d.Download(t.Context(), File{URL: s.URL + "/dir?Signature=secret"}, filepath.Join(t.TempDir(), "file"))
		var e *StatusError
		if !errors.As(err, &e) || e.Code != status || e.Message != "because" || want.is != nil && !errors.Is(err, want.is) || len(s.requests) != want.requests {
			t.Errorf("%d: %v after %d requests", status, err, len(s.requests))
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the signature: %v", err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	data := content(1, 1000)
	s := newFileServer(t, data)
	s.wrong = func(n int, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "0")
		if n < 2 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return n < 2
	}
	d := quick(t)
	d.FirstPause = time.Hour // would be taken if the header were passed over
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := d.Download(ctx, File{URL: s.URL}, filepath.Join(t.TempDir(), "file")); err != nil {
		t.Error(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, " 0 ": 0, "Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:00:00 GMT": 0, "": -1, "soon": -1, "-3": -1,
	} {
		got, ok := retryAfter(header, now)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v, want %v", header, got, ok, want)
		}
	}
	if _, err := d.pause(1, "86400"); err == nil {
		t.Error("a day is waited for")
	}
	d.FirstPause = time.Second
	for n, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 9: longestPause, 60: longestPause} {
		if got, err := d.pause(n, ""); err != nil || got < most/2 || got > most {
			t.Errorf("pause %d: %v %v", n, got, err)
		}
	}
}

func TestRedirect(t *testing.T) {
	data := content(1, 1000)
	cdn := newFileServer(t, data)
	front := newFileServer(t, nil)
	front.wrong = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, cdn.URL+"/content?Signature=secret", http.StatusFound)
		} else {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
		}
		return true
	}
	path := filepath.Join(t.TempDir(), "file")
	if _, err := quick(t).Download(t.Context(), File{URL: front.URL + "/file", Token: "hf_secret"}, path); err != nil {
		t.Fatal(err)
	}
	isFile(t, path, data)
	for _, r := range front.requests {
		if r.Header.Get("Authorization") != "Bearer hf_secret" {
			t.Errorf("%s: the token is missing", r.URL)
		}
	}
	if got := cdn.requests[0].Header.Get("Authorization"); got != "" {
		t.Errorf("the other host got %q", got)
	}
	loop := newFileServer(t, nil)
	loop.wrong = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "/again", http.StatusFound)
		return true
	}
	if _, err := quick(t).Download(t.Context(), File{URL: loop.URL}, path+"2"); err == nil || len(loop.requests) != mostRedirects {
		t.Errorf("%v after %d requests", err, len(loop.requests))
	}
}

func TestTokenInTheClear(t *testing.T) {
	for address, want := range map[string]bool{
		"https://huggingface.co/x": true, "http://huggingface.co/x": false, "http://localhost:8/": true, "http://127.0.0.1:8/": true,
		"http://[::1]:8/": true, "http://10.0.0.1/": false, "http://localhost.evil.org/": false,
	} {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil || mayCarryToken(req.URL) != want {
			t.Errorf("%s: %v, want %v", address, !want, want)
		}
		var got string
		d := Downloader{Attempts: 1, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Authorization")
			return nil, errors.New("no network in tests")
		})}}
		if _, err := d.Download(t.Context(), File{URL: address, Token: "t"}, filepath.Join(t.TempDir(), "file")); err == nil || (got == "Bearer t") != want {
			t.Errorf("%s: got %q, %v", address, got, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestUnreachable(t *testing.T) {
	s := newFileServer(t, nil)
	s.Close()
	dir := t.TempDir()
	d, notes := quick(t), 0
	d.Note = func(string) { notes++ }
	_, err := d.Download(t.Context(), File{URL: s.URL}, filepath.Join(dir, "file"))
	if notes != 1 {
		t.Errorf("%d tries were announced, want one: it is more likely away than slow", notes)
	}
	if left, _ := os.ReadDir(dir); !errors.Is(err, ErrUnreachable) || len(left) != 0 {
		t.Errorf("got %v, left %v", err, left)
	}
}

func TestSafeName(t *testing.T) {
	for name, want := range map[string]bool{
		"config.json": true, "a/b.json": true, "a..b": true, "..a": true, ".gitattributes": true,
		"": false, ".": false, "..": false, "../x": false, "a/../../x": false, "a/../b": false, "/etc/passwd": false, "a//b": false,
		`..\x`: false, `C:\x`: false, "a\x00b": false, "a/": false, "./a": false, "c:x": false,
	} {
		if SafeName(name) != want {
			t.Errorf("SafeName(%q) = %v", name, !want)
		}
	}
}
