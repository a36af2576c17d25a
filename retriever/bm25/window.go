package bm25

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// scratch is what a search needs for its windows.
type scratch struct {
	sums  [1 << windowBits]float32 // 0 between windows
	parts []part                   // in the order of the query's terms
	order []int                    // of parts, by ascending bound
	below []float64                // by place in order: what the parts up to there can give together
	picks []uint16

	places [1 << windowBits]uint16 // of a part's documents; another's where the part's is not that document

	candidates []candidate
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
	i := seek(p.lows, low)
	if i == len(p.lows) || p.lows[i] != low {
		return 0, false
	}
	return p.at(i), true
}

// at is what the part gives its i-th document.
func (p *part) at(i int) float64 {
	if p.wide != nil {
		return p.weight * p.values[p.wide[i]]
	}
	return p.weight * p.values[p.narrow[i]]
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
	i := seek(lows, low)
	return i < len(lows) && lows[i] == low
}

// scan sums the terms from the largest bound down, until those that are left cannot
// together lift a document among the best, and looks these up for the documents
// that may still be.
func (s *search) scan(w *window, only []uint16, restricted bool) {
	s.sort()
	place := len(s.order)
	for place > 0 && (!s.best.full() || s.below[place-1] >= s.best.least()) {
		place--
		p := &s.parts[s.order[place]]
		p.addTo(&s.sums)
		if place > 0 {
			s.lift(w, place, only, restricted)
		}
	}
	s.collect(place, only, restricted)
	for place > 0 && len(s.candidates) > 0 {
		place--
		s.lookUp(place)
	}
	for _, c := range s.candidates {
		if !s.best.full() || c.bound >= s.best.least() {
			s.score(w, c.low)
		}
	}
}

// candidate is a document that may be among the best, with what it can score at
// most by the terms that were summed or looked up.
type candidate struct {
	low   uint16
	bound float64
}

// collect lists the documents of the parts from a place on that may be among the
// best, ascending part by part, and clears the sums.
func (s *search) collect(place int, only []uint16, restricted bool) {
	slack := 1 + float64(len(s.order)-place+3)*1.2e-7 // of float32 sums
	rest, least := 0.0, math.Inf(-1)
	if place > 0 {
		rest = s.below[place-1]
	}
	if s.best.full() {
		least = s.best.least()
	}
	s.candidates = s.candidates[:0]
	enough := float32((least - rest) / slack * (1 - 1e-6)) // below it no sum can do
	for _, i := range s.order[place:] {
		for _, low := range s.parts[i].lows {
			sum := s.sums[low]
			s.sums[low] = 0
			if sum <= 0 || sum < enough {
				continue
			}
			bound := float64(sum) * slack
			if bound+rest >= least && (!restricted || has(only, low)) {
				s.candidates = append(s.candidates, candidate{low, bound})
			}
		}
	}
}

// denseMost is how many postings a candidate a part may have for reading all of it
// to be faster than looking each candidate up.
const denseMost = 20

// lookUp adds the part at a place to the candidates and drops those that have
// fallen behind.
func (s *search) lookUp(place int) {
	p := &s.parts[s.order[place]]
	rest, least := 0.0, math.Inf(-1)
	if place > 0 {
		rest = s.below[place-1]
	}
	if s.best.full() {
		least = s.best.least()
	}
	dense := len(p.lows) < denseMost*len(s.candidates)
	if dense {
		for i, low := range p.lows {
			s.places[low] = uint16(i)
		}
	}
	kept, at, last := s.candidates[:0], 0, uint16(0)
	for _, c := range s.candidates {
		if dense {
			at = int(s.places[c.low])
		} else {
			if c.low < last {
				at = 0
			}
			last = c.low
			at = gallop(p.lows, at, c.low)
		}
		if at < len(p.lows) && p.lows[at] == c.low {
			c.bound += p.at(at) * (1 + 1e-12)
		}
		if (c.bound+rest)*(1+1e-12) >= least {
			kept = append(kept, c)
		}
	}
	s.candidates = kept
}

