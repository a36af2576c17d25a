package miniwiki

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/memopd/memopd-bench/datasets"
)

// Sampler is an endless stream of tasks from a set of worlds. Task i depends on
// the seed, i and the number of questions alone, so a stopped run goes on where
// it was without drawing what came before, and goroutines may share a Sampler.
type Sampler struct {
	worlds []*World
	seed   uint64
}

// NewSampler makes a sampler over worlds, an error when there are none.
func NewSampler(worlds []*World, seed uint64) (*Sampler, error) {
	if len(worlds) == 0 {
		return nil, errors.New("miniwiki: a sampler needs at least one world")
	}
	return &Sampler{slices.Clone(worlds), seed}, nil
}

// Task returns task number i with n questions (1 to [MaxQuestions]) about one
// world, no question twice.
func (s *Sampler) Task(i uint64, n int) (datasets.Task, error) {
	if n < 1 || n > MaxQuestions {
		return datasets.Task{}, fmt.Errorf("miniwiki: %d questions a task, want 1 to %d", n, MaxQuestions)
	}
	rng := rand.New(rand.NewPCG(mix(s.seed, streamSampler, uint64(n)), i))
	w := s.worlds[rng.IntN(len(s.worlds))]
	t := datasets.Task{
		ID:        fmt.Sprintf("sample%d/q%d/%d", s.seed, n, i),
		World:     w.id,
		Questions: make([]datasets.Question, 0, n),
	}
	var drawn [MaxQuestions]question
	for len(t.Questions) < n {
		q := w.drawQuestion(rng, drawHops(rng))
		if k := len(t.Questions); !slices.Contains(drawn[:k], q) {
			drawn[k] = q
			t.Questions = append(t.Questions, w.render(q))
		}
	}
	return t, nil
}

// Tasks yields the tasks with n questions from number `from` on, without end.
// The only error is that of a wrong n, yielded once.
func (s *Sampler) Tasks(from uint64, n int) iter.Seq2[datasets.Task, error] {
	return func(yield func(datasets.Task, error) bool) {
		for i := from; ; i++ {
			t, err := s.Task(i, n)
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}
