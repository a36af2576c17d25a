package datasets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sharedFile returns a file of the sample data that lies beside the repository,
// and skips the test where it does not.
func sharedFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "data", name)
	info, err := os.Stat(path)
	if err != nil {
		t.Skipf("no sample data: %v", err)
	}
	if underRace && info.Size() > 100<<10 {
		t.Skipf("%s is large, and reading it starts no goroutine: read without the race detector", name)
	}
	return path
}

func readAll(t *testing.T, path string, o Options) (*Reader, []Record) {
	t.Helper()
	r, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []Record
	for rec, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	return r, out
}

// Counts as the sample data's README has them; values as the files have them.
func TestSharedFiles(t *testing.T) {
	for _, c := range []struct {
		file     string
		format   Format
		records  int
		at       int // a record to look at
		id       string
		source   string
		question string
		golds    []string
		passages int
		evidence []string
	}{
		{"nq/NQ-open.dev.jsonl", NQOpen, 3610, 9, "", "nq", "what is the maximum data rate for the 802.11a standard select one", []string{"54 Mbit/s"}, 0, nil},
		{"nq/NQ-open.dev.jsonl", NQOpen, 3610, 1, "", "nq", "who wrote he ain't heavy he's my brother lyrics", []string{"Bobby Scott", "Bob Russell"}, 0, nil},
		{"nq/nq-open-oracle.jsonl.gz", NQOracle, 2655, 0, "", "nq", "who got the first nobel prize in physics", []string{"Wilhelm Conrad Röntgen"}, 1, []string{"List of Nobel laureates in Physics"}},
		{"nq/flashrag_quickstart_nq_test_17.jsonl", FlashRAG, 17, 2, "test_2", "flashrag", "which mode is used for short wave broadcast service", []string{"Olivia", "MFSK"}, 0, nil},
		{"hotpotqa/hotpot_dev_official500.jsonl", HotpotQA, 500, 0, "5a8c7595554299585d9e36b6", "hotpotqa", "What government position was held by the woman who portrayed Corliss Archer in the film Kiss and Tell?", []string{"Chief of Protocol"}, 10, []string{"Kiss and Tell (1945 film)", "Shirley Temple"}},
		{"hotpotqa/hotpotqa_train_sample.json", HotpotQA, 100, 0, "5a77ec115542992a6e59dff7", "hotpotqa", "If Gallu is a demon Lilu is what?", []string{"a spirit"}, 10, []string{"Alû", "Lilu (mythology)"}},
		{"hotpotqa/hotpot_hf_format_test500.jsonl", HotpotQAHF, 500, 0, "5a7d5c175542991319bc93b1", "hotpotqa", "Between Harvey Pekar and Denise Levertov who was born earlier?", []string{"Denise Levertov"}, 10, []string{"Harvey Pekar", "Denise Levertov"}},
		{"hotpotqa/hotpot_dev_v1_simplified.json", HotpotQA, 7405, 0, "", "hotpotqa", "Were Scott Derrickson and Ed Wood of the same nationality?", []string{"yes"}, 0, nil},
		{"searchr1/nq_search_test.parquet", SearchR1, 3610, 3609, "test_3609", "nq", "", nil, 0, nil},
		{"searchr1/nq_search_test.parquet", SearchR1, 3610, 0, "test_0", "nq", "who got the first nobel prize in physics?", []string{"Wilhelm Conrad Röntgen"}, 0, nil},
		{"mem1/nq_hotpotqa_test_multi_2.parquet", MEM1, 11014, 3, "nq/test/3", "nq", "the south west wind blows across nigeria between?", []string{"till September"}, 0, nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			r, got := readAll(t, sharedFile(t, c.file), Options{})
			if r.Format() != c.format || len(got) != c.records {
				t.Fatalf("%d questions in format %s, want %d in %s", len(got), r.Format(), c.records, c.format)
			}
			rec := got[c.at]
			q := rec.Question
			if c.id != "" && q.ID != c.id || q.ID == "" || q.Source != c.source ||
				c.question != "" && (q.Question != c.question || !slices.Equal(q.Golds, c.golds)) {
				t.Errorf("record %d is %+v", c.at, q)
			}
			if len(rec.Passages) != c.passages || !slices.Equal(rec.Question.Evidence, c.evidence) {
				t.Errorf("record %d: %d passages, evidence %q", c.at, len(rec.Passages), rec.Question.Evidence)
			}
			for i, rec := range got {
				q := rec.Question
				if q.Question != strings.TrimSpace(q.Question) || strings.ContainsAny(q.Question+strings.Join(q.Golds, ""), "\u00a0\n\t") {
					t.Errorf("record %d is not clean: %+v", i, q)
				}
			}
		})
	}
}
