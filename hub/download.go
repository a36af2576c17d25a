package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// File is what to download and what is known of it.
type File struct {
	URL     string
	Token   string // sent as a bearer token, to the URL's own host alone
	Size    int64  // bytes; 0: not known
	SHA256  string // hex; "": not known
	GitSHA1 string // id of the git blob, hex; "": not known. It needs Size.
}

// Got is what a download led to.
type Got struct {
	Size    int64
	SHA256  string // hex, of the content; "" where a file was there and nothing was known to check it by
	Already bool   // the file was there
}

// Downloader fetches files. The zero value is ready.
type Downloader struct {
	HTTP       *http.Client  // nil: one with time limits for connecting; its CheckRedirect is replaced
	Attempts   int           // tries in a row that bring nothing new; 0: 6
	FirstPause time.Duration // after the first of them, then twice that and so on; 0: 1 s
	Stall      time.Duration // a connection that brings nothing for so long is given up; 0: 60 s
	// Progress is called, often, with the bytes that are there and those of the
	// whole file, -1 if not known.
	Progress func(done, total int64)
	// Note is called with a line for the user: a fault that is tried again, a
	// wait for another process.
	Note func(line string)
}

// Download brings a file to path. The content grows in path.part, which a later
// call goes on with, also after a crash or a cancelled context, as far as the
// server says that the file is still the same; when it is whole and as expected
// it moves to path. A file already at path is kept if it has the expected size
// and hash. Of two processes one downloads and the other waits.
func (d *Downloader) Download(ctx context.Context, f File, path string) (Got, error) {
	got, err := d.download(ctx, f, path)
	if err != nil {
		return Got{}, fmt.Errorf("download %s: %w", filepath.Base(path), err)
	}
	return got, nil
}

func (d *Downloader) download(ctx context.Context, f File, path string) (Got, error) {
	if f.GitSHA1 != "" && f.Size == 0 && f.SHA256 == "" {
		f.GitSHA1 = "" // it covers the size, so it cannot be computed without
	}
	if got, ok := existing(f, path); ok {
		return got, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return Got{}, err
	}
	p, err := d.openPart(ctx, path)
	if err != nil {
		return Got{}, err
	}
	defer p.close()
	if got, ok := existing(f, path); ok { // the other process that held the lock
		p.discard()
		return got, nil
	}
	if err := p.begin(f); err != nil {
		return Got{}, err
	}
	if err := d.fill(ctx, f, p); err != nil {
		if p.size == 0 {
			p.discard() // nothing to go on from
		}
		return Got{}, err
	}
	return p.finish(path)
}

// existing tells whether the file at path is what f describes.
func existing(f File, path string) (Got, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || f.Size > 0 && info.Size() != f.Size {
		return Got{}, false
	}
	if f.SHA256 == "" && f.GitSHA1 == "" {
		return Got{Size: info.Size(), Already: true}, true
	}
	file, err := os.Open(path)
	if err != nil {
		return Got{}, false
	}
	defer file.Close()
	s := newSums(f)
	if _, err := io.Copy(s, file); err != nil || s.check(f) != nil {
		return Got{}, false
	}
	return Got{Size: info.Size(), SHA256: s.sha256(), Already: true}, true
}

// fill downloads until the part is whole and right.
func (d *Downloader) fill(ctx context.Context, f File, p *part) error {
	t := tries{d: d}
	reached := p.size // the most bytes so far: only what is new is progress
	second := false   // the content was wrong once
	for {
		resumed := p.size > 0
		err := d.try(ctx, f, p)
		if err == nil {
			err = p.sums.check(f)
			if err == nil {
				return nil
			}
			if e := p.restart(); e != nil {
				return errors.Join(err, e)
			}
			if !resumed || second {
				return err
			}
			second = true
			// The earlier part may have been of another file, or damaged.
			d.note("%v; downloading it again from the start", err)
			reached = 0
			continue
		}
		if p.size > reached {
			reached, t.faults = p.size, 0
		}
		if err := t.again(ctx, err); err != nil {
			return err
		}
	}
}

// try makes one request for what is missing and writes what comes.
func (d *Downloader) try(outer context.Context, f File, p *part) error {
	if f.Size > 0 && p.size > f.Size {
		if err := p.restart(); err != nil {
			return err
		}
	}
	if f.Size > 0 && p.size == f.Size {
		return nil
	}
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	watch := time.AfterFunc(2*d.stall(), cancel) // connecting and headers have limits of their own
	defer watch.Stop()
	resp, err := d.send(ctx, http.MethodGet, f.URL, f.Token, p.rangeHeader())
	if err != nil {
		return d.stalled(outer, p.unsatisfiable(err))
	}
	defer resp.Body.Close()
	total, err := p.accept(resp, f)
	if err != nil {
		return err
	}
	if err := p.room(total); err != nil {
		return err
	}
	return d.stalled(outer, d.copy(ctx, resp.Body, p, total, watch))
}

// copy writes the body to the part. total is the size of the whole file, -1 if
// not known. A body that ends early is transient; a disk that is full is not.
func (d *Downloader) copy(ctx context.Context, body io.Reader, p *part, total int64, watch *time.Timer) error {
	buffer := make([]byte, 256<<10)
	d.progress(p.size, total)
	for {
		watch.Reset(d.stall())
		n, err := body.Read(buffer)
		if total >= 0 && p.size+int64(n) > total {
			return fmt.Errorf("%w: more than %d bytes come", ErrMismatch, total)
		}
		if _, werr := p.Write(buffer[:n]); werr != nil {
			return werr
		}
		d.progress(p.size, total)
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			return netError(ctx, p.place, err)
		case total >= 0 && p.size < total:
			return &transient{error: fmt.Errorf("%s: the connection ended after %d of %d bytes", p.place, p.size, total), connected: true}
		}
		return nil
	}
}

func (d *Downloader) progress(done, total int64) {
	if d.Progress != nil {
		d.Progress(done, total)
	}
}

// SafeName tells whether a file name from a server may be joined to a folder:
// relative, with forward slashes, and nowhere upwards.
func SafeName(name string) bool {
	return filepath.IsLocal(name) && !strings.ContainsAny(name, "\\\x00:") && filepath.ToSlash(filepath.Clean(name)) == name && name != "."
}
