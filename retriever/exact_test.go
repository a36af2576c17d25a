package retriever

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// Scores by hand: Lucene's formula and Robertson's, over the contents and over titles.
func TestScoringIsBM25(t *testing.T) {
	docs := []Document{{ID: "1", Text: "a a a b"}, {ID: "2", Text: "a c d e f g"}, {ID: "3", Title: "b", Text: "c"}}
	value := func(tf, length, average, k1, b float64) float64 { return tf / (tf + k1*(1-b+b*length/average)) }
	log := math.Log
	for name, c := range map[string]struct {
		scoring Scoring
		boost   float64
		want    map[string]float64
	}{
		"lucene": {Scoring{ScoringLucene, 0.9, 0.4, 0}, 0, map[string]float64{
			"1": log(1+1.5/2.5) * (value(3, 4, 4, 0.9, 0.4) + value(1, 4, 4, 0.9, 0.4)),
			"2": log(1+1.5/2.5) * value(1, 6, 4, 0.9, 0.4),
			"3": log(1+1.5/2.5) * value(1, 2, 4, 0.9, 0.4),
		}},
		"titles": {Scoring{ScoringLucene, 1.2, 0.75, 0}, 0.5, map[string]float64{
			"1": log(1+1.5/2.5) * (value(3, 4, 4, 1.2, 0.75) + value(1, 4, 4, 1.2, 0.75)),
			"2": log(1+1.5/2.5) * value(1, 6, 4, 1.2, 0.75),
			"3": log(1+1.5/2.5)*value(1, 2, 4, 1.2, 0.75) + 0.5*log(1+2.5/1.5)*value(1, 1, 1.0/3, 1.2, 0.75),
		}},
		// a, b and c are in two of three documents, d, e, f, g in one
		"robertson": {Scoring{ScoringRobertson, 1.5, 0.75, 0.25}, 0, map[string]float64{
			"1": 0.25 * (3*log(1.5/2.5) + 4*log(2.5/1.5)) / 7 * 2.5 * (value(3, 4, 4, 1.5, 0.75) + value(1, 4, 4, 1.5, 0.75)),
			"2": 0.25 * (3*log(1.5/2.5) + 4*log(2.5/1.5)) / 7 * 2.5 * value(1, 6, 4, 1.5, 0.75),
			"3": 0.25 * (3*log(1.5/2.5) + 4*log(2.5/1.5)) / 7 * 2.5 * value(1, 2, 4, 1.5, 0.75),
		}},
	} {
		o := DefaultBuildOptions()
		o.Scoring, o.TitleBoost = c.scoring, c.boost
		x := openIndex(t, buildFrom(t, o, writeDocuments(t, docs)))
		hits, err := x.Search(t.Context(), "", "a b", 3)
		if err != nil || len(hits) != 3 {
			t.Fatalf("%s: %v, %v", name, ids(hits), err)
		}
		for _, h := range hits {
			if math.Abs(h.Score-c.want[h.ID]) > 1e-14 {
				t.Errorf("%s, %s: score %.15f, want %.15f", name, h.ID, h.Score, c.want[h.ID])
			}
		}
	}
}

// An index in many shards ranks as one in a single shard.
func TestShards(t *testing.T) {
	path := writeDocuments(t, append(miniWorlds(3, 60), tied()...))
	one := openIndex(t, buildFrom(t, DefaultBuildOptions(), path))
	o := DefaultBuildOptions()
	o.DocumentsPerShard = 17
	many := openIndex(t, buildFrom(t, o, path))
	if n := len(many.Manifest().Shards); n != 13 || !reflect.DeepEqual(many.Manifest().Statistics, one.Manifest().Statistics) {
		t.Errorf("%d shards, statistics %+v and %+v", n, many.Manifest().Statistics, one.Manifest().Statistics)
	}
	for _, query := range append(miniNames(60), "x", "the of spouse", "y t") {
		for _, world := range []string{"", "w1"} {
			for _, k := range []int{1, 5, 300} {
				want, err1 := one.Search(t.Context(), world, query, k)
				got, err2 := many.Search(t.Context(), world, query, k)
				if err := errors.Join(err1, err2); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%q in %q, k %d: %v, want %v (%v)", query, world, k, got, want, err)
				}
			}
		}
	}
}

func TestFoldASCII(t *testing.T) {
	for fold, want := range map[bool]int{true: 1, false: 0} {
		o := DefaultBuildOptions()
		o.FoldASCII = fold
		x := openIndex(t, buildFrom(t, o, writeDocuments(t, []Document{{ID: "1", Text: "Beyoncé in Zürich"}})))
		if hits, err := x.Search(t.Context(), "", "beyonce zurich", 1); err != nil || len(hits) != want {
			t.Errorf("folding %v: %v, %v", fold, ids(hits), err)
		}
	}
}

