package bm25

import (
	"container/heap"
	"slices"
)

// top keeps the k best hits, the worst of them first.
type top struct {
	k    int
	hits []Hit
	less func(a, b Hit) bool // a is worse than b
}

func (t *top) Len() int           { return len(t.hits) }
func (t *top) Less(i, j int) bool { return t.less(t.hits[i], t.hits[j]) }
func (t *top) Swap(i, j int)      { t.hits[i], t.hits[j] = t.hits[j], t.hits[i] }
func (t *top) Push(h any)         { t.hits = append(t.hits, h.(Hit)) }
func (t *top) Pop() any           { panic("hits are replaced, never taken") }

func (t *top) full() bool { return len(t.hits) >= t.k }

// least is the score that a new hit has to reach; call it when full.
func (t *top) least() float64 { return t.hits[0].Score }

func (t *top) offer(h Hit) {
	switch {
	case !t.full():
		heap.Push(t, h)
	case t.less(t.hits[0], h):
		t.hits[0] = h
		heap.Fix(t, 0)
	}
}

// sorted is the hits, the best first.
func (t *top) sorted() []Hit {
	slices.SortFunc(t.hits, func(a, b Hit) int {
		if t.less(b, a) {
			return -1
		}
		return 1
	})
	return t.hits
}
