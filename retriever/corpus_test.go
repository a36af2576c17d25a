package retriever

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// readAll reads a corpus to its end, or to its first error.
func readAll(t testing.TB, o CorpusOptions, paths ...string) ([]Document, *Corpus, error) {
	t.Helper()
	c, err := OpenCorpus(paths, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var docs []Document
	for {
		d, err := c.Next()
		if errors.Is(err, io.EOF) {
			return docs, c, nil
		}
		if err != nil {
			return docs, c, err
		}
		docs = append(docs, d)
	}
}

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

func TestCorpusFormats(t *testing.T) {
	contents := `{"id": "7", "contents": "\"Alan Turing\"\nborn 1912\nin London"}` + "\n" +
		`{"id": 8, "contents": "Unquoted\ntext"}` + "\n\n" +
		`{"id": "9", "contents": "\"\"\"Heroes\"\" (song)\"\nby Bowie"}`
	cases := []struct {
		name, content string
		format        Format
		want          []Document
	}{
		{"contents", contents, FormatContents, []Document{
			{ID: "7", Title: "Alan Turing", Text: "born 1912\nin London"},
			{ID: "8", Title: "Unquoted", Text: "text"},
			{ID: "9", Title: `"Heroes" (song)`, Text: "by Bowie"}}},
		{"documents", `{"id":"w1/a","world":"w1","title":"a","text":"."}` + "\r\n", FormatDocuments,
			[]Document{{ID: "w1/a", World: "w1", Title: "a", Text: "."}}},
		{"title-text", "\ufeff" + `{"title":"a","text":"x"}` + "\n\n" + `{"title":"","text":"y"}` + "\n", FormatTitleText,
			[]Document{{ID: "0", Title: "a", Text: "x"}, {ID: "2", Text: "y"}}},
		{"dpr", "id\ttext\ttitle\n1\tplain \"word\"\tA\n2\t\"two \"\"q\"\"\nlines\"\t\"B\tb\"\n", FormatDPR,
			[]Document{{ID: "1", Title: "A", Text: `plain "word"`}, {ID: "2", Title: "B\tb", Text: "two \"q\"\nlines"}}},
		{"dpr columns", "title\tid\ttext\nA\t1\tx\n", FormatDPR, []Document{{ID: "1", Title: "A", Text: "x"}}},
	}
	for _, c := range cases {
		for _, zipped := range []bool{false, true} {
			name, content := "corpus", c.content
			if zipped {
				name, content = "corpus.gz", gzipped(c.content)
			}
			path := writeFile(t, name, content)
			docs, corpus, err := readAll(t, CorpusOptions{}, path)
			if err != nil || !reflect.DeepEqual(docs, c.want) {
				t.Errorf("%s, gzip %v: got %q, %v", c.name, zipped, docs, err)
				continue
			}
			sum := sha256.Sum256([]byte(content))
			want := Input{Name: name, Format: c.format, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Documents: len(c.want)}
			if got := corpus.Inputs(); len(got) != 1 || got[0] != want {
				t.Errorf("%s: inputs %+v, want %+v", c.name, got, want)
			}
			if read, total := corpus.Progress(); read != total || total != int64(len(content)) {
				t.Errorf("%s: progress %d of %d, want %d", c.name, read, total, len(content))
			}
		}
	}
}

// A named format overrides the guess: a DPR file without its header line.
func TestCorpusNamedFormat(t *testing.T) {
	path := writeFile(t, "p.tsv", "5\tx\tA\n")
	if _, _, err := readAll(t, CorpusOptions{}, path); err == nil {
		t.Error("a TSV without header was recognised")
	}
	docs, _, err := readAll(t, CorpusOptions{Format: FormatDPR}, path)
	if want := []Document{{ID: "5", Title: "A", Text: "x"}}; err != nil || !reflect.DeepEqual(docs, want) {
		t.Errorf("got %v, %v", docs, err)
	}
}

func TestUnquoteTitle(t *testing.T) {
	for in, want := range map[string]string{
		`"A"`: "A", `A`: "A", `"`: `"`, `""`: "", `"A" and "B"`: `"A" and "B"`,
		`"Heroes" (song)`: `"Heroes" (song)`, `"""Heroes"" (song)"`: `"Heroes" (song)`,
		`""Heroes" (song)"`: `"Heroes" (song)`, `"The ""x"" y"`: `The "x" y`, `"""A"""`: `"A"`,
	} {
		if got := unquoteTitle(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// Each bad record is named with its line; with SkipBad the others are read.
func TestCorpusBadRecords(t *testing.T) {
	good := `{"id":"a","title":"t","text":"x"}`
	cases := []struct{ name, bad, says string }{
		{"not JSON", `{"id":"b",`, "unexpected end"},
		{"no id", `{"title":"t","text":"x"}`, "no field id"},
		{"empty id", `{"id":"","title":"t","text":"x"}`, "empty"},
		{"null id", `{"id":null,"title":"t","text":"x"}`, "no field id"},
		{"list as id", `{"id":[1],"title":"t","text":"x"}`, "neither text nor a number"},
		{"no text", `{"id":"b","title":"t"}`, "no field text"},
		{"number as text", `{"id":"b","title":"t","text":5}`, "text"},
		{"not UTF-8", "{\"id\":\"b\",\"title\":\"\xff\",\"text\":\"x\"}", "not UTF-8"},
		{"two objects", good + good, "after top-level value"},
		{"long", `{"id":"b","title":"t","text":"` + strings.Repeat("x", maxRecordBytes) + `"}`, "longer than"},
	}
	for _, c := range cases {
		path := writeFile(t, "c.jsonl", good+"\n\n"+c.bad+"\n"+strings.ReplaceAll(good, `"a"`, `"c"`)+"\n")
		_, _, err := readAll(t, CorpusOptions{}, path)
		var bad *RecordError
		if !errors.As(err, &bad) || bad.Line != 3 || bad.Path != path || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v", c.name, err)
		}
		docs, corpus, err := readAll(t, CorpusOptions{SkipBad: true}, path)
		n, first := corpus.Skipped()
		if err != nil || len(docs) != 2 || docs[1].ID != "c" || n != 1 || !errors.As(first, &bad) {
			t.Errorf("%s, skipping: %d documents, %d skipped (%v), error %v", c.name, len(docs), n, first, err)
			continue
		}
		if in := corpus.Inputs()[0]; in.Documents != 2 || in.Skipped != 1 {
			t.Errorf("%s: inputs %+v", c.name, in)
		}
	}
}

// A quote that is never closed spoils its own line alone.
func TestDPRBadRecords(t *testing.T) {
	path := writeFile(t, "c.tsv", "id\ttext\ttitle\n1\t\"open\tA\n2\tx\tB\n3\tx\n\tx\tD\n4\t\"x\"y\tD\n5\tz\tE\n")
	_, _, err := readAll(t, CorpusOptions{}, path)
	var bad *RecordError
	if !errors.As(err, &bad) || bad.Line != 2 {
		t.Errorf("error %v", err)
	}
	docs, corpus, err := readAll(t, CorpusOptions{SkipBad: true}, path)
	n, _ := corpus.Skipped()
	if err != nil || len(docs) != 2 || docs[0].ID != "2" || docs[1].ID != "5" || n != 4 {
		t.Errorf("documents %v, %d skipped, error %v", docs, n, err)
	}
}

// A file cut short is an error, also where bad records are skipped.
func TestCorpusTruncatedGzip(t *testing.T) {
	var content strings.Builder
	for i := range 5000 {
		content.WriteString(`{"id":"` + strings.Repeat("x", i%50) + `","title":"t","text":"x"}` + "\n")
	}
	whole := gzipped(content.String())
	for _, cut := range []int{5, 20, len(whole) / 2, len(whole) - 1} {
		path := writeFile(t, "c.jsonl.gz", whole[:cut])
		c, err := OpenCorpus([]string{path}, CorpusOptions{SkipBad: true})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = c.Next()
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), path) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenCorpusMissing(t *testing.T) {
	if _, err := OpenCorpus(nil, CorpusOptions{}); err == nil {
		t.Error("no files: no error")
	}
	_, err := OpenCorpus([]string{filepath.Join(t.TempDir(), "absent")}, CorpusOptions{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// The samples of public corpora hold what their README says.
func TestCorpusSamples(t *testing.T) {
	for name, want := range map[string]struct {
		format    Format
		documents int
	}{
		"corpus/flashrag_wiki18_sample_1000.jsonl":     {FormatContents, 1000},
		"corpus/hotpot_nq_union_searchr1.jsonl.gz":     {FormatContents, 17407},
		"corpus/nq_gold_psgs.tsv":                      {FormatDPR, 2586},
		"corpus/hotpot_val500_pooled_title_text.jsonl": {FormatTitleText, 4937},
		"searchr1/example_corpus.jsonl":                {FormatContents, 10},
	} {
		docs, corpus, err := readAll(t, CorpusOptions{}, dataFile(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if in := corpus.Inputs()[0]; in.Format != want.format || len(docs) != want.documents {
			t.Errorf("%s: format %s, %d documents, want %+v", name, in.Format, len(docs), want)
		}
		for _, d := range docs {
			if d.Title == "" || d.Text == "" {
				t.Errorf("%s: %q has title %q, text %q", name, d.ID, d.Title, d.Text)
			}
		}
	}
}

// FuzzSplitTSV reads back what encoding/csv writes.
func FuzzSplitTSV(f *testing.F) {
	f.Add("1", `a "b"`, "t\tt")
	f.Add("", "\"", "\n")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var buf bytes.Buffer
		w := csv.NewWriter(&buf)
		w.Comma = '\t'
		want := []string{a, b, c}
		if err := w.Write(want); err != nil {
			t.Skip(err)
		}
		w.Flush()
		record := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
		got, err := splitTSV(record)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, %v", record, got, err)
		}
	})
}

// FuzzCorpus gives any bytes to every format: nothing panics, and each document
// read has an ID.
func FuzzCorpus(f *testing.F) {
	f.Add([]byte(`{"id":"1","contents":"\"T\"\nx"}`))
	f.Add([]byte("id\ttext\ttitle\n1\t\"a\nb\"\tT\n"))
	f.Add([]byte(gzipped(`{"title":"a","text":"b"}`)))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "c")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, format := range append([]Format{FormatAuto}, Formats...) {
			docs, _, err := readAll(t, CorpusOptions{Format: format, SkipBad: true}, path)
			if err == nil {
				_, _, err = readAll(t, CorpusOptions{Format: format}, path)
			}
			for _, d := range docs {
				if d.ID == "" {
					t.Errorf("%s: document without ID, %v", format, err)
				}
			}
		}
	})
}