// English terms are those of Lucene's EnglishAnalyzer: its stop words and no others.
func TestEnglishStopWords(t *testing.T) {
	o := DefaultBuildOptions()
	o.Analyser = AnalyserEnglish
	x := openIndex(t, buildFrom(t, o, writeDocuments(t, smallCorpus)))
	terms, _, err := x.ranker.(*exactRanker).stores[0].terms("Who was the Queen's first of all, and how would she be in 1837?")
	if want := []string{"who", "queen", "first", "all", "how", "would", "she", "1837"}; err != nil || !slices.Equal(terms, want) {
		t.Errorf("%q, %v, want %q", terms, err, want)
	}
}

// A build that stopped goes on after its last whole shard, and ends as one that
// never stopped; other settings, or a changed corpus, cannot be resumed.
func TestBuildResumed(t *testing.T) {
	docs := miniWorlds(2, 60)
	path := writeDocuments(t, docs)
	dir := filepath.Join(t.TempDir(), "index")
	o := DefaultBuildOptions()
	o.DocumentsPerShard, o.DocumentsPerReport = 25, 1
	stop := errors.New("stop")
	var from []int
	stopAt := func(at int) {
		o.Progress = func(documents int, _, _ int64) {
			from = append(from, documents)
			if documents == at {
				panic(stop) // bleve's builder is left as it is
			}
		}
	}
	build := func(path string) error {
		_, err := Build(t.Context(), dir, mustCorpus(t, CorpusOptions{}, path), o)
		return err
	}
	stopAt(60)
	if err := build(path); err == nil {
		t.Fatal("no error")
	}
	if got := names(t, filepath.Join(buildingPath(dir), "index")); !slices.Contains(got, "shard-0001") || slices.Contains(got, "shard-0002") {
		t.Errorf("kept %v", got)
	}
	o.Progress = nil
	if err := build(path); !errors.Is(err, ErrHalfBuilt) {
		t.Errorf("begun anew: %v", err)
	}
	o.Resume = true
	o.Analyser = AnalyserEnglish
	if err := build(path); !errors.Is(err, ErrHalfBuilt) {
		t.Errorf("another analyser: %v", err)
	}
	o.Analyser = AnalyserPlain
	if err := build(writeDocuments(t, docs)); !errors.Is(err, ErrHalfBuilt) {
		t.Errorf("another corpus: %v", err)
	}
	from = nil
	stopAt(-1)
	if err := build(path); err != nil {
		t.Fatal(err)
	}
	if from[0] != 51 {
		t.Errorf("resumed at document %d", from[0])
	}
	whole := openIndex(t, buildFrom(t, BuildOptions{TitleBoost: o.TitleBoost, DocumentsPerShard: 25}, path)).Manifest()
	got := openIndex(t, dir).Manifest()
	if !reflect.DeepEqual(got.Statistics, whole.Statistics) || !reflect.DeepEqual(got.Shards, whole.Shards) || !reflect.DeepEqual(got.Inputs, whole.Inputs) {
		t.Errorf("resumed %+v, whole %+v", got, whole)
	}
}

// ranking is documents in order, with their scores.
type ranking []struct {
	ID    string
	Score float64
}

func (r *ranking) UnmarshalJSON(data []byte) error {
	var rows [][2]any
	if err := json.Unmarshal(data, &rows); err != nil {
		return err
	}
	*r = make(ranking, len(rows))
	for i, row := range rows {
		(*r)[i].ID, (*r)[i].Score = row[0].(string), row[1].(float64)
	}
	return nil
}

// sameRanking compares hits with a ranking to 1e-5. Where the other has scores
// nearer to each other than that it may have them in another order.
func sameRanking(hits []Hit, want ranking) error {
	if len(hits) != len(want) {
		return fmt.Errorf("%d hits, want %d", len(hits), len(want))
	}
	for i, h := range hits {
		if math.Abs(h.Score-want[i].Score) > 1e-5 {
			return fmt.Errorf("rank %d: %s scores %.7f, want %s %.7f", i+1, h.ID, h.Score, want[i].ID, want[i].Score)
		}
		if h.ID == want[i].ID {
			continue
		}
		at := slices.IndexFunc(want, func(w struct {
			ID    string
			Score float64
		}) bool {
			return w.ID == h.ID
		})
		last := want[len(want)-1].Score
		if at < 0 && h.Score > last+1e-5 || at >= 0 && math.Abs(want[at].Score-h.Score) > 1e-5 {
			return fmt.Errorf("rank %d: %s, want %s", i+1, h.ID, want[i].ID)
		}
	}
	return nil
}