// gallop is the first place from at on where lows is not below low.
func gallop(lows []uint16, at int, low uint16) int {
	step := 1
	end := at
	for end < len(lows) && lows[end] < low {
		at = end + 1
		end += step
		step *= 2
	}
	end = min(end, len(lows))
	for at < end {
		if mid := (at + end) / 2; lows[mid] < low {
			at = mid + 1
		} else {
			end = mid
		}
	}
	return at
}

// seek is the first place where lows is not below low. It begins where low would
// stand were they evenly spread, from which a random list is some √n/2 places off.
func seek(lows []uint16, low uint16) int {
	n := len(lows)
	at := int(uint64(low) * uint64(n) >> windowBits)
	step := 1 << (bits.Len(uint(n)) / 2)
	from, to := at, at
	if at < n && lows[at] < low {
		for to < n && lows[to] < low {
			from = to + 1
			to += step
			step *= 2
		}
		to = min(to, n)
	} else {
		for from > 0 && lows[from-1] >= low {
			to = from - 1
			from -= min(step, from)
			step *= 2
		}
	}
	for length := to - from; length > 0; {
		half := (length + 1) / 2
		if lows[from+half-1] < low {
			from += half
		}
		length -= half
	}
	return from
}

// scored is the sum of a document that was offered already; no sum lifts it.
var scored = float32(math.Inf(-1))

// liftMost is the largest k for which lift is worth its time.
const liftMost = 64

// lift offers the k documents of the part at a place with the largest sums so far:
// what they score soon tells which terms need not be summed.
func (s *search) lift(w *window, place int, only []uint16, restricted bool) {
	p := &s.parts[s.order[place]]
	k := s.best.k
	if k > liftMost {
		return
	}
	s.picks = s.picks[:0]
	least := float32(0)
	if s.best.full() {
		least = max(least, float32(s.best.least()-s.below[place-1])*0.999)
	}
	for _, low := range p.lows {
		sum := s.sums[low]
		if sum <= least || restricted && !has(only, low) {
			continue
		}
		if len(s.picks) < k {
			s.picks = append(s.picks, low)
		} else {
			s.picks[s.smallest()] = low
		}
		if len(s.picks) == k {
			least = s.sums[s.picks[s.smallest()]]
		}
	}
	for _, low := range s.picks {
		if s.promises(low, place) {
			s.score(w, low)
			s.sums[low] = scored
		}
	}
}

// promises tells whether a document can be among the best, given its sum over the
// parts from a place on.
func (s *search) promises(low uint16, place int) bool {
	if !s.best.full() {
		return true
	}
	least, sum := s.best.least()*(1-1e-6), float64(s.sums[low])
	for i := place - 1; i >= 0; i-- {
		if sum+s.below[i] < least {
			return false
		}
		v, _ := s.parts[s.order[i]].value(low)
		sum += v
	}
	return sum >= least
}

// smallest is the place of the pick with the smallest sum.
func (s *search) smallest() int {
	at := 0
	for i, low := range s.picks {
		if s.sums[low] < s.sums[s.picks[at]] {
			at = i
		}
	}
	return at
}

// sort orders the parts by their bounds, and reckons what those up to a place can
// give together.
func (s *search) sort() {
	s.order, s.below = s.order[:0], s.below[:0]
	for i := range s.parts {
		s.order = append(s.order, i)
	}
	slices.SortFunc(s.order, func(a, b int) int { return cmp.Compare(s.parts[a].bound, s.parts[b].bound) })
	sum := 0.0
	for place, i := range s.order {
		sum += s.parts[i].bound
		s.below = append(s.below, sum*roundingUp(place))
	}
}

// addTo adds a part to its documents' sums.
func (p *part) addTo(sums *[1 << windowBits]float32) {
	if p.wide != nil {
		addTo(sums, p.lows, p.wide, p.fast, float32(p.weight))
	} else {
		addTo(sums, p.lows, p.narrow, p.fast, float32(p.weight))
	}
}

func addTo[C uint16 | uint32](sums *[1 << windowBits]float32, lows []uint16, codes []C, values []float32, weight float32) {
	codes = codes[:len(lows)]
	for i, low := range lows {
		sums[low] += weight * values[codes[i]]
	}
}
