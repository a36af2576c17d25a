package datasets

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadLayouts(t *testing.T) {
	_, hotpot := readAll(t, "testdata/hotpotqa.json", Options{})
	q := hotpot[0]
	if q.Question.ID != "h1" || q.Question.Question != "Which river flows through the birthplace of Ada Brook?" ||
		q.Question.Source != "hotpotqa" || q.Question.Hops != 2 || !slices.Equal(q.Question.Evidence, []string{"Ada Brook", "Oakton & Vale"}) {
		t.Errorf("first question is %+v", q)
	}
	if p := q.Passages[1]; p.Title != "Oakton & Vale" || p.Text != "Oakton & Vale is a town. It lies on the Wend." || p.ID != PassageID(p.Title, p.Text) {
		t.Errorf("second passage is %+v", p)
	}
	if g := hotpot[2].Question.Golds; !slices.Equal(g, []string{"Lin Moss"}) {
		t.Errorf("golds %q, want the no-break space to be a space", g)
	}
	r, hf := readAll(t, "testdata/hotpotqa_hf.jsonl", Options{})
	if r.Format() != HotpotQAHF || len(hf) != 2 || hf[0].Passages[0].ID != q.Passages[0].ID || hf[1].Question.ID != "f2" {
		t.Errorf("Hugging Face's layout: %s %+v", r.Format(), hf)
	}
	r, nq := readAll(t, "testdata/nq.jsonl", Options{})
	if g := nq[0].Question; r.Format() != NQOpen || g.Hops != 1 || g.ID != "nq-"+Key(g) || !slices.Equal(g.Golds, []string{"Ada Brook", "A. Brook"}) {
		t.Errorf("NQ-open: %s %+v", r.Format(), g)
	}
	r, flash := readAll(t, "testdata/flashrag.jsonl", Options{Source: "nq"})
	if g := flash[1].Question; r.Format() != FlashRAG || g.ID != "7" || g.Source != "nq" || g.Hops != 1 {
		t.Errorf("FlashRAG: %s %+v", r.Format(), g)
	}
	r, oracle := readAll(t, "testdata/nq_oracle.jsonl", Options{})
	if r.Format() != NQOracle || !slices.Equal(oracle[0].Question.Evidence, []string{"The Wend"}) || len(oracle[0].Passages) != 2 {
		t.Errorf("nq-open-oracle: %s %+v", r.Format(), oracle[0])
	}
}

func TestBadRecordIsAnError(t *testing.T) {
	r, err := Open("testdata/nq_bad.jsonl", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	_, err = r.Next()
	var bad *RecordError
	if !errors.As(err, &bad) || bad.Unit != "line" || bad.N != 2 || bad.Field != "answer" {
		t.Fatalf("error is %v", err)
	}
	if want := "testdata/nq_bad.jsonl: line 2: field answer: found string, want []string"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if _, again := r.Next(); again != err {
		t.Errorf("reading on gives %v", again)
	}
}

func TestSkipBadCountsAndReports(t *testing.T) {
	var skipped []string
	r, got := readAll(t, "testdata/nq_bad.jsonl", Options{SkipBad: true, OnSkip: func(e *RecordError) {
		skipped = append(skipped, fmt.Sprintf("%d %s", e.N, e.Field))
	}})
	want := []string{"2 answer", "3 answer", "4 question", "5 ", "6 question", "7 answer"}
	if r.Records() != 2 || r.Skipped() != 6 || !slices.Equal(skipped, want) || got[1].Number != 7 {
		t.Errorf("%d records, %d skipped: %q, want %q", r.Records(), r.Skipped(), skipped, want)
	}
}

func TestContainers(t *testing.T) {
	line := `{"question": "q%d", "answer": ["a"]}`
	one, two := fmt.Sprintf(line, 1), fmt.Sprintf(line, 2)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, one+"\n"+two+"\n")
	z.Close()
	for _, c := range []struct {
		name, content string
		records       int
		fails         string
	}{
		{"lines", one + "\n" + two + "\n", 2, ""},
		{"no end of line at the end", one + "\n" + two, 2, ""},
		{"blank lines, CRLF, byte order mark", "\xef\xbb\xbf\r\n" + one + "\r\n\r\n" + two + "\r\n", 2, ""},
		{"array", "[" + one + ",\n" + two + "]\n", 2, ""},
		{"gzip", zipped.String(), 2, ""},
		{"cut gzip", zipped.String()[:zipped.Len()-9], 2, "unexpected EOF"},
		{"cut array", "[" + one + "," + two, 2, "after record 2"},
		{"cut record", "[" + one + "," + two[:9], 1, "record 2: invalid JSON"},
		{"more after an array", "[" + one + "]\n" + two, 1, "more follows"},
		{"empty", "", 0, "no records"},
		{"empty array", "[]", 0, "no records"},
		{"other fields", `{"q": 1, "text": "x"}`, 0, "no format has the fields q, text; known are hotpotqa, "},
		{"number", "1", 0, "no JSON object"},
		{"invalid UTF-8", one + "\n" + strings.Replace(two, "a\"]", "\xff\"]", 1), 1, "line 2: invalid UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := 0, error(nil)
			r, err := NewReader(strings.NewReader(c.content), "x", Options{})
			for err == nil {
				if _, err = r.Next(); err == nil {
					n++
				}
			}
			if err == io.EOF {
				err = nil
			}
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
			if n != c.records {
				t.Errorf("%d records, want %d", n, c.records)
			}
		})
	}
}

