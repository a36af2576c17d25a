package miniwiki

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/memopd/memopd-bench/datasets"
)

// drawsPerQuestion bounds the search for a question not yet used. A world has
// 312 one-hop and 738 two-hop questions; the bound is met only when all of one
// kind are spent.
const drawsPerQuestion = 10_000

// DefaultTasks is how many tasks with n questions a composed set holds unless
// told otherwise: at most 400, and so few that the questions of four worlds
// suffice with half of them unused.
func DefaultTasks(n int) int { return min(400, max(1, 1600/max(1, n))) }

// Compose draws a fixed set of tasks with n questions each from the worlds of a
// split, world after world in turn, no question twice in the set. The set
// depends on the wiki's seed, the split and n; a larger count only adds tasks.
// It is an error when the worlds do not hold enough questions.
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
	for i := range used {
		used[i] = map[question]bool{}
	}
	out := make([]datasets.Task, 0, max(0, tasks))
	for i := range tasks {
		at := i % len(worlds)
		t := datasets.Task{ID: fmt.Sprintf("miniwiki/%s/q%d/%d", split, n, i), World: worlds[at].id}
		for range n {
			q, ok := worlds[at].drawUnused(rng, used[at])
			if !ok {
				return nil, fmt.Errorf("miniwiki: the questions of %s suffice for %d tasks of %d, not for %d: world %s has no more with %d hop(s)",
					split, i, n, tasks, worlds[at].id, q.hops())
			}
			t.Questions = append(t.Questions, worlds[at].render(q))
		}
		out = append(out, t)
	}
	return out, nil
}

// drawUnused draws a question that used does not hold, and adds it. When it
// finds none, it returns false and the last draw.
func (w *World) drawUnused(rng *rand.Rand, used map[question]bool) (q question, ok bool) {
	hops := drawHops(rng)
	for range drawsPerQuestion {
		if q = w.drawQuestion(rng, hops); !used[q] {
			used[q] = true
			return q, true
		}
	}
	return q, false
}
