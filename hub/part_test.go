package hub

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

func leave(t *testing.T, path, url, etag string, data []byte) {
	t.Helper()
	about := `{"url":"` + url + `","etag":` + strconv.Quote(etag) + `}`
	for name, text := range map[string][]byte{path + ".part": data, path + ".part.json": []byte(about)} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

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
		"weak version, hash":        {part: data[:40_000], etag: `W/"v1"`, hash: true, sent: 60_000},
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

func TestWrongAndCut(t *testing.T) {
	s := newFileServer(t, content(1, 10_000))
	s.wrong = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") == "" {
			s.serve(w, r, 5000)
		}
		return false
	}
	_, err := quick(t).Download(t.Context(), File{URL: s.URL, SHA256: sha256Hex(nil)}, filepath.Join(t.TempDir(), "file"))
	if !errors.Is(err, ErrMismatch) || len(s.requests) != 4 {
		t.Errorf("%v after %d requests", err, len(s.requests))
	}
}

func wrongOffset(n int, _ http.ResponseWriter, r *http.Request) bool {
	if n == 0 {
		r.Header.Set("Range", "bytes=40001-")
	}
	return false
}

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

func TestPartMovedAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	d := quick(t)
	waits, second := make(chan bool), make(chan *part)
	first, err := d.openPart(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		other := Downloader{Note: func(string) { waits <- true }}
		p, err := other.openPart(t.Context(), path)
		if err != nil {
			t.Error(err)
		}
		second <- p
	}()
	<-waits
	if err := os.Rename(partPath(path), path); err != nil {
		t.Fatal(err)
	}
	first.close()
	p := <-second
	if p == nil || !sameFile(p.file, partPath(path)) || sameFile(p.file, path) {
		t.Error("the file itself is written to")
	}
	p.close()
}

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
