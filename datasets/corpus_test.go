package datasets

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readLines decodes each line of a gzipped JSONL file.
func readLines[T any](t *testing.T, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return out
}

func TestDocumentWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.jsonl.gz")
	w, err := NewDocumentWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	docs := []Document{{ID: "a", Title: "A & <B>", Text: "é"}, {ID: "b", World: "w1", Title: "b", Text: "."}, {ID: "a", Title: "other"}}
	for _, d := range docs {
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is in its place before it is complete")
	}
	sum, err := w.Close()
	if err != nil || sum.Records != 2 {
		t.Fatal(sum, err)
	}
	got := readLines[Document](t, path)
	if len(got) != 2 || got[0] != docs[0] || got[1] != docs[1] {
		t.Errorf("read back %+v", got)
	}
}

// The passages of the real files are those that an independent script drew from
// the same files into a corpus of Search-R1's layout.
func TestSharedPassages(t *testing.T) {
	type contents struct {
		Contents string `json:"contents"`
	}
	key := func(title, text string) string { return PassageID(cleanTitle(title), cleanText(text)) }
	known := map[string]bool{}
	for _, c := range readLines[contents](t, sharedFile(t, "corpus/hotpot_nq_union_searchr1.jsonl.gz")) {
		title, text, _ := strings.Cut(c.Contents, "\n")
		known[key(strings.TrimSuffix(strings.TrimPrefix(title, `"`), `"`), text)] = true
	}
	for file, want := range map[string]int{
		"hotpotqa/hotpot_dev_official500.jsonl":   4947,
		"hotpotqa/hotpot_hf_format_test500.jsonl": 4948,
		"hotpotqa/hotpotqa_train_sample.json":     994,
		"nq/nq-open-oracle.jsonl.gz":              2588,
	} {
		_, records := readAll(t, sharedFile(t, file), Options{})
		missing, all := 0, map[string]bool{}
		for _, r := range records {
			for _, p := range r.Passages {
				if all[p.ID] = true; !known[key(p.Title, p.Text)] {
					if missing++; missing < 4 {
						t.Logf("%s: not in the corpus: %q %q", file, p.Title, p.Text)
					}
				}
			}
		}
		if missing > 0 || len(all) != want {
			t.Errorf("%s: %d of %d passages are not in the corpus, want %d", file, missing, len(all), want)
		}
	}
}