func TestFormatNames(t *testing.T) {
	for _, f := range Formats() {
		if got, err := ParseFormat(string(f)); err != nil || got != f {
			t.Errorf("ParseFormat(%q) = %q, %v", f, got, err)
		}
	}
	_, err := Open("testdata/nq.jsonl", Options{Format: "squad"})
	if err == nil || !strings.Contains(err.Error(), `unknown format "squad"; known are hotpotqa, hotpotqa-hf, nq-open, nq-oracle, flashrag, searchr1, mem1, tasks`) {
		t.Errorf("unknown format: %v", err)
	}
	r, err := Open("testdata/nq.jsonl", Options{Format: HotpotQA})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "line 1: field answer") {
		t.Errorf("a given format is not kept to: %v", err)
	}
	if _, err := Open(filepath.Join("testdata", "nosuch"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestBrokenHotpotRecords(t *testing.T) {
	for record, field := range map[string]string{
		`{"_id": "x", "question": "q", "answer": "a", "context": [["t", ["s"], 3]]}`:                                  "context",
		`{"_id": "x", "question": "q", "answer": "a", "context": [["t", "s"]]}`:                                       "context",
		`{"_id": "x", "question": "q", "answer": "a", "supporting_facts": [["t", "s"]]}`:                              "supporting_facts",
		`{"_id": "x", "question": "q"}`:                                                                               "answer",
		`{"_id": "x", "question": 3, "answer": "a"}`:                                                                  "question",
		`{"question": "q", "answer": "a", "context": {"title": ["t"], "sentences": []}}`:                              "context",
		`{"question": "q", "answers": ["a"], "ctxs": [{"title": "t"}]}`:                                               "ctxs",
		`{"id": [], "question": "q", "golden_answers": ["a"]}`:                                                        "",
		`{"prompt": [], "reward_model": {"ground_truth": {"target": [["a"]]}}}`:                                       "prompt",
		`{"prompt": [{"content": "x"}], "reward_model": {"ground_truth": {"target": [["a"]]}}}`:                       "prompt",
		`{"prompt": [{"content": "x"}], "reward_model": {}}`:                                                          "reward_model.ground_truth.target",
		`{"task_id": "t", "question_ids": ["1"], "questions": ["q"], "golds": [], "sources": ["s"], "hops": [1]}`:     "golds",
		`{"task_id": "t", "question_ids": ["1"], "questions": ["q"], "golds": [[""]], "sources": ["s"], "hops": [1]}`: "golds",
	} {
		r, err := NewReader(strings.NewReader(record), "x", Options{})
		if err != nil {
			t.Fatal(record, err)
		}
		_, err = r.Next()
		var bad *RecordError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: error %v, want one of field %q", record, err, field)
		}
	}
}

// No content makes the reader panic, and what it gives can be asked.
func FuzzReader(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json*")
	if len(files) < 6 {
		f.Fatalf("only %d seed files", len(files))
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"prompt": [{"content": "Answer the following questions: a; b?"}], "reward_model": {"ground_truth": {"target": [["x"], ["y"]]}}}`))
	f.Add([]byte(`{"question": "q", "golden_answers": ["a"], "reward_model": {"ground_truth": {"target": ["x"]}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := NewReader(bytes.NewReader(content), "x", Options{SkipBad: true})
		if err != nil {
			return
		}
		for {
			rec, err := r.Next()
			if err != nil {
				return
			}
			q := rec.Question
			if q.ID == "" || q.Question == "" || len(q.Golds) == 0 || slices.Contains(q.Golds, "") {
				t.Fatalf("unusable question %+v", q)
			}
		}
	})
}
