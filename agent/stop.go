package agent

import (
	"slices"
	"strings"
	"sync"
)

// Stopper makes the stop conditions of requests: they hold once the text of an
// output contains one of the tags, however the tokenizer splits it. The context
// is never looked at, so tags in a prompt do not stop anything.
//
// A token costs a table look-up; only one that holds the last byte of a tag has
// the end of the output decoded. The table is shared, safe for many goroutines.
type Stopper struct {
	tok     Tokenizer
	tags    []string
	longest int // bytes of the longest tag

	mu    sync.Mutex
	kinds map[int32]tokenKind
}

type tokenKind uint8

const (
	tokenPlain   tokenKind = iota + 1 // cannot end a tag
	tokenCloser                       // may end a tag
	tokenNothing                      // decodes to nothing
)

// NewStopper makes a Stopper for non-empty tags.
func NewStopper(tok Tokenizer, tags []string) *Stopper {
	s := &Stopper{tok: tok, tags: tags, kinds: map[int32]tokenKind{}}
	for _, tag := range tags {
		s.longest = max(s.longest, len(tag))
	}
	return s
}

// Condition returns a fresh condition for trace.Request.Stopped. It keeps state:
// one output each, called after every id in order.
func (s *Stopper) Condition() func(output []int32) bool {
	// Every kept id decodes to a byte at least, so this many hold a whole tag.
	tail := make([]int32, 0, s.longest+1)
	return func(output []int32) bool {
		if len(output) == 0 {
			return false
		}
		id := output[len(output)-1]
		kind := s.kind(id)
		if kind == tokenNothing {
			return false
		}
		if tail = append(tail, id); len(tail) > s.longest {
			tail = slices.Delete(tail, 0, 1)
		}
		return kind == tokenCloser && s.contained(s.tok.Decode(tail))
	}
}

// StopIndex returns how many leading ids of an output complete a tag, or -1.
func (s *Stopper) StopIndex(output []int32) int {
	stopped := s.Condition()
	for n := 1; n <= len(output); n++ {
		if stopped(output[:n]) {
			return n
		}
	}
	return -1
}

func (s *Stopper) contained(text string) bool {
	for _, tag := range s.tags {
		if strings.Contains(text, tag) {
			return true
		}
	}
	return false
}

func (s *Stopper) kind(id int32) tokenKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, ok := s.kinds[id]
	if !ok {
		kind = s.classify(s.tok.Decode([]int32{id}))
		s.kinds[id] = kind
	}
	return kind
}

func (s *Stopper) classify(text string) tokenKind {
	if text == "" {
		return tokenNothing
	}
	for _, tag := range s.tags {
		if strings.IndexByte(text, tag[len(tag)-1]) >= 0 {
			return tokenCloser
		}
	}
	return tokenPlain
}
