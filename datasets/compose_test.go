package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func made(source string, from, to int) []Question {
	var out []Question
	for i := from; i < to; i++ {
		out = append(out, Question{ID: fmt.Sprint(i), Source: source, Question: fmt.Sprintf("%s question %d?", source, i), Golds: []string{fmt.Sprint(i)}})
	}
	return out
}

func TestParseHorizon(t *testing.T) {
	for name, want := range map[string]int{"q1": 1, "q2": 2, "q8": 8, "q16": 16, "q100": 100, "wikirag": 1} {
		if n, err := ParseHorizon(name); err != nil || n != want {
			t.Errorf("ParseHorizon(%q) = %d, %v", name, n, err)
		}
	}
	for _, name := range []string{"", "q", "q0", "q-1", "q+2", "q02", "16", "Q2", "q2x"} {
		if n, err := ParseHorizon(name); err == nil {
			t.Errorf("ParseHorizon(%q) = %d", name, n)
		}
	}
	if HorizonName(16) != "q16" {
		t.Error(HorizonName(16))
	}
}

func TestKey(t *testing.T) {
	key := func(world, text string) string { return Key(Question{World: world, Question: text}) }
	same := key("", "who got the first nobel prize in physics")
	for _, text := range []string{"Who got the first Nobel prize in physics?", " who got the  first nobel prize in physics ? "} {
		if key("", text) != same {
			t.Errorf("%q has another key", text)
		}
	}
	if key("", "who got the second nobel prize in physics") == same || key("w1", "who got the first nobel prize in physics") == same {
		t.Error("different questions have one key")
	}
}

func TestNormalisesToNothing(t *testing.T) {
	for s, want := range map[string]bool{"---": true, ")": true, "*": true, "A+": true, "The": true, "a, an!": true, "": true,
		"B+": false, "0": false, "–": false, "É": false, "A team": false} {
		if got := normalisesToNothing(s); got != want {
			t.Errorf("normalisesToNothing(%q) = %t", s, got)
		}
	}
}

func TestComposerRefuses(t *testing.T) {
	c := &Composer{}
	add := func(text string, split Split, golds ...string) bool {
		return c.Add(Question{Question: text, Golds: golds, Source: "x"}, split)
	}
	for _, step := range []struct {
		got, want bool
		what      string
	}{
		{add("one; two?", Test, "x"), false, "the separator in the question"},
		{add("only such golds", Test, "x; y", "---"), false, "no usable gold"},
		{add("some such golds", Test, "x;y", ")", "c", "d"), true, "one usable gold"},
		{add("asked twice", Dev, "x"), true, "new"},
		{add("Asked twice?", Dev, "y"), false, "a duplicate"},
		{add("asked twice", Train, "x"), false, "held out already"},
		{add("asked twice", Test, "c"), true, "held out further"},
	} {
		if step.got != step.want {
			t.Errorf("%s: accepted is %t", step.what, step.got)
		}
	}
	want := Refused{Separator: 1, NoGold: 1, Duplicate: 1, OtherSplit: 2, GoldsSeparator: 2, GoldsEmpty: 2}
	if got := c.Refused(); got != want {
		t.Errorf("refused %+v, want %+v", got, want)
	}
	if got := c.Questions(Dev); len(got) != 0 {
		t.Errorf("dev has %v", got)
	}
	got := c.Questions(Test)
	slices.SortFunc(got, func(a, b Question) int { return strings.Compare(a.Question, b.Question) })
	if len(got) != 2 || got[0].Golds[0] != "c" || !slices.Equal(got[1].Golds, []string{"c", "d"}) {
		t.Errorf("test has %+v", got)
	}
}

func compose(seed uint64, questions []Question) *Composer {
	c := &Composer{Seed: seed, Shares: Shares{Train: 8, Dev: 1, Test: 1}}
	for _, q := range questions {
		c.Add(q, "")
	}
	return c
}

