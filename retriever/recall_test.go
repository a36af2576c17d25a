package retriever

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sharedData = "../../shared/data"

// dataFile returns the path of a sample of public data, or skips.
func dataFile(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(sharedData, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no sample data: %v", err)
	}
	return path
}

// goldQuestion is a Natural Questions question with its gold passage.
type goldQuestion struct {
	Question string `json:"question"`
	Ctxs     []struct {
		Title  string `json:"title"`
		Text   string `json:"text"`
		IsGold bool   `json:"isgold"`
	} `json:"ctxs"`
}

func (q goldQuestion) gold(h Hit) bool {
	for _, c := range q.Ctxs {
		if c.IsGold && c.Title == h.Title && strings.TrimSpace(c.Text) == strings.TrimSpace(h.Text) {
			return true
		}
	}
	return false
}

func goldQuestions(t testing.TB) []goldQuestion {
	t.Helper()
	f, err := os.Open(dataFile(t, "nq/nq-open-oracle.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []goldQuestion
	for dec := json.NewDecoder(z); ; {
		var q goldQuestion
		if err := dec.Decode(&q); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
}

// recall returns the share of questions whose gold passage is among the first 1,
// 3 and 10 hits, and the mean reciprocal rank (0 beyond 10).
func recall(t testing.TB, x *Index, questions []goldQuestion) (at map[int]float64, mrr float64) {
	t.Helper()
	at = map[int]float64{}
	for _, q := range questions {
		hits, err := x.Search(t.Context(), "", q.Question, 10)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range hits {
			if !q.gold(h) {
				continue
			}
			for _, k := range []int{1, 3, 10} {
				if i < k {
					at[k] += 1 / float64(len(questions))
				}
			}
			mrr += 1 / float64(i+1) / float64(len(questions))
			break
		}
	}
	return at, mrr
}

// BenchmarkRealCorpus builds an index of 17,407 real passages and asks it 2,655
// real questions whose gold passages are among them.
func BenchmarkRealCorpus(b *testing.B) {
	corpus := dataFile(b, "corpus/hotpot_nq_union_searchr1.jsonl.gz")
	questions := goldQuestions(b)
	for _, a := range Analysers {
		b.Run(string(a), func(b *testing.B) {
			o := DefaultBuildOptions()
			o.Analyser = a
			started, cpu := time.Now(), cpuSeconds(b)
			x := openIndex(b, buildFrom(b, o, corpus))
			n := float64(x.Manifest().Documents)
			b.Logf("%s: build %.0f documents/s, %.0f documents/CPU-s", a, n/time.Since(started).Seconds(), n/(cpuSeconds(b)-cpu))
			for _, boost := range []float64{0, 0.25, 0.5, 1, 2} {
				setTitleBoost(x, boost)
				cpu := cpuSeconds(b)
				at, mrr := recall(b, x, questions)
				b.Logf("%s, title boost %.2f: recall@1 %.3f @3 %.3f @10 %.3f MRR %.3f; %.0f queries/CPU-s",
					a, boost, at[1], at[3], at[10], mrr, float64(len(questions))/(cpuSeconds(b)-cpu))
			}
			setTitleBoost(x, o.TitleBoost)
			for _, k := range []int{3, 10} {
				b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
					cpu, n := cpuSeconds(b), 0
					for ; b.Loop(); n++ {
						if _, err := x.Search(b.Context(), "", questions[n%len(questions)].Question, k); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(1e6*(cpuSeconds(b)-cpu)/float64(n), "cpu-µs/search")
				})
			}
		})
	}
}
