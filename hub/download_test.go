package hub

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// isFile fails unless path holds data and nothing is left beside it.
func isFile(t *testing.T, path string, data []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%s: %v, %d bytes, want %d of the right content", path, err, len(got), len(data))
	}
	for _, left := range []string{path + ".part", path + ".part.json"} {
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is left over", left)
		}
	}
}

// TestCutAnywhere: whatever the points at which connections end, the content is
// right and no byte comes twice.
func TestCutAnywhere(t *testing.T) {
	data := content(1, 200_000)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newFileServer(t, data)
		left := 1 + r.IntN(8)
		s.wrong = func(_ int, w http.ResponseWriter, req *http.Request) bool {
			if left--; left < 0 {
				return false
			}
			s.serve(w, req, r.IntN(60_000))
			return true
		}
		path := filepath.Join(t.TempDir(), "deep", "file")
		f := File{URL: s.URL + "/x", SHA256: sha256Hex(data)}
		if seed%2 == 0 {
			f.Size = int64(len(data))
		}
		got, err := quick(t).Download(t.Context(), f, path)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got != (Got{int64(len(data)), sha256Hex(data), false}) {
			t.Errorf("seed %d: %+v", seed, got)
		}
		isFile(t, path, data)
		if sent := s.total(); sent != len(data) {
			t.Errorf("seed %d: %d bytes were sent of %d", seed, sent, len(data))
		}
		for _, req := range s.requests[1:] {
			if req.Header.Get("Range") != "" && req.Header.Get("If-Range") != `"v1"` {
				t.Errorf("seed %d: a range without its condition: %v", seed, req.Header)
			}
		}
	}
}

// TestCancelled: what had come by then is the start of the next download.
func TestCancelled(t *testing.T) {
	data := content(1, 500_000)
	s := newFileServer(t, data)
	s.wrong = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 0 {
			return false
		}
		w.Header().Set("ETag", s.etag)
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:123_456])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	d := quick(t)
	d.Progress = func(done, total int64) {
		if done == 123_456 {
			cancel()
		}
		if total != int64(len(data)) {
			t.Errorf("total is %d", total)
		}
	}
	path := filepath.Join(t.TempDir(), "file")
	if _, err := d.Download(ctx, File{URL: s.URL}, path); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if part, err := os.ReadFile(path + ".part"); err != nil || !bytes.Equal(part, data[:123_456]) {
		t.Fatalf("the part: %v, %d bytes", err, len(part))
	}
	var first int64 = -1
	d = quick(t)
	d.Progress = func(done, _ int64) {
		if first < 0 {
			first = done
		}
	}
	if _, err := d.Download(t.Context(), File{URL: s.URL}, path); err != nil {
		t.Fatal(err)
	}
	isFile(t, path, data)
	if got := s.requests[1].Header.Get("Range"); got != "bytes=123456-" || first != 123_456 {
		t.Errorf("range %q, progress from %d", got, first)
	}
}

// TestMismatch: content that is not as promised never gets its name.
func TestMismatch(t *testing.T) {
	data := content(1, 10_000)
	good := File{Size: int64(len(data)), SHA256: sha256Hex(data), GitSHA1: gitBlob(data)}
	for name, change := range map[string]func(*File){
		"sha256": func(f *File) { f.SHA256 = sha256Hex([]byte("x")) }, "git": func(f *File) { f.GitSHA1 = gitBlob([]byte("x")) },
		"smaller": func(f *File) { f.Size-- }, "larger": func(f *File) { f.Size++ },
	} {
		s := newFileServer(t, data)
		f := good
		f.URL = s.URL
		change(&f)
		path := filepath.Join(t.TempDir(), "file")
		_, err := quick(t).Download(t.Context(), f, path)
		if !errors.Is(err, ErrMismatch) || len(s.requests) != 1 {
			t.Errorf("%s: %v after %d requests", name, err, len(s.requests))
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the file is there", name)
		}
	}
	s := newFileServer(t, data)
	good.URL = s.URL
	path := filepath.Join(t.TempDir(), "file")
	if _, err := quick(t).Download(t.Context(), good, path); err != nil {
		t.Error(err)
	}
	isFile(t, path, data)
}

