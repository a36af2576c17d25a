package torch

import (
	"sync/atomic"

	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

// Scope owns the tensors made while it is the innermost open one.
type Scope struct {
	parent  *Scope
	tensors []*Tensor
	closed  bool
}

var (
	innermost *Scope
	live      atomic.Int64
	spare     [][]*Tensor // emptied lists for later scopes
	doomed    []ctorch.Handle
)

// NewScope opens a scope inside the innermost one.
func NewScope() *Scope {
	s := &Scope{parent: innermost}
	if n := len(spare); n > 0 {
		s.tensors, spare = spare[n-1], spare[:n-1]
	}
	innermost = s
	return s
}

// Close frees the tensors of the scope, and of any scope inside that was left open. Closing twice does nothing.
func (s *Scope) Close() {
	for !s.closed {
		innermost.free()
	}
}

// free closes one scope, the innermost.
func (s *Scope) free() {
	doomed = doomed[:0]
	for i, t := range s.tensors {
		if t != nil {
			doomed = append(doomed, t.h)
			t.h, t.scope = 0, nil
		}
		s.tensors[i] = nil
	}
	ctorch.Free(doomed)
	live.Add(int64(-len(doomed)))
	spare = append(spare, s.tensors[:0])
	s.tensors, s.closed, innermost = nil, true, s.parent
}

// Keep moves t to the scope around s, or out of all scopes where there is none, and returns t.
func (s *Scope) Keep(t *Tensor) *Tensor {
	if t != nil {
		t.leave()
		s.parent.adopt(t)
	}
	return t
}

// adopt registers t; a nil scope leaves it to Free.
func (s *Scope) adopt(t *Tensor) {
	if s == nil {
		t.scope = nil
		return
	}
	t.scope, t.slot = s, len(s.tensors)
	s.tensors = append(s.tensors, t)
}

// Keep moves t one scope out and returns t.
func (t *Tensor) Keep() *Tensor {
	if t != nil && t.scope != nil {
		t.scope.Keep(t)
	}
	return t
}

// Own takes t out of all scopes, as parameters and optimizer state are, and returns t; Free ends it.
func (t *Tensor) Own() *Tensor {
	t.leave()
	return t
}

// leave takes t out of its scope.
func (t *Tensor) leave() {
	if t.scope != nil {
		t.scope.tensors[t.slot] = nil
		t.scope = nil
	}
}

// Free ends t now. Freeing nil, or twice, does nothing.
func (t *Tensor) Free() {
	if t == nil || t.h == 0 {
		return
	}
	t.leave()
	h := [1]ctorch.Handle{t.h}
	ctorch.Free(h[:])
	t.h = 0
	live.Add(-1)
}

// Live counts the tensors that are neither freed nor in a closed scope.
func Live() int { return int(live.Load()) }
