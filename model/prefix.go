package model

import (
	"slices"

	"github.com/memopd/memopd-bench/torch"
)

// reuseMin is how many tokens in common make it worth while to attend to kept
// keys instead of reckoning them again.
const reuseMin = 8

// prefixStore keeps keys and values of token sequences with which other
// contexts begin too, least recently used first, up to bytesMax.
type prefixStore struct {
	bytesMax, bytesPerToken int64
	entries                 []*prefixEntry
}

// prefixEntry is a sequence with its rotated keys and values, one tensor each a
// layer, (len(ids), K, E).
type prefixEntry struct {
	ids          []int32
	keys, values []*torch.Tensor
}

func newPrefixStore(d *Decoder, bytesMax int64) *prefixStore {
	c := &d.Config
	return &prefixStore{
		bytesMax:      bytesMax,
		bytesPerToken: int64(2 * c.NumHiddenLayers * c.NumKeyValueHeads * c.HeadDim * d.compute().Size()),
	}
}

// fits tells whether a sequence of so many tokens can be kept at all.
func (s *prefixStore) fits(tokens int) bool { return int64(tokens)*s.bytesPerToken <= s.bytesMax }

// match is the entry that begins most like ids, the one used last among equal
// ones, with the number of tokens in common; nil where too few are.
func (s *prefixStore) match(ids []int32) (*prefixEntry, int) {
	best, at := reuseMin, -1
	for i, e := range s.entries {
		if n := commonLength(e.ids, ids); n >= best {
			best, at = n, i
		}
	}
	if at < 0 {
		return nil, 0
	}
	e := s.entries[at]
	s.entries = append(slices.Delete(s.entries, at, at+1), e)
	return e, best
}

// put keeps a sequence; entries with which it begins serve no more.
func (s *prefixStore) put(e *prefixEntry) {
	s.entries = slices.DeleteFunc(s.entries, func(old *prefixEntry) bool {
		covered := len(old.ids) <= len(e.ids) && commonLength(old.ids, e.ids) == len(old.ids)
		if covered {
			old.free()
		}
		return covered
	})
	s.entries = append(s.entries, e)
}

// trim frees what was not used for longest, down to the limit.
func (s *prefixStore) trim() {
	var bytes int64
	for _, e := range s.entries {
		bytes += int64(len(e.ids)) * s.bytesPerToken
	}
	for bytes > s.bytesMax {
		bytes -= int64(len(s.entries[0].ids)) * s.bytesPerToken
		s.entries[0].free()
		s.entries = s.entries[1:]
	}
}

func (s *prefixStore) free() {
	for _, e := range s.entries {
		e.free()
	}
	s.entries = nil
}

func (e *prefixEntry) free() {
	for _, t := range append(e.keys, e.values...) {
		t.Free()
	}
}

// commonLength is the number of leading ids that a and b share.
func commonLength(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