// TestExisting: a right file stays, a wrong one is replaced.
func TestExisting(t *testing.T) {
	data := content(1, 10_000)
	s := newFileServer(t, data)
	path := filepath.Join(t.TempDir(), "file")
	f := File{URL: s.URL, SHA256: sha256Hex(data)}
	for name, c := range map[string]struct {
		there    []byte
		requests int
	}{"right": {data, 0}, "wrong": {content(2, 10_000), 1}, "short": {data[:10], 1}} {
		s.requests = nil
		if err := os.WriteFile(path, c.there, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := quick(t).Download(t.Context(), f, path)
		if err != nil || got.Already != (c.requests == 0) || got.SHA256 != f.SHA256 || len(s.requests) != c.requests {
			t.Errorf("%s: %+v, %v, %d requests", name, got, err, len(s.requests))
		}
		isFile(t, path, data)
	}
}

// leave makes a part of an earlier download from the server.
func leave(t *testing.T, path, url, etag string, data []byte) {
	t.Helper()
	about := `{"url":"` + url + `","etag":` + strconv.Quote(etag) + `}`
	for name, text := range map[string][]byte{path + ".part": data, path + ".part.json": []byte(about)} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeftOver: a part is gone on with only where that gives the right content.
func TestLeftOver(t *testing.T) {
	data, other := content(1, 100_000), content(2, 100_000)
	ignoreRange := func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("Range")
		return false
	}
	for name, c := range map[string]struct {
		part []byte
		etag string
		hash bool
		url  string
		do   func(n int, w http.ResponseWriter, r *http.Request) bool
		sent int // of data
	}{
		"same version":              {part: data[:40_000], etag: `"v1"`, sent: 60_000},
		"another version":           {part: other[:40_000], etag: `"v0"`, sent: 100_000},
		"range is passed over":      {part: data[:40_000], etag: `"v1"`, do: ignoreRange, sent: 100_000},
		"no version, hash":          {part: data[:40_000], hash: true, sent: 60_000},
		"no version, no hash":       {part: data[:40_000], sent: 100_000},
		"weak version":              {part: data[:40_000], etag: `W/"v1"`, sent: 100_000},
		"of another URL":            {part: other[:40_000], etag: `"v1"`, url: "http://else/", sent: 100_000},
		"damaged":                   {part: other[:40_000], etag: `"v1"`, hash: true, sent: 160_000},
		"longer than the file":      {part: append(bytes.Clone(data), 1), etag: `"v1"`, hash: true, sent: 100_000},
		"whole already":             {part: data, etag: `"v1"`, hash: true, sent: 0},
		"longer, size not known":    {part: append(bytes.Clone(data), 1), etag: `"v1"`, sent: 100_000},
		"condition is passed over":  {part: other[:40_000], etag: `"v0"`, do: func(_ int, _ http.ResponseWriter, r *http.Request) bool { r.Header.Del("If-Range"); return false }, sent: 160_000},
		"goes on at another offset": {part: data[:40_000], etag: `"v1"`, do: wrongOffset, sent: 199_999},
	} {
		s := newFileServer(t, data)
		s.wrong = c.do
		path := filepath.Join(t.TempDir(), "file")
		if c.url == "" {
			c.url = s.URL + "/x"
		}
		leave(t, path, c.url, c.etag, c.part)
		f := File{URL: s.URL + "/x?Signature=1"}
		if c.hash {
			f.SHA256, f.Size = sha256Hex(data), int64(len(data))
		}
		if _, err := quick(t).Download(t.Context(), f, path); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		isFile(t, path, data)
		if name != "condition is passed over" && name != "goes on at another offset" && s.total() != c.sent {
			t.Errorf("%s: %d bytes were sent, want %d", name, s.total(), c.sent)
		}
	}
}

// wrongOffset serves the first range from one byte further on.
func wrongOffset(n int, _ http.ResponseWriter, r *http.Request) bool {
	if n == 0 {
		r.Header.Set("Range", "bytes=40001-")
	}
	return false
}

// TestChangesBetweenParts: the file is replaced while it is downloaded.
func TestChangesBetweenParts(t *testing.T) {
	old, now := content(1, 100_000), content(2, 90_000)
	s := newFileServer(t, old)
	s.wrong = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n == 0 {
			defer func() { s.data, s.etag = now, `"v2"` }()
			s.serve(w, r, 50_000)
		}
		return false
	}
	path := filepath.Join(t.TempDir(), "file")
	if _, err := quick(t).Download(t.Context(), File{URL: s.URL}, path); err != nil {
		t.Fatal(err)
	}
	isFile(t, path, now)
}