// bm25s and rank-bm25 rank 17,407 real passages alike (scripts/peers/bm25_vectors.py).
func TestPeersRankings(t *testing.T) {
	corpus := dataFile(t, "corpus/hotpot_nq_union_searchr1.jsonl.gz")
	questions := goldQuestions(t)
	f, err := os.Open("testdata/bm25.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var peers map[string]struct {
		K1, B, Epsilon float64
		Rankings       map[string]ranking
	}
	if err := json.NewDecoder(z).Decode(&peers); err != nil {
		t.Fatal(err)
	}
	for peer, scoring := range map[string]string{"lucene": ScoringLucene, "okapi": ScoringRobertson} {
		p := peers[peer]
		o := BuildOptions{Scoring: Scoring{scoring, p.K1, p.B, p.Epsilon}, Analyser: AnalyserWhitespace, DocumentsPerShard: 7000}
		x := openIndex(t, buildFrom(t, o, corpus))
		if len(p.Rankings) != 295 {
			t.Errorf("%s: %d rankings", peer, len(p.Rankings))
		}
		for place, want := range p.Rankings {
			i, err := strconv.Atoi(place)
			if err != nil {
				t.Fatal(err)
			}
			hits, err := x.Search(t.Context(), "", questions[i].Question, len(want))
			if err == nil {
				err = sameRanking(hits, want)
			}
			if err != nil {
				t.Errorf("%s, question %s: %v", peer, place, err)
			}
		}
	}
}

// The published rankings of 50 documents for each of 500 questions, by rank-bm25 over
// texts without their titles. 151 questions are told by their IDs; the file of all
// 7,405 has none, and in it each ranking has its question too.
func TestPublishedRankings(t *testing.T) {
	documents, published := pooledDocuments(t), publishedRankings(t)
	o := BuildOptions{Scoring: Scoring{ScoringRobertson, 1.5, 0.75, 0.25}, Analyser: AnalyserWhitespace}
	x := openIndex(t, buildFrom(t, o, writeDocuments(t, documents)))
	rank := func(question string) []Hit {
		hits, err := x.Search(t.Context(), "", question, 50)
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	compared := 0
	questions := hotpotQuestions(t)
	for id, want := range published {
		if questions[id] == "" {
			continue
		}
		compared++
		if err := sameRanking(rank(questions[id]), want); err != nil {
			t.Errorf("question %s: %v", id, err)
		}
	}
	byFirst := map[string][]string{}
	for id, r := range published {
		byFirst[r[0].ID] = append(byFirst[r[0].ID], id)
	}
	found := map[string]bool{}
	for _, question := range devQuestions(t) {
		hits := rank(question)
		for _, id := range byFirst[hits[0].ID] {
			if sameRanking(hits, published[id]) == nil {
				found[id] = true
			}
		}
	}
	if len(published) != 500 || compared != 151 || len(found) != 500 {
		t.Errorf("%d rankings, %d compared by ID, %d found", len(published), compared, len(found))
	}
}

func devQuestions(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(dataFile(t, "hotpotqa/hotpot_dev_v1_simplified.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ Question string }
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	questions := make([]string, len(all))
	for i, q := range all {
		questions[i] = q.Question
	}
	return questions
}

func pooledDocuments(t *testing.T) []Document {
	t.Helper()
	var all []Document
	eachLine(t, "corpus/hotpot_val500_pooled_title_text.jsonl", func(line json.RawMessage) error {
		var d Document
		err := json.Unmarshal(line, &d)
		d.ID, d.Title = d.Title, ""
		all = append(all, d)
		return err
	})
	return all
}

func hotpotQuestions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"hotpot_dev_official500.jsonl", "hotpot_hf_format_test500.jsonl"} {
		eachLine(t, filepath.Join("hotpotqa", name), func(line json.RawMessage) error {
			var q struct {
				Official string `json:"_id"`
				ID       string
				Question string
			}
			err := json.Unmarshal(line, &q)
			all[q.Official+q.ID] = q.Question
			return err
		})
	}
	return all
}

func eachLine(t *testing.T, name string, f func(json.RawMessage) error) {
	t.Helper()
	file, err := os.Open(dataFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for dec := json.NewDecoder(file); ; {
		var line json.RawMessage
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if err := f(line); err != nil {
			t.Fatal(err)
		}
	}
}

func publishedRankings(t *testing.T) map[string]ranking {
	t.Helper()
	f, err := os.Open(dataFile(t, "corpus/bm25_reference_rankings.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]ranking{}
	for _, row := range rows[1:] { // run, method, setting, question, rank, title, score
		score, err := strconv.ParseFloat(row[6], 64)
		if err != nil {
			t.Fatal(err)
		}
		all[row[3]] = append(all[row[3]], struct {
			ID    string
			Score float64
		}{row[5], score})
	}
	return all
}
