package datasets

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// DocumentWriter writes a corpus as JSONL, a [Document] a line, gzipped when the
// name ends in ".gz". Equal input gives equal bytes.
type DocumentWriter struct {
	out  *atomicFile
	zip  *gzip.Writer
	buf  *bufio.Writer
	json *json.Encoder
	seen map[string]bool
	n    int
}

// NewDocumentWriter starts a corpus. It is in its place only after Close.
func NewDocumentWriter(path string) (*DocumentWriter, error) {
	out, err := createAtomic(path)
	if err != nil {
		return nil, err
	}
	w := &DocumentWriter{out: out, seen: map[string]bool{}}
	var sink io.Writer = out
	if strings.HasSuffix(path, ".gz") {
		w.zip = gzip.NewWriter(out)
		sink = w.zip
	}
	w.buf = bufio.NewWriterSize(sink, 64<<10)
	w.json = json.NewEncoder(w.buf)
	w.json.SetEscapeHTML(false)
	return w, nil
}

// Write adds a document. One with an id that was written before is left out.
func (w *DocumentWriter) Write(d Document) error {
	if w.seen[d.ID] {
		return nil
	}
	w.seen[d.ID] = true
	if err := w.json.Encode(d); err != nil {
		return fmt.Errorf("%s: document %s: %w", w.out.path, d.ID, err)
	}
	w.n++
	return nil
}

// Close completes the corpus and says what was written.
func (w *DocumentWriter) Close() (FileSum, error) {
	err := w.buf.Flush()
	if w.zip != nil && err == nil {
		err = w.zip.Close()
	}
	if err != nil {
		w.out.abort()
		return FileSum{}, fmt.Errorf("%s: %w", w.out.path, err)
	}
	return w.out.commit(w.n)
}

// Abort removes the unfinished corpus. It must not follow Close.
func (w *DocumentWriter) Abort() { w.out.abort() }
