package miniwiki

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"

	"github.com/memopd/memopd-bench/datasets"
)

// Config says which wiki to make. The sizes of a world are fixed: 64 persons,
// 22 towns, 18 companies, 6 countries and 10 rivers share the pool's 120 names.
type Config struct {
	Seed        uint64 `json:"seed"`
	TrainWorlds int    `json:"train_worlds"`
	DevWorlds   int    `json:"dev_worlds"`
	TestWorlds  int    `json:"test_worlds"`
}

// DefaultConfig returns the wiki of the mini preset.
func DefaultConfig() Config {
	return Config{Seed: 1, TrainWorlds: 64, DevWorlds: 4, TestWorlds: 4}
}

// Validate reports a field out of range.
func (c Config) Validate() error {
	for _, f := range []struct {
		name string
		n    int
	}{{"train_worlds", c.TrainWorlds}, {"dev_worlds", c.DevWorlds}, {"test_worlds", c.TestWorlds}} {
		if f.n < 1 || f.n > 10_000 {
			return fmt.Errorf("miniwiki: %s is %d, want 1 to 10000", f.name, f.n)
		}
	}
	return nil
}

// Wiki is the set of all worlds: first those for training, then dev, then test.
// No world stands in two splits. A Wiki is never changed after [New].
type Wiki struct {
	config Config
	worlds []*World
	byID   map[string]*World
}

// New makes the wiki that c describes.
func New(c Config) (*Wiki, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := c.TrainWorlds + c.DevWorlds + c.TestWorlds
	wiki := &Wiki{config: c, worlds: make([]*World, n), byID: make(map[string]*World, n)}
	for i := range wiki.worlds {
		w := newWorld(c.Seed, i)
		wiki.worlds[i], wiki.byID[w.id] = w, w
	}
	return wiki, nil
}

// Config returns what the wiki was made from.
func (k *Wiki) Config() Config { return k.config }

// World returns the world of a name such as "w17", false when there is none.
func (k *Wiki) World(id string) (*World, bool) {
	w, ok := k.byID[id]
	return w, ok
}

// Worlds returns the worlds of a split: [datasets.Train], [datasets.Dev] or
// [datasets.Test]; an error for any other.
func (k *Wiki) Worlds(split datasets.Split) ([]*World, error) {
	train, dev := k.config.TrainWorlds, k.config.TrainWorlds+k.config.DevWorlds
	switch split {
	case datasets.Train:
		return k.worlds[:train:train], nil
	case datasets.Dev:
		return k.worlds[train:dev:dev], nil
	case datasets.Test:
		return k.worlds[dev:], nil
	}
	return nil, fmt.Errorf("miniwiki: no split %q; there are train, dev and test", split)
}

// Documents yields the documents of all worlds, world by world.
func (k *Wiki) Documents() iter.Seq[datasets.Document] {
	return func(yield func(datasets.Document) bool) {
		for _, w := range k.worlds {
			for _, d := range w.Documents() {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// drawsPerQuestion bounds the search for a question not yet used. A world has
// 1,050; the bound is met only when nearly all likely ones are spent.
const drawsPerQuestion = 10_000

// Compose draws a fixed set of tasks with n questions each from the worlds of a
// split, world after world in turn, no question twice in the set. The set
// depends on the wiki's seed, the split and n; a larger count only adds tasks. It is an
// error when the worlds do not hold enough questions.
func (k *Wiki) Compose(split datasets.Split, n, tasks int) ([]datasets.Task, error) {
	worlds, err := k.Worlds(split)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > MaxQuestions {
		return nil, fmt.Errorf("miniwiki: %d questions a task, want 1 to %d", n, MaxQuestions)
	}
	h := fnv.New64a()
	h.Write([]byte(split))
	rng := rand.New(rand.NewPCG(mix(k.config.Seed, streamSplit, h.Sum64()), uint64(n)))
	used := make([]map[question]bool, len(worlds))
	out := make([]datasets.Task, 0, tasks)
	for i := range tasks {
		at := i % len(worlds)
		if used[at] == nil {
			used[at] = map[question]bool{}
		}
		t := datasets.Task{ID: fmt.Sprintf("miniwiki/%s/q%d/%d", split, n, i), World: worlds[at].id}
		for range n {
			q, ok := worlds[at].drawUnused(rng, used[at])
			if !ok {
				return nil, fmt.Errorf("miniwiki: %s has questions for %d tasks of %d questions, not for %d: world %s is used up",
					split, i, n, tasks, worlds[at].id)
			}
			t.Questions = append(t.Questions, worlds[at].render(q))
		}
		out = append(out, t)
	}
	return out, nil
}

// drawUnused draws a question that used does not hold, and adds it.
func (w *World) drawUnused(rng *rand.Rand, used map[question]bool) (question, bool) {
	for range drawsPerQuestion {
		if q := w.drawQuestion(rng); !used[q] {
			used[q] = true
			return q, true
		}
	}
	return question{}, false
}
