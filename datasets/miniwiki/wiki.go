package miniwiki

import (
	"fmt"
	"iter"

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
