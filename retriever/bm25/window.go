package bm25

import (
	"cmp"
	"slices"
)

// scratch is what a search needs for its windows.
type scratch struct {
	sums  [1 << windowBits]float32 // 0 between windows
	parts []part                   // in the order of the query's terms
	order []int                    // of parts, by ascending bound
	below []float64                // by place in order: what the parts up to there can give together
}

// part is a term's postings within a window.
type part struct {
	weight float64
	bound  float64
	lows   []uint16
	narrow []uint16
	wide   []uint32
	values []float64
	fast   []float32
}

// value is what the part gives a document, and whether it has it.
func (p *part) value(low uint16) (float64, bool) {
	i, ok := slices.BinarySearch(p.lows, low)
	if !ok {
		return 0, false
	}
	if p.wide != nil {
		return p.weight * p.values[p.wide[i]], true
	}
	return p.weight * p.values[p.narrow[i]], true
}

// visit offers the documents of a window that can be among the best.
func (s *search) visit(w *window) {
	s.gather(w)
	only, restricted := s.onlyIn(w)
	most := 0
	for i := range s.parts {
		most += len(s.parts[i].lows)
	}
	switch {
	case restricted && len(only) <= most:
		for _, low := range only {
			s.score(w, low)
		}
	case s.all:
		s.visitAll(w, only, restricted)
	default:
		s.scan(w, only, restricted)
	}
}

// gather collects the terms' parts of a window.
func (s *search) gather(w *window) {
	shard := s.x.shards[w.shard]
	s.parts = s.parts[:0]
	for j := range s.lists[w.shard] {
		l := &s.lists[w.shard][j]
		c, ok := l.at(w.number)
		if !ok {
			continue
		}
		from, to := l.chunks[c].Posting, l.chunks[c+1].Posting
		p := part{weight: s.weights[j], bound: s.weights[j] * float64(l.bounds[c]), lows: shard.lows[from:to],
			values: shard.values[l.field], fast: shard.fast[l.field]}
		if shard.wide != nil {
			p.wide = shard.wide[from:to]
		} else {
			p.narrow = shard.narrow[from:to]
		}
		s.parts = append(s.parts, p)
	}
}

// at finds the chunk of a window.
func (l *list) at(number uint32) (int, bool) {
	n := l.windows()
	if n == 0 {
		return 0, false
	}
	return slices.BinarySearchFunc(l.chunks[:n], number, func(c chunkRecord, n uint32) int { return cmp.Compare(c.Window, n) })
}

// onlyIn is the documents of a window that the hits are restricted to.
func (s *search) onlyIn(w *window) (lows []uint16, restricted bool) {
	l := &s.only[w.shard]
	if s.unrestricted {
		return nil, false
	}
	c, ok := l.at(w.number)
	if !ok {
		return nil, true
	}
	return s.x.shards[w.shard].lows[l.chunks[c].Posting:l.chunks[c+1].Posting], true
}

// score offers a document with its exact score, if it has a term.
func (s *search) score(w *window, low uint16) {
	sum, found := 0.0, false
	for i := range s.parts {
		if v, ok := s.parts[i].value(low); ok {
			sum, found = sum+v, true
		}
	}
	if found {
		s.best.offer(Hit{w.shard, w.number<<windowBits | uint32(low), sum})
	}
}

// visitAll scores every document of the window that has a term.
func (s *search) visitAll(w *window, only []uint16, restricted bool) {
	seen := make([]bool, 1<<windowBits)
	for i := range s.parts {
		for _, low := range s.parts[i].lows {
			if !seen[low] && (!restricted || has(only, low)) {
				s.score(w, low)
			}
			seen[low] = true
		}
	}
}

func has(lows []uint16, low uint16) bool {
	_, ok := slices.BinarySearch(lows, low)
	return ok
}

// scan sums the terms that a document needs one of to be among the best, and looks
// the others up for the documents that may still be.
func (s *search) scan(w *window, only []uint16, restricted bool) {
	first := s.split()
	if first == len(s.order) {
		return
	}
	s.accumulate(first)
	slack := 1 + float64(len(s.order)-first+3)*1.2e-7 // of float32 sums
	rest := 0.0
	if first > 0 {
		rest = s.below[first-1]
	}
	for _, i := range s.order[first:] {
		for _, low := range s.parts[i].lows {
			sum := s.sums[low]
			if sum == 0 {
				continue
			}
			s.sums[low] = 0
			bound := float64(sum) * slack
			if s.best.full() && bound+rest < s.best.least() {
				continue
			}
			if (!restricted || has(only, low)) && s.mayReach(low, bound, first) {
				s.score(w, low)
			}
		}
	}
}

// split orders the parts by their bounds and returns the place of the first without
// which no document can be among the best.
func (s *search) split() int {
	s.order, s.below = s.order[:0], s.below[:0]
	for i := range s.parts {
		s.order = append(s.order, i)
	}
	slices.SortFunc(s.order, func(a, b int) int { return cmp.Compare(s.parts[a].bound, s.parts[b].bound) })
	sum, first := 0.0, 0
	for place, i := range s.order {
		sum += s.parts[i].bound
		s.below = append(s.below, sum*roundingUp(place))
		if s.best.full() && s.below[place] < s.best.least() {
			first = place + 1
		}
	}
	return first
}

// accumulate adds up the parts from a place in order on.
func (s *search) accumulate(first int) {
	for _, i := range s.order[first:] {
		p := &s.parts[i]
		if p.wide != nil {
			addTo(&s.sums, p.lows, p.wide, p.fast, float32(p.weight))
		} else {
			addTo(&s.sums, p.lows, p.narrow, p.fast, float32(p.weight))
		}
	}
}

func addTo[C uint16 | uint32](sums *[1 << windowBits]float32, lows []uint16, codes []C, values []float32, weight float32) {
	codes = codes[:len(lows)]
	for i, low := range lows {
		sums[low] += weight * values[codes[i]]
	}
}

// mayReach looks the terms before a place in order up, from the largest bound down,
// until the document has fallen behind.
func (s *search) mayReach(low uint16, bound float64, first int) bool {
	for place := first - 1; place >= 0 && s.best.full(); place-- {
		if bound+s.below[place] < s.best.least() {
			return false
		}
		v, _ := s.parts[s.order[place]].value(low)
		bound += v * (1 + 1e-12)
	}
	return !s.best.full() || bound*(1+1e-12) >= s.best.least()
}
