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
		for _, req := range s.requests {
			if req.Header.Get("Accept-Encoding") != "identity" {
				t.Errorf("seed %d: sizes could be of something compressed: %v", seed, req.Header)
			}
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
		if f.Size != good.Size && (err == nil || !strings.Contains(err.Error(), "it has 10000 bytes")) {
			t.Errorf("%s: found only after the download: %v", name, err)
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

// TestLeftOver: a part is gone on with only where that gives the right content.

// TestWrongAndCut: a content that is wrong is downloaded twice at most, however

// often the connection ends.

// wrongOffset serves the first range from one byte further on.

// TestChangesBetweenParts: the file is replaced while it is downloaded.

// TestAnswersThatPass: the server is busy for a while.

// TestAnswersThatStay: one is asked for once, the other as often as is allowed.

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

// TestWatchIsReset: the time without a byte counts, not that of the download.

func TestWatchIsReset(t *testing.T) {
	fired := make(chan bool, 1)
	watch := time.AfterFunc(time.Hour, func() { fired <- true })
	defer watch.Stop()
	file, err := os.Create(filepath.Join(t.TempDir(), "part"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d := Downloader{Stall: time.Nanosecond}
	if err := d.copy(t.Context(), strings.NewReader("x"), &part{file: file, sums: newSums(File{})}, 1, watch); err != nil {
		t.Fatal(err)
	}
	select {
	case <-fired:
	case <-time.After(time.Minute):
		t.Error("still set to the time that it began with")
	}
}

// TestPartMovedAway: whoever waited for a part that became the file starts one of

// its own and does not write into the file.

// TestFullDisk: it is no use to try again, and the user hears why.

// TestTwoAtOnce: of several downloads of one file one does the work.
