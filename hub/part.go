package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// part is a file on its way: its content so far, the running hashes over it, and
// what identifies the version that it is of.
type part struct {
	file    *os.File // locked for this process
	about   string   // path of the description
	place   string   // the URL as errors show it
	size    int64
	sums    *sums
	version version
}

// version is what a server says of the content, kept beside the part so that a
// later process can ask for the rest of the same.
type version struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// partPath is where the content grows.
func partPath(path string) string { return path + ".part" }

// openPart opens or makes the part of path and waits for its lock.
func (d *Downloader) openPart(ctx context.Context, path string) (*part, error) {
	name, told := partPath(path), false
	for {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && sameFile(file, name) {
			return &part{file: file, about: name + ".json"}, nil
		}
		file.Close() // held by another process, or moved away by it meanwhile
		if err == nil {
			continue
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		if !told {
			d.note("another process is downloading %s; waiting", path)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// sameFile tells whether name is still the open file.
func sameFile(file *os.File, name string) bool {
	a, err := file.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(name)
	return err == nil && os.SameFile(a, b)
}

// begin takes what an earlier download left, where it may be of the same file.
func (p *part) begin(f File) error {
	address, err := url.Parse(f.URL)
	if err != nil {
		return err
	}
	p.place = bare(address)
	p.sums = newSums(f)
	data, err := os.ReadFile(p.about)
	known := err == nil && json.Unmarshal(data, &p.version) == nil && p.version.URL == p.place
	if !known {
		p.version = version{}
	}
	// Without a version the hash alone can tell that old and new belong together.
	if p.version.validator() == "" && f.SHA256 == "" && f.GitSHA1 == "" {
		return p.restart()
	}
	if p.size, err = io.Copy(p.sums, p.file); err != nil {
		return fmt.Errorf("read %s: %w", p.file.Name(), err)
	}
	return nil
}

// validator is what If-Range takes: a strong ETag or a date.
func (v version) validator() string {
	if v.ETag != "" && !strings.HasPrefix(v.ETag, "W/") {
		return v.ETag
	}
	return v.LastModified
}

// restart empties the part.
func (p *part) restart() error {
	p.size, p.version = 0, version{}
	p.sums.reset()
	err := p.file.Truncate(0)
	if _, serr := p.file.Seek(0, io.SeekStart); err == nil {
		err = serr
	}
	if rerr := os.Remove(p.about); err == nil && !errors.Is(rerr, os.ErrNotExist) {
		err = rerr
	}
	return err
}

// rangeHeader asks for what is missing, if the file is still the same.
func (p *part) rangeHeader() http.Header {
	h := http.Header{}
	if p.size > 0 {
		h.Set("Range", fmt.Sprintf("bytes=%d-", p.size))
		if v := p.version.validator(); v != "" {
			h.Set("If-Range", v)
		}
	}
	return h
}

// unsatisfiable: a range that the server has nothing for starts the part again.
func (p *part) unsatisfiable(err error) error {
	var status *StatusError
	if p.size == 0 || !errors.As(err, &status) || status.Code != http.StatusRequestedRangeNotSatisfiable {
		return err
	}
	if err := p.restart(); err != nil {
		return err
	}
	return &transient{error: err, connected: true}
}

// accept readies the part for an answer's body and gives the whole file's size,
// -1 if the server does not say. An answer that does not go on where the part
// ends is for the whole file.
func (p *part) accept(resp *http.Response, f File) (int64, error) {
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" && !strings.HasSuffix(p.place, ".gz") {
		return 0, fmt.Errorf("%s: the server sends it compressed (%s), which was not asked for", p.place, encoding)
	}
	total := resp.ContentLength
	now := version{p.place, resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")}
	switch resp.StatusCode {
	case http.StatusOK:
		if p.size > 0 { // the range was passed over, or the file is another
			if err := p.restart(); err != nil {
				return 0, err
			}
		}
	case http.StatusPartialContent:
		start, whole, ok := contentRange(resp.Header.Get("Content-Range"))
		before, after := strings.TrimPrefix(p.version.ETag, "W/"), strings.TrimPrefix(now.ETag, "W/")
		changed := before != "" && after != "" && before != after
		if !ok || start != p.size || changed {
			if err := p.restart(); err != nil {
				return 0, err
			}
			return 0, &transient{error: fmt.Errorf("%s: the server went on with another range or version", p.place), connected: true}
		}
		total = whole
	default:
		return 0, fmt.Errorf("%s: status %d, want the file", p.place, resp.StatusCode)
	}
	if f.Size > 0 && total >= 0 && total != f.Size {
		return 0, fmt.Errorf("%s: %w: it has %d bytes, not %d", p.place, ErrMismatch, total, f.Size)
	}
	if total < 0 && f.Size > 0 {
		total = f.Size
	}
	if p.size == 0 {
		return total, p.describe(now)
	}
	return total, nil
}

// describe keeps the version beside the part.
func (p *part) describe(v version) error {
	p.version = v
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(p.about, append(data, '\n'), 0o644)
}

// contentRange reads "bytes 5-9/10"; whole is -1 for "*".
func contentRange(header string) (start, whole int64, ok bool) {
	text, ok := strings.CutPrefix(header, "bytes ")
	span, size, ok2 := strings.Cut(text, "/")
	first, _, ok3 := strings.Cut(span, "-")
	start, err := strconv.ParseInt(first, 10, 64)
	if !ok || !ok2 || !ok3 || err != nil {
		return 0, 0, false
	}
	if size == "*" {
		return start, -1, true
	}
	whole, err = strconv.ParseInt(size, 10, 64)
	return start, whole, err == nil
}

// room reports a disk that cannot hold what is still to come.
func (p *part) room(total int64) error {
	var fs syscall.Statfs_t
	if total < 0 || syscall.Fstatfs(int(p.file.Fd()), &fs) != nil || fs.Blocks == 0 {
		return nil
	}
	if free := int64(fs.Bavail) * int64(fs.Bsize); total-p.size > free {
		return fmt.Errorf("%s: %w: %d bytes are to come, %d are free", p.file.Name(), syscall.ENOSPC, total-p.size, free)
	}
	return nil
}

// Write appends to the content.
func (p *part) Write(data []byte) (int, error) {
	n, err := p.file.Write(data)
	p.size += int64(n)
	_, _ = p.sums.Write(data[:n]) // a hash takes everything
	if err != nil {
		return n, fmt.Errorf("write: %w", err)
	}
	return n, nil
}

// finish moves the whole content to path.
func (p *part) finish(path string) (Got, error) {
	if err := p.file.Sync(); err != nil {
		return Got{}, err
	}
	if err := os.Rename(p.file.Name(), path); err != nil {
		return Got{}, err
	}
	if err := os.Remove(p.about); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Got{}, err
	}
	return Got{Size: p.size, SHA256: p.sums.sha256()}, nil
}

// discard removes a part that turned out not to be needed.
func (p *part) discard() {
	_ = os.Remove(p.file.Name()) // what is left over does no harm
	_ = os.Remove(p.about)
}

// close lets go of the lock; the content stays for another time.
func (p *part) close() { p.file.Close() }