// TestAnswersThatPass: the server is busy for a while.
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

// TestAnswersThatStay: one is asked for once, the other as often as is allowed.
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

// TestCutForEver: a server that never gets further is given up, also when it
// sends the start again and again.
func TestCutForEver(t *testing.T) {
	s := newFileServer(t, content(1, 10_000))
	s.wrong = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("Range")
		s.serve(w, r, 5000)
		return true
	}
	if _, err := quick(t).Download(t.Context(), File{URL: s.URL}, filepath.Join(t.TempDir(), "file")); err == nil || len(s.requests) != defaultAttempts {
		t.Errorf("%v after %d requests", err, len(s.requests))
	}
}

// TestRetryAfter: the server's own time is waited for, not ours.
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

// TestStall: a connection that brings nothing more is given up for another.
func TestStall(t *testing.T) {
	data := content(1, 100_000)
	s := newFileServer(t, data)
	s.wrong = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			return false
		}
		if n == 1 { // no header either
			<-r.Context().Done()
			return true
		}
		w.Header().Set("ETag", s.etag)
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:50_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	d := quick(t)
	d.Stall = 50 * time.Millisecond
	path := filepath.Join(t.TempDir(), "file")
	if _, err := d.Download(t.Context(), File{URL: s.URL}, path); err != nil {
		t.Fatal(err)
	}
	isFile(t, path, data)
	if s.requests[2].Header.Get("Range") != "bytes=50000-" {
		t.Errorf("asked for %q", s.requests[2].Header.Get("Range"))
	}
}

// TestRedirect: the token stays with the host that it is for.
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
	}
}

// TestFullDisk: it is no use to try again, and the user hears why.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	defer full.Close()
	s := newFileServer(t, content(1, 1000))
	f := File{URL: s.URL}
	p := &part{file: full, about: filepath.Join(t.TempDir(), "about"), sums: newSums(f)}
	if err := quick(t).fill(t.Context(), f, p); !errors.Is(err, syscall.ENOSPC) || len(s.requests) != 1 {
		t.Errorf("%v after %d requests", err, len(s.requests))
	}
	huge := newFileServer(t, nil)
	huge.wrong = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", strconv.Itoa(1<<60))
		w.WriteHeader(http.StatusOK)
		return true
	}
	_, err = quick(t).Download(t.Context(), File{URL: huge.URL}, filepath.Join(t.TempDir(), "file"))
	if !errors.Is(err, syscall.ENOSPC) || len(huge.requests) != 1 {
		t.Errorf("%v after %d requests", err, len(huge.requests))
	}
}

// TestTwoAtOnce: of several downloads of one file one does the work.
func TestTwoAtOnce(t *testing.T) {
	data := content(1, 300_000)
	s := newFileServer(t, data)
	path := filepath.Join(t.TempDir(), "file")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := quick(t).Download(t.Context(), File{URL: s.URL, SHA256: sha256Hex(data)}, path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	isFile(t, path, data)
	if sent := s.total(); sent != len(data) {
		t.Errorf("%d bytes were sent of %d", sent, len(data))
	}
}

func TestUnreachable(t *testing.T) {
	s := newFileServer(t, nil)
	s.Close()
	dir := t.TempDir()
	_, err := quick(t).Download(t.Context(), File{URL: s.URL}, filepath.Join(dir, "file"))
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
