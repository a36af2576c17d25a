package miniwiki

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/datasets"
)

func newDefault(t testing.TB) *Wiki {
	t.Helper()
	k, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestVocabulary(t *testing.T) {
	v := Vocabulary()
	if len(v) != 256 {
		t.Errorf("vocabulary has %d words, want 256", len(v))
	}
	for id, want := range map[int]string{PadID: "<pad>", UnkID: "<unk>", BosID: "<bos>", EosID: "<eos>", 24: "q1", 55: "q32", 56: "0", 126: "70", 127: "birth", 135: "rival"} {
		if v[id] != want {
			t.Errorf("word %d is %q, want %q", id, v[id], want)
		}
	}
	seen := map[string]bool{}
	for _, w := range v {
		if seen[w] || strings.ContainsAny(w, " \t\n") || w == "" {
			t.Errorf("word %q stands twice or is no single word", w)
		}
		seen[w] = true
	}
	for _, n := range Names() {
		if len(n) != 4 || n == "none" || n == "base" {
			t.Errorf("name %q", n)
		}
	}
}

func TestWorldsAreComplete(t *testing.T) {
	w := newDefault(t).worlds[3]
	total := 0
	for k, want := range map[Kind]int{Person: 64, Town: 22, Company: 18, Country: 6, River: 10} {
		got := w.Entities(k)
		total += len(got)
		if len(got) != want {
			t.Errorf("%d entities of kind %s, want %d", len(got), k, want)
		}
		for _, e := range got {
			checkDocument(t, w, k, e)
		}
	}
	if docs := w.Documents(); total != 120 || len(docs) != 120 {
		t.Errorf("%d entities, %d documents, want 120 of each", total, len(docs))
	}
	if _, ok := w.Document("zzzz"); ok {
		t.Error("a document for a name that is not in the pool")
	}
}

func checkDocument(t *testing.T, w *World, k Kind, e string) {
	t.Helper()
	d, ok := w.Document(e)
	if !ok || d.ID != "w3/"+e || d.World != "w3" || d.Title != e {
		t.Fatalf("document of %s: %+v", e, d)
	}
	if !hasRelations(k) {
		if d.Text != "." {
			t.Errorf("%s %s: text %q, want .", k, e, d.Text)
		}
		return
	}
	words := strings.Fields(d.Text)
	if len(words) != 9 {
		t.Fatalf("text %q: want 3 facts", d.Text)
	}
	for i := 0; i < 9; i += 3 {
		fact, ok := w.Fact(e, words[i])
		r := relations[relationID(words[i])]
		if !ok || fact != words[i+1] || words[i+2] != ";" || fact == e || r.from != k || !slices.Contains(w.Entities(r.to), fact) {
			t.Errorf("%s: fact %q in text %q", e, fact, d.Text)
		}
	}
}

// The facts differ between worlds, and so do the kinds of a name: nothing can
// be learnt by heart.
func TestWorldsDiffer(t *testing.T) {
	k := newDefault(t)
	sameKind, sameText := 0, 0
	for e := range poolSize {
		if k.worlds[0].kind[e] == k.worlds[1].kind[e] {
			sameKind++
		}
		a, b := k.worlds[0].document(e), k.worlds[1].document(e)
		if a.Text == b.Text && a.Text != "." {
			sameText++
		}
	}
	if sameKind > 80 || sameText > 0 {
		t.Errorf("worlds 0 and 1 agree in %d kinds and %d texts", sameKind, sameText)
	}
}

func TestSplitsHoldDifferentWorlds(t *testing.T) {
	k := newDefault(t)
	seen := map[string]datasets.Split{}
	for split, want := range map[datasets.Split]int{datasets.Train: 64, datasets.Dev: 4, datasets.Test: 4} {
		ws, err := k.Worlds(split)
		if err != nil || len(ws) != want {
			t.Fatalf("%s: %d worlds, %v", split, len(ws), err)
		}
		for _, w := range ws {
			if other, ok := seen[w.ID()]; ok {
				t.Errorf("world %s is in %s and in %s", w.ID(), other, split)
			}
			seen[w.ID()] = split
			if got, ok := k.World(w.ID()); !ok || got != w {
				t.Errorf("World(%q) is another", w.ID())
			}
		}
	}
	if _, err := k.Worlds("validation"); err == nil {
		t.Error("an unknown split gave no error")
	}
	if _, err := New(Config{TrainWorlds: 1, DevWorlds: 1}); err == nil || !strings.Contains(err.Error(), "test_worlds") {
		t.Errorf("no test worlds: %v", err)
	}
}

// pinnedTask is a task with the fields of its questions that the mini-wiki sets.
type pinnedTask struct {
	ID, World string
	Questions []pinnedQuestion
}

type pinnedQuestion struct {
	ID, Source, World, Question string
	Golds                       []string
	Hops                        int
}

func pinned(t *testing.T, tasks ...datasets.Task) []pinnedTask {
	t.Helper()
	out := make([]pinnedTask, len(tasks))
	for i, task := range tasks {
		out[i] = pinnedTask{ID: task.ID, World: task.World}
		for _, q := range task.Questions {
			if q.Evidence != nil {
				t.Errorf("question %s has evidence", q.ID)
			}
			out[i].Questions = append(out[i].Questions, pinnedQuestion{q.ID, q.Source, q.World, q.Question, q.Golds, q.Hops})
		}
	}
	return out
}

// Everything made from the default config, pinned: a change here makes every
// committed checkpoint and table wrong.
func TestDeterminism(t *testing.T) {
	h := sha256.New()
	k := newDefault(t)
	for d := range k.Documents() {
		fmt.Fprintln(h, d)
	}
	s, _ := NewSampler(k.worlds, 7)
	for i := range uint64(50) {
		task, err := s.Task(i, 8)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(h, pinned(t, task)[0])
	}
	tasks, err := k.Compose(datasets.Test, 16, 20)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(h, Vocabulary(), pinned(t, tasks...))
	const want = "c6e489e0aa4aa8d5f30c9922c170384e2fa91288c822b9074350dc706cd36443"
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
		t.Errorf("the wiki of seed 1 has hash %s, want %s", got, want)
	}
}

