package datasets

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Shares says how the questions without a given split are dealt out. The parts
// are proportions; they need not sum to 1.
type Shares struct {
	Train float64 `json:"train"`
	Dev   float64 `json:"dev"`
	Test  float64 `json:"test"`
}

// Validate reports shares that deal nothing.
func (s Shares) Validate() error {
	total := s.Train + s.Dev + s.Test
	if s.Train < 0 || s.Dev < 0 || s.Test < 0 || !(total > 0) || math.IsInf(total, 0) {
		return fmt.Errorf("shares of train, dev and test are %g, %g and %g; want none below 0 and one above", s.Train, s.Dev, s.Test)
	}
	return nil
}

// of deals a question by the hash of its key alone: whatever the seed, the file
// or its order, a question is in the same split.
func (s Shares) of(key string) Split {
	sum := sha256.Sum256([]byte("split\x00" + key))
	u := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53) * (s.Train + s.Dev + s.Test)
	switch {
	case u < s.Train:
		return Train
	case u < s.Train+s.Dev:
		return Dev
	}
	return Test
}

// Refused counts what the composer left out, by its rules:
//   - a question whose text holds [Separator] cannot be told from two questions;
//   - an answer that holds it cannot be given, and one that scoring normalises
//     to nothing is met by an empty prediction: such golds are dropped, and a
//     question without any left is refused;
//   - a question stands once in all splits: the first read stays, and of two splits
//     the one held out further has it (test before dev before train). If one of
//     the two alone has evidence, it is kept.
type Refused struct {
	Separator      int `json:"question_with_separator"`
	NoGold         int `json:"question_without_usable_gold"`
	Duplicate      int `json:"question_twice"`
	OtherSplit     int `json:"question_in_another_split"`
	GoldsSeparator int `json:"golds_with_separator"`
	GoldsEmpty     int `json:"golds_normalising_to_nothing"`
}

// Composer collects questions and makes tasks of them. What it makes depends on
// the seed and the questions; their order matters only where two have one [Key].
type Composer struct {
	Seed   uint64
	Shares Shares // for questions added without a split

	// OneSource makes each task of questions of one source, as MEM1's script
	// does; otherwise all sources are mixed.
	OneSource bool

	refused Refused
	items   map[string]item // by Key
}

type item struct {
	question Question
	split    Split
}

// Refused returns what was left out so far.
func (c *Composer) Refused() Refused { return c.refused }

// Add takes a question for a split, "" to deal it by Shares, or refuses it by
// the rules of [Refused] and returns false.
func (c *Composer) Add(q Question, split Split) bool {
	if strings.Contains(q.Question, Separator) {
		c.refused.Separator++
		return false
	}
	golds := make([]string, 0, len(q.Golds))
	for _, g := range q.Golds {
		switch {
		case strings.Contains(g, Separator):
			c.refused.GoldsSeparator++
		case normalisesToNothing(g):
			c.refused.GoldsEmpty++
		default:
			golds = append(golds, g)
		}
	}
	if q.Golds = golds; len(golds) == 0 {
		c.refused.NoGold++
		return false
	}
	key := Key(q)
	if split == "" {
		split = c.Shares.of(key)
	}
	if c.items == nil {
		c.items = map[string]item{}
	}
	old, ok := c.items[key]
	if ok && old.question.Evidence == nil {
		old.question.Evidence = q.Evidence
		c.items[key] = old
	}
	switch {
	case ok && old.split == split:
		c.refused.Duplicate++
		return false
	case ok:
		c.refused.OtherSplit++
		if slices.Index(Splits, split) < slices.Index(Splits, old.split) {
			return false
		}
		if q.Evidence == nil {
			q.Evidence = old.question.Evidence
		}
	}
	c.items[key] = item{q, split}
	return true
}

// Questions returns a split's questions in the order of their keys.
func (c *Composer) Questions(split Split) []Question {
	var keys []string
	for k, it := range c.items {
		if it.split == split {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	out := make([]Question, len(keys))
	for i, k := range keys {
		out[i] = c.items[k].question
	}
	return out
}

// Tasks makes tasks with n questions each of a split's questions, no question
// twice, at most limit tasks (0: as many as the questions suffice for). left
// is the number of questions that no task has. Too few questions for one task
// are an error.
func (c *Composer) Tasks(split Split, n, limit int) (tasks []Task, left int, err error) {
	if n < 1 {
		return nil, 0, fmt.Errorf("%d questions a task, want at least 1", n)
	}
	all := c.Questions(split)
	sum := sha256.Sum256([]byte("tasks\x00" + string(split)))
	rng := rand.New(rand.NewPCG(c.Seed^binary.BigEndian.Uint64(sum[:]), uint64(n)))
	for _, group := range c.groups(all) {
		rng.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
		for ; len(group) >= n; group = group[n:] {
			tasks = append(tasks, Task{World: group[0].World, Questions: group[:n:n]})
		}
	}
	if len(tasks) == 0 {
		return nil, len(all), fmt.Errorf("%s has %d questions (%s), too few for a task of %d", split, len(all), dataSource(Task{Questions: all}), n)
	}
	rng.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	if limit > 0 && limit < len(tasks) {
		tasks = tasks[:limit]
	}
	for i := range tasks {
		tasks[i].ID = fmt.Sprintf("%s/%s/%d", split, HorizonName(n), i)
	}
	return tasks, len(all) - n*len(tasks), nil
}

// groups parts the questions that must not share a task: those of different
// worlds, whose documents are searched apart, and with OneSource those of
// different sources.
func (c *Composer) groups(all []Question) [][]Question {
	by := map[[2]string][]Question{}
	for _, q := range all {
		key := [2]string{q.World}
		if c.OneSource {
			key[1] = q.Source
		}
		by[key] = append(by[key], q)
	}
	keys := make([][2]string, 0, len(by))
	for k := range by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	out := make([][]Question, len(keys))
	for i, k := range keys {
		out[i] = by[k]
	}
	return out
}
