package retriever

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// maxRecordBytes bounds one record, so that a file of another kind, or a quote
// that is never closed, cannot fill the memory.
const maxRecordBytes = 4 << 20

var errLongRecord = fmt.Errorf("record longer than %d bytes", maxRecordBytes)

// lineReader gives the lines of a file, gunzipped and out of a tar archive where
// needed, and counts and hashes the bytes of the file as they lie on disk.
type lineReader struct {
	file    *os.File
	size    int64
	read    int64
	hash    hash.Hash
	buf     *bufio.Reader
	line    int      // number of the last line given, from 1
	pending [][]byte // lines pushed back
}

func openLines(path string) (*lineReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &lineReader{file: f, size: info.Size(), hash: sha256.New()}
	l.buf = bufio.NewReaderSize(rawReader{l}, 1<<16)
	if magic, _ := l.buf.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(l.buf)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
		}
		l.buf = bufio.NewReaderSize(z, 1<<16)
	}
	if isTar(l.buf) {
		member, err := newOnlyFile(l.buf)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
		}
		l.buf = bufio.NewReaderSize(member, 1<<16)
	}
	if bom, _ := l.buf.Peek(3); string(bom) == "\xef\xbb\xbf" {
		_, _ = l.buf.Discard(3)
	}
	return l, nil
}

// rawReader counts and hashes what is read from the disk.
type rawReader struct{ l *lineReader }

func (r rawReader) Read(p []byte) (int, error) {
	n, err := r.l.file.Read(p)
	r.l.read += int64(n)
	r.l.hash.Write(p[:n])
	return n, err
}

// next returns the next line without its line end. At the end it is io.EOF;
// errLongRecord stands for a line that was passed over.
func (l *lineReader) next() ([]byte, error) {
	if n := len(l.pending); n > 0 {
		line := l.pending[n-1]
		l.pending = l.pending[:n-1]
		l.line++
		return line, nil
	}
	var line []byte
	long := false
	for {
		part, err := l.buf.ReadSlice('\n')
		long = long || len(line)+len(part) > maxRecordBytes
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !long) {
			return nil, err
		}
		break
	}
	l.line++
	if long {
		return nil, errLongRecord
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'}), nil
}

// push gives the last line back.
func (l *lineReader) push(line []byte) {
	l.pending = append(l.pending, line)
	l.line--
}

// sum returns the SHA-256 of the file, once next has come to its end (gzip's
// reader looks for a further member, so it reads to the end as well).
func (l *lineReader) sum() string { return hex.EncodeToString(l.hash.Sum(nil)) }

func (l *lineReader) close() error { return l.file.Close() }