func TestQuestionShares(t *testing.T) {
	w := newDefault(t).worlds[0]
	rng := rand.New(rand.NewPCG(1, 2))
	const draws = 20_000
	var twoHop, twoHopPerson, oneHopPerson int
	for range draws {
		q := w.drawQuestion(rng, drawHops(rng))
		person := w.kind[q.entity] == Person
		switch {
		case q.hops() == 2 && person:
			twoHop++
			twoHopPerson++
		case q.hops() == 2:
			twoHop++
		case person:
			oneHopPerson++
		}
	}
	oneHop := draws - twoHop
	near := func(what string, got, of int, want float64) {
		if share := float64(got) / float64(of); share < want-0.02 || share > want+0.02 {
			t.Errorf("%s: %.3f, want %.3f", what, share, want)
		}
	}
	near("two hops", twoHop, draws, 0.5)
	near("two hops from a person", twoHopPerson, twoHop, 0.7)
	near("one hop from a person", oneHopPerson, oneHop, 0.6+0.4*64/104)
}

func TestQuestionsAreAnsweredByFacts(t *testing.T) {
	w := newDefault(t).worlds[5]
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		q := w.Question(rng)
		words := strings.Fields(q.Question)
		at := words[0]
		for _, r := range words[1:] {
			next, ok := w.Fact(at, r)
			if !ok {
				t.Fatalf("%+v: %s has no %s", q, at, r)
			}
			at = next
		}
		if q.Golds[0] != at || q.Hops != len(words)-1 || q.Source != Source || q.World != "w5" || q.ID != "w5/"+strings.Join(words, "/") {
			t.Fatalf("question %+v: answer is %s", q, at)
		}
	}
}

func TestSampler(t *testing.T) {
	k := newDefault(t)
	worlds, _ := k.Worlds(datasets.Dev)
	s, err := NewSampler(worlds, 9)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]int{}
	for i := range uint64(200) {
		task, err := s.Task(i, MaxQuestions)
		if err != nil {
			t.Fatal(err)
		}
		used[task.World]++
		seen := map[string]bool{}
		for _, q := range task.Questions {
			if seen[q.ID] || q.World != task.World {
				t.Fatalf("task %s: question %s", task.ID, q.ID)
			}
			seen[q.ID] = true
		}
	}
	if len(used) != 4 {
		t.Errorf("worlds used: %v", used)
	}
	next := uint64(5)
	for task, err := range s.Tasks(5, 2) {
		want, _ := s.Task(next, 2)
		if err != nil || fmt.Sprint(task) != fmt.Sprint(want) {
			t.Fatalf("Tasks gives %v, Task(%d) gives %v", task, next, want)
		}
		if next++; next == 10 {
			break
		}
	}
	for _, n := range []int{0, -1, MaxQuestions + 1} {
		if _, err := s.Task(0, n); err == nil {
			t.Errorf("%d questions a task gave no error", n)
		}
	}
	if _, err := NewSampler(nil, 1); err == nil {
		t.Error("a sampler without worlds gave no error")
	}
}

func TestCompose(t *testing.T) {
	k := newDefault(t)
	tasks, err := k.Compose(datasets.Test, 8, DefaultTasks(8))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, task := range tasks {
		for _, q := range task.Questions {
			if seen[q.ID] || q.World != task.World {
				t.Fatalf("question %s of task %s stands twice or is of another world", q.ID, task.ID)
			}
			seen[q.ID] = true
		}
	}
	fewer, err := k.Compose(datasets.Test, 8, 10)
	if err != nil || fmt.Sprint(fewer) != fmt.Sprint(tasks[:10]) {
		t.Errorf("10 tasks are not the first of 200: %v", err)
	}
	for _, n := range []int{1, 2, 3, 16, MaxQuestions} {
		if tasks, err := k.Compose(datasets.Dev, n, DefaultTasks(n)); err != nil || len(tasks) != DefaultTasks(n) {
			t.Errorf("%d tasks of %d questions: %v", len(tasks), n, err)
		}
	}
	if _, err := k.Compose(datasets.Test, 16, 300); err == nil || !strings.Contains(err.Error(), "no more with 1 hop") {
		t.Errorf("more questions than the worlds have: %v", err)
	}
	if _, err := k.Compose(datasets.Test, 0, 1); err == nil {
		t.Error("no question a task gave no error")
	}
}

func BenchmarkSamplerQ16(b *testing.B) {
	s, _ := NewSampler(newDefault(b).worlds, 1)
	for i := range b.N {
		if _, err := s.Task(uint64(i), 16); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOracleQ16(b *testing.B) {
	k := newDefault(b)
	s, _ := NewSampler(k.worlds, 1)
	for i := range b.N {
		task, _ := s.Task(uint64(i), 16)
		w, _ := k.World(task.World)
		if _, err := Oracle(w, task); err != nil {
			b.Fatal(err)
		}
	}
}