func TestComposerTasks(t *testing.T) {
	all := append(made("nq", 0, 300), made("hotpotqa", 0, 700)...)
	c := compose(1, all)
	seen := map[string]Split{}
	for _, split := range Splits {
		tasks, left, err := c.Tasks(split, 8, 0)
		if err != nil {
			t.Fatal(err)
		}
		questions := len(c.Questions(split))
		if len(tasks) != questions/8 || left != questions%8 {
			t.Errorf("%s: %d tasks and %d left of %d questions", split, len(tasks), left, questions)
		}
		mixed := 0
		for i, task := range tasks {
			if len(task.Questions) != 8 || task.ID != fmt.Sprintf("%s/q8/%d", split, i) {
				t.Errorf("task %s has %d questions", task.ID, len(task.Questions))
			}
			if dataSource(task) == "hotpotqa+nq" {
				mixed++
			}
			for _, q := range task.Questions {
				if other, ok := seen[Key(q)]; ok {
					t.Fatalf("%q is in %s and in %s", q.Question, other, split)
				}
				seen[Key(q)] = split
			}
		}
		if mixed*10 < len(tasks)*8 {
			t.Errorf("%s: %d of %d tasks are mixed", split, mixed, len(tasks))
		}
	}
	if n := len(c.Questions(Train)); n < 750 || n > 850 {
		t.Errorf("train has %d of 1000 questions, want about 800", n)
	}
}

// The seed and the set of questions decide, and only the seed changes tasks.
func TestComposerSeed(t *testing.T) {
	all := append(made("nq", 0, 300), made("hotpotqa", 0, 700)...)
	c := compose(1, all)
	text := func(c *Composer, limit int) string {
		tasks, _, _ := c.Tasks(Train, 4, limit)
		return fmt.Sprint(tasks)
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	first := text(c, 5)
	if text(compose(1, reversed), 5) != first {
		t.Error("the order of the questions changes the tasks")
	}
	if text(compose(2, all), 5) == first {
		t.Error("the seed does not change the tasks")
	}
	if !slices.EqualFunc(compose(2, all).Questions(Test), c.Questions(Test), func(a, b Question) bool { return a.ID == b.ID }) {
		t.Error("the seed changes the splits")
	}
	if !strings.HasPrefix(text(c, 6), strings.TrimSuffix(first, "]")) {
		t.Error("a higher limit changes the first tasks")
	}
}

func TestComposerOneSource(t *testing.T) {
	c := &Composer{Seed: 1, OneSource: true}
	for _, q := range append(made("nq", 0, 11), made("hotpotqa", 0, 10)...) {
		c.Add(q, Test)
	}
	tasks, left, err := c.Tasks(Test, 3, 0)
	if err != nil || len(tasks) != 6 || left != 3 {
		t.Fatalf("%d tasks, %d left, %v", len(tasks), left, err)
	}
	for _, task := range tasks {
		if s := dataSource(task); s != "nq" && s != "hotpotqa" {
			t.Errorf("task %s is of %s", task.ID, s)
		}
	}
	if _, _, err := c.Tasks(Test, 12, 0); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("too few questions: %v", err)
	}
	if _, _, err := c.Tasks(Test, 0, 0); err == nil {
		t.Error("no question a task gave no error")
	}
}

func TestComposerKeepsWorldsApart(t *testing.T) {
	c := &Composer{}
	for i := range 40 {
		c.Add(Question{World: fmt.Sprintf("w%d", i%2), Question: fmt.Sprint("q ", i/2), Golds: []string{"x"}}, Test)
	}
	tasks, _, err := c.Tasks(Test, 5, 0)
	if err != nil || len(tasks) != 8 {
		t.Fatal(len(tasks), err)
	}
	for _, task := range tasks {
		for _, q := range task.Questions {
			if q.World != task.World {
				t.Errorf("task of %s holds a question of %s", task.World, q.World)
			}
		}
	}
}

func TestSharesValidate(t *testing.T) {
	for _, s := range []Shares{{}, {Train: -1, Test: 2}} {
		if s.Validate() == nil {
			t.Errorf("%+v passes", s)
		}
	}
}
