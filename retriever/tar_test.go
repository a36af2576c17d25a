package retriever

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
)

// tarred is an archive of files, "NAME: content" each; a name that ends in / is a folder.
func tarred(t *testing.T, files ...string) string {
	t.Helper()
	var b strings.Builder
	w := tar.NewWriter(&b)
	for _, file := range files {
		name, content, _ := strings.Cut(file, ": ")
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg, Format: tar.FormatGNU}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCorpusTar: wiki-18.jsonl.gz as Search-R1 publishes it.
func TestCorpusTar(t *testing.T) {
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, `{"id": "%d", "contents": "\"T%d\"\ntext %d"}`+"\n", i, i, i)
	}
	archive := tarred(t, "data00/: ", "data00/wiki_dump.jsonl: "+lines.String())
	for name, content := range map[string]string{"wiki.jsonl.gz": gzipped(archive), "wiki.tar": archive} {
		docs, corpus, err := readAll(t, CorpusOptions{}, writeFile(t, name, content))
		if err != nil || len(docs) != 3000 {
			t.Fatalf("%s: %d documents, %v", name, len(docs), err)
		}
		if want := (Document{ID: "2999", Title: "T2999", Text: "text 2999"}); docs[2999] != want {
			t.Errorf("%s: the last is %+v", name, docs[2999])
		}
		sum := sha256.Sum256([]byte(content))
		want := Input{Name: name, Format: FormatContents, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Documents: 3000}
		if got := corpus.Inputs(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: inputs %+v, want %+v", name, got, want)
		}
		if read, total := corpus.Progress(); read != total || total != int64(len(content)) {
			t.Errorf("%s: progress %d of %d", name, read, total)
		}
	}
	for name, c := range map[string]struct{ content, word string }{
		"two files": {tarred(t, "a: "+lines.String(), "b: x"), "more than one file: a, b"},
		"none":      {tarred(t, "a/: "), "without a file"},
		"cut":       {archive[:len(archive)/2], "unexpected EOF"},
	} {
		_, _, err := readAll(t, CorpusOptions{}, writeFile(t, "x.tar", c.content))
		if err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
