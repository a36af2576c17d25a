package metrics

import (
	"slices"
	"testing"
)

func TestSQuADTasks(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string
		golds   [][]string
		want    Score
	}{
		{"both right", []string{"the Beatles", "Paris!"}, [][]string{{"Beatles"}, {"paris"}}, Score{1, 1}},
		{"mean of questions", []string{"Beatles", "Rome"}, [][]string{{"Beatles"}, {"Paris"}}, Score{0.5, 0.5}},
		{"missing answer", []string{"Beatles"}, [][]string{{"Beatles"}, {"Paris"}}, Score{0.5, 0.5}},
		{"missing is not empty", nil, [][]string{{")"}}, Score{0, 0}},
		{"both normalise to nothing", []string{"the"}, [][]string{{")"}}, Score{1, 0}},
		{"extra answer", []string{"Beatles", "x"}, [][]string{{"Beatles"}}, Score{1, 1}},
		{"by index", []string{"Paris", "Beatles"}, [][]string{{"Beatles"}, {"Paris"}}, Score{0, 0}},
		{"multiset", []string{"Paris Paris"}, [][]string{{"Paris"}}, Score{0, 2.0 / 3}},
		{"best gold for F1", []string{"New York City"}, [][]string{{"Boston", "New York"}}, Score{0, 0.8}},
		{"best gold for EM", []string{"NYC"}, [][]string{{"New York", "nyc"}}, Score{1, 1}},
		{"yes is not part", []string{"yes it is"}, [][]string{{"yes"}}, Score{0, 0}},
		{"yes", []string{"Yes."}, [][]string{{"yes"}}, Score{1, 1}},
		{"no in the gold", []string{"no"}, [][]string{{"no one"}}, Score{0, 0}},
		{"noanswer", []string{"noanswer x"}, [][]string{{"noanswer"}}, Score{0, 0}},
		{"no golds", []string{"x"}, [][]string{{}}, Score{0, 0}},
		{"no questions", []string{"x"}, nil, Score{0, 0}},
	} {
		if got := SQuAD(c.answers, c.golds); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The values of the first seven cases were given by MEM1's eval.py.
func TestMEM1Tasks(t *testing.T) {
	for _, c := range []struct {
		text  string
		golds [][]string
		want  Score
	}{
		{"the Beatles; Paris", [][]string{{"Beatles"}, {"Paris"}}, Score{1, 1.6666666666666665}},
		{"U.S.; Paris", [][]string{{"US"}, {"Paris"}}, Score{1, 1}},
		{"Paris Paris; x", [][]string{{"Paris"}, {"y"}}, Score{0, 1}},
		{"a; b; c", [][]string{{"a"}, {"b"}}, Score{0, 0}},
		{"Smith; Jones; Paris", [][]string{{"Smith; Jones"}, {"Paris"}}, Score{0, 0}},
		{"; Paris", [][]string{{"x"}, {"Paris"}}, Score{1, 1}},
		{"yes it is", [][]string{{"yes"}}, Score{0, 0.5}},
		{"a", [][]string{{"a"}, {"b"}}, Score{0, 0}},
		{"x;)", [][]string{{"x"}, {"("}}, Score{2, 1}},
		{"New York", [][]string{{"Boston", "New York City", "new-york"}}, Score{1, 1}},
	} {
		if got := MEM1(SplitAnswers(c.text), c.golds); got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
	if got := MEM1(nil, [][]string{{"x"}}); got != (Score{}) {
		t.Errorf("no answers: %v", got)
	}
}

func TestMEM1Reward(t *testing.T) {
	golds := [][]string{{"Beatles"}, {"US"}}
	for response, want := range map[string]float64{
		"<answer>the Beatles; U.S.</answer>":                  2,
		"<answer>Beatles;US; more</answer>":                   2,
		"<answer>Beatles</answer>":                            1,
		"<answer>\n US \n</answer>":                           0,
		"<answer>x</answer> <answer>Beatles;\nUS</answer>":    2,
		"<answer>Beatles; US</answer> <answer>unclosed":       2,
		"<answer>Beatles; US":                                 0,
		"nothing":                                             0,
		"<answer></answer>":                                   0,
		"<answer>x <answer>Beatles; US</answer>":              1,
		"<answer>Beatles; US</answer><answer>x; US</answer> ": 1,
	} {
		if got := MEM1Reward(response, golds); got != want {
			t.Errorf("%q: reward %v, want %v", response, got, want)
		}
	}
}

func TestSplitAnswers(t *testing.T) {
	for text, want := range map[string][]string{
		" a ; b;c ": {"a", "b", "c"},
		"":          {""},
		"a;":        {"a", ""},
	} {
		if got := SplitAnswers(text); !slices.Equal(got, want) {
			t.Errorf("SplitAnswers(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestHasAnswer(t *testing.T) {
	passage := "\"Paris\"\nParis is the capital of France, since 987."
	for gold, want := range map[string]bool{
		"capital of France": true, "The Capital": true, "987": true, "98": false, "Par": false, "Rome": false, "---": false,
	} {
		if got := HasAnswer(passage, []string{"Berlin", gold}); got != want {
			t.Errorf("HasAnswer(%q) = %v", gold, got)
		}
	}
	if HasAnswer("The!", []string{"---"}) {
		t.Error("a gold of nothing is in a passage of nothing")
	}
}

func TestCosts(t *testing.T) {
	calls := []CallLengths{{100, 20, 0.5}, {150, 31, 0.25}, {90, 85, 1}}
	if got := PeakContext(calls); got != 181 {
		t.Errorf("peak context %d, want 181", got)
	}
	// (100+10)·20 + (150+15.5)·31 + (90+42.5)·85
	if got := Dependency(calls); got != 2200+5130.5+11262.5 {
		t.Errorf("dependency %v, want 18593", got)
	}
	if got := InferenceSeconds(calls); got != 1.75 {
		t.Errorf("inference %v s, want 1.75", got)
	}
	if PeakContext(nil) != 0 || Dependency(nil) != 0 || InferenceSeconds(nil) != 0 {
		t.Error("no calls cost something")
	}
	// An output counted as thought and action, one after the other, costs the same.
	whole := Dependency([]CallLengths{{ContextTokens: 150, OutputTokens: 31}})
	parts := Dependency([]CallLengths{{ContextTokens: 150, OutputTokens: 20}, {ContextTokens: 170, OutputTokens: 11}})
	if whole != parts {
		t.Errorf("dependency %v in parts, %v whole", parts, whole)
	}
}

func TestScorers(t *testing.T) {
	answers, golds := []string{"x", "y"}, [][]string{{"x"}, {"y"}}
	for name, want := range map[string]float64{NameSQuAD: 1, NameMEM1: 2} {
		if got := Scorers()[name](answers, golds); got.EM != want || got.F1 != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func FuzzScorers(f *testing.F) {
	f.Add("the İΣ. a_b", "Σ\x1cx")
	f.Add("\xff;", "\u0301the")
	f.Fuzz(func(t *testing.T, answer, gold string) {
		for name, score := range Scorers() {
			s := score([]string{answer}, [][]string{{gold}})
			if !(s.F1 >= 0 && s.F1 <= 1) || s.EM != 0 && s.EM != 1 {
				t.Errorf("%s(%q, %q) = %v", name, answer, gold, s)
			}
			if back := score([]string{gold}, [][]string{{answer}}); back != s {
				t.Errorf("%s is not symmetric: %v, %v", name, s, back)
			}
		}
		if s := SQuADQuestion(answer, []string{gold}); s.EM == 1 && s.F1 != 1 && NormalizeSQuAD(answer) != "" {
			t.Errorf("EM without F1: %v", s)
		}
	})
}
