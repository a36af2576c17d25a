package metrics

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// lines calls each with every line of a JSONL file.
func lines[T any](t *testing.T, path string, each func(T)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%s:%d: %v", path, n+1, err)
		}
		each(v)
	}
	if n == 0 {
		t.Fatalf("%s is empty", path)
	}
}

// shared is the path of a file in the public samples, which lie outside the
// repository; without it the test is skipped.
func shared(t *testing.T, name string) string {
	t.Helper()
	path := "../../../shared/data/" + name
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no public sample: %v", err)
	}
	return path
}

// TestPythonVectors holds both scorers to what Python gives, bit for bit
// (testdata/make_vectors.py).
func TestPythonVectors(t *testing.T) {
	type vector struct {
		Answer, Gold string
		SQuADText    string `json:"squad_text"`
		MEM1Text     string `json:"mem1_text"`
		SQuAD, MEM1  Score
	}
	lines(t, "testdata/vectors.jsonl", func(v vector) {
		if got := NormalizeSQuAD(v.Answer); got != v.SQuADText {
			t.Errorf("NormalizeSQuAD(%q) = %q, want %q", v.Answer, got, v.SQuADText)
		}
		if got := NormalizeMEM1(v.Answer); got != v.MEM1Text {
			t.Errorf("NormalizeMEM1(%q) = %q, want %q", v.Answer, got, v.MEM1Text)
		}
		answers, golds := []string{v.Answer}, [][]string{{v.Gold}}
		if got := SQuAD(answers, golds); got != v.SQuAD {
			t.Errorf("SQuAD(%q, %q) = %v, want %v", v.Answer, v.Gold, got, v.SQuAD)
		}
		if got := MEM1(answers, golds); got != v.MEM1 {
			t.Errorf("MEM1(%q, %q) = %v, want %v", v.Answer, v.Gold, got, v.MEM1)
		}
	})
}

// TestHotpotOfficial holds squad to hotpot_evaluate_v1.py: each question, and
// the means that it prints over 100 questions, four of them not answered.
func TestHotpotOfficial(t *testing.T) {
	type question struct {
		Pred *string
		Gold string
		EM   float64
		F1   float64
	}
	var sum Score
	n := 0
	lines(t, shared(t, "scores/hotpot_official/cases_100.jsonl"), func(q question) {
		var answers []string
		if q.Pred != nil {
			answers = []string{*q.Pred}
		}
		got := SQuAD(answers, [][]string{{q.Gold}})
		if got != (Score{q.EM, q.F1}) {
			t.Errorf("SQuAD(%v, %q) = %v, want %v, %v", answers, q.Gold, got, q.EM, q.F1)
		}
		sum.EM += got.EM
		sum.F1 += got.F1
		n++
	})
	if mean := (Score{sum.EM / 100, sum.F1 / 100}); n != 100 || mean != (Score{0.42, 0.4794210526315789}) {
		t.Errorf("mean of %d cases %v, official 0.42, 0.4794210526315789", n, mean)
	}
}

// TestFireAct holds squad to the EM and F1 recorded with real predictions.
func TestFireAct(t *testing.T) {
	data, err := os.ReadFile(shared(t, "scores/fireact_hotpot_dev500_gpt35ft_trajs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var records map[string]struct {
		EM       bool
		F1       float64
		GT, Pred string
	}
	if err := json.Unmarshal(data, &records); err != nil {
		t.Fatal(err)
	}
	if len(records) != 465 {
		t.Errorf("%d records, want 465", len(records))
	}
	for id, r := range records {
		got := SQuADQuestion(r.Pred, []string{r.GT})
		if (got.EM == 1) != r.EM || got.F1 != r.F1 {
			t.Errorf("%s: SQuADQuestion(%q, %q) = %v, recorded %v, %v", id, r.Pred, r.GT, got, r.EM, r.F1)
		}
	}
}

// TestMEM1RewardCases holds MEM1Reward to MEM1's own reward, but for the case
// that is an exception there.
func TestMEM1RewardCases(t *testing.T) {
	type rewardCase struct {
		Case, Response string
		Target         [][]string
		Score          *float64
		Error          *string
	}
	exceptions := map[string]float64{"response only, one block": 2}
	lines(t, shared(t, "mem1/mem1_reward_cases.jsonl"), func(c rewardCase) {
		want, known := exceptions[c.Case]
		if c.Score != nil {
			want = *c.Score
		} else if !known {
			t.Errorf("%s: MEM1 raises %v, and no score is set here", c.Case, c.Error)
		}
		if got := MEM1Reward(c.Response, c.Target); got != want {
			t.Errorf("%s: reward %v, want %v", c.Case, got, want)
		}
	})
}
