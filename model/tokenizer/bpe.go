package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// bpe is byte-level byte-pair encoding (Sennrich et al., arXiv 1508.07909, on
// bytes as GPT-2 has it): a word begins as one token a byte, and the pair of
// neighbours that was learnt first is merged until none is left.
type bpe struct {
	vocab        map[string]int32
	merges       []string // "left right", the first learnt first
	ignoreMerges bool     // a word that is a token is taken without merging
	unk          string   // stands for a byte without a token; "" drops it, as Hugging Face does

	byteIDs [256]int32 // -1: the byte has no token
	pairs   map[pair]merge

	mu    sync.RWMutex
	cache map[string][]int32
}

type pair struct{ left, right int32 }

// merge is what a pair becomes, and when it was learnt.
type merge struct{ rank, id int32 }

// The cache of words holds the short ones, up to so many, and is then begun anew.
const (
	cacheWords     = 1 << 15
	cacheWordBytes = 64
)

// finish builds the tables of a vocabulary and its merges.
func (m *bpe) finish() error {
	m.cache = map[string][]int32{}
	unkID := int32(-1)
	if m.unk != "" {
		id, ok := m.vocab[m.unk]
		if !ok {
			return fmt.Errorf("tokenizer: unk_token %q is not in the vocabulary", m.unk)
		}
		unkID = id
	}
	for b, r := range byteRunes {
		id, ok := m.vocab[string(r)]
		if !ok {
			id = unkID
		}
		m.byteIDs[b] = id
	}
	m.pairs = make(map[pair]merge, len(m.merges))
	for rank, text := range m.merges {
		left, right, ok := strings.Cut(text, " ")
		if !ok || left == "" || right == "" || strings.Contains(right, " ") {
			return fmt.Errorf("tokenizer: merge %d, %q, is not two tokens", rank, text)
		}
		ids := [3]int32{}
		for i, token := range []string{left, right, left + right} {
			if ids[i], ok = m.vocab[token]; !ok {
				return fmt.Errorf("tokenizer: merge %d, %q: %q is not in the vocabulary", rank, text, token)
			}
		}
		// Of a pair that stands twice the later rank counts, as in Hugging Face's map.
		m.pairs[pair{ids[0], ids[1]}] = merge{int32(rank), ids[2]}
	}
	return nil
}

// encode appends the ids of a word.
func (m *bpe) encode(ids []int32, word string) []int32 {
	if len(word) > cacheWordBytes {
		return append(ids, m.word(word)...)
	}
	m.mu.RLock()
	known, ok := m.cache[word]
	m.mu.RUnlock()
	if !ok {
		known = m.word(word)
		m.mu.Lock()
		if len(m.cache) >= cacheWords {
			clear(m.cache)
		}
		m.cache[strings.Clone(word)] = known
		m.mu.Unlock()
	}
	return append(ids, known...)
}

func (m *bpe) word(word string) []int32 {
	if m.ignoreMerges {
		if id, ok := m.vocab[toAlphabet(word)]; ok {
			return []int32{id}
		}
	}
	w := newMerging(m, word)
	for len(w.queue) > 0 {
		w.apply(m, w.pop())
	}
	return w.ids()
}

// merging is a word on its way: a linked list of tokens, and a heap of the pairs
// that could be merged, the lowest rank first, then the leftmost.
type merging struct {
	symbols []symbol
	queue   []candidate
}

type symbol struct {
	id         int32 // -1 once it was merged into the one before
	prev, next int32 // -1 at the ends
}

type candidate struct {
	merge
	at int32 // index of the left symbol
}

func newMerging(m *bpe, word string) *merging {
	w := &merging{symbols: make([]symbol, 0, len(word))}
	for i := range len(word) {
		if id := m.byteIDs[word[i]]; id >= 0 {
			n := int32(len(w.symbols))
			w.symbols = append(w.symbols, symbol{id, n - 1, n + 1})
		}
	}
	if n := len(w.symbols); n > 0 {
		w.symbols[n-1].next = -1
	}
	for i := range w.symbols {
		w.offer(m, int32(i))
	}
	return w
}

// offer queues the pair that begins at a symbol, if it can be merged.
func (w *merging) offer(m *bpe, at int32) {
	if at < 0 || w.symbols[at].next < 0 {
		return
	}
	left := w.symbols[at]
	if found, ok := m.pairs[pair{left.id, w.symbols[left.next].id}]; ok {
		w.push(candidate{found, at})
	}
}

// apply merges a pair unless one of its tokens has changed since it was queued.
func (w *merging) apply(m *bpe, c candidate) {
	left := &w.symbols[c.at]
	if left.id < 0 || left.next < 0 {
		return
	}
	right := &w.symbols[left.next]
	if found, ok := m.pairs[pair{left.id, right.id}]; !ok || found.id != c.id {
		return
	}
	left.id, right.id = c.id, -1
	left.next = right.next
	if left.next >= 0 {
		w.symbols[left.next].prev = c.at
	}
	w.offer(m, left.prev)
	w.offer(m, c.at)
}

func (w *merging) ids() []int32 {
	ids := make([]int32, 0, len(w.symbols))
	for _, s := range w.symbols {
		if s.id >= 0 {
			ids = append(ids, s.id)
		}
	}
	return ids
}

func (c candidate) before(o candidate) bool {
	return c.rank < o.rank || c.rank == o.rank && c.at < o.at
}

func (w *merging) push(c candidate) {
	w.queue = append(w.queue, c)
	q := w.queue
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q[i].before(q[parent]) {
			return
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

func (w *merging) pop() candidate {
	q := w.queue
	top, last := q[0], len(q)-1
	q[0] = q[last]
	w.queue = q[:last]
	q = w.queue
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q[child].before(q[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}

// vocabulary implements textModel.
func (m *bpe) vocabulary() map[string]int32 { return m.vocab }

// decode implements textModel: the bytes of all tokens, one after another. An id
// without a token is left out, as Hugging Face does.
func (m *bpe) decode(t *Tokenizer, ids []int32) string {
	var data []byte
	for _, id := range ids {
		if token, ok := t.Token(id); ok {
			data = appendToken(data, token)
		}
	}
	return validUTF8(data)
}

// bpePart is the model of a tokenizer.json of type BPE.
type bpePart struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	Unk          *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnk      bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       mergeList        `json:"merges"`
}

// model refuses by name what bpe lacks.
func (p *bpePart) model() (*bpe, error) {
	m := &bpe{vocab: p.Vocab, merges: p.Merges, ignoreMerges: p.IgnoreMerges}
	if p.Unk != nil {
		m.unk = *p.Unk
	}
	switch {
	case p.Dropout != nil && *p.Dropout != 0:
		return nil, fmt.Errorf("tokenizer: model: dropout %v is not supported", *p.Dropout)
	case p.ByteFallback:
		return nil, errors.New("tokenizer: model: byte_fallback is not supported")
	case p.FuseUnk && m.unk != "":
		return nil, errors.New("tokenizer: model: fuse_unk is not supported")
	case p.Prefix != nil && *p.Prefix != "":
		return nil, fmt.Errorf("tokenizer: model: continuing_subword_prefix %q is not supported", *p.Prefix)
	case p.Suffix != nil && *p.Suffix != "":
		return nil, fmt.Errorf("tokenizer: model: end_of_word_suffix %q is not supported", *p.Suffix)
	}
	return m, m.finish()
}
