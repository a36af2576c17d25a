package torch

import (
	"strings"
)

// Error is an operator's refusal, on one line.
type Error struct {
	Op      string // the operator, such as "aten::matmul"
	Args    string // types and shapes of what it was given
	Message string // the first line of libtorch's own words
}

// Error says what was called, with what, and why it failed.
func (e *Error) Error() string {
	if e.Args == "" {
		return "torch: " + e.Op + ": " + e.Message
	}
	return "torch: " + e.Op + "(" + e.Args + "): " + e.Message
}

// Try runs f and returns its error, or the *Error that an operator in it panicked with. Other panics go on. Scopes that f
// left open are closed.
func Try(f func() error) (err error) {
	outer := innermost
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		e, ok := r.(*Error)
		if !ok {
			panic(r)
		}
		for innermost != outer && innermost != nil {
			innermost.free()
		}
		err = e
	}()
	return f()
}

// raise panics with msg, unless it is empty.
func raise(op, msg string, tensors ...*Tensor) {
	if msg == "" {
		return
	}
	shapes := make([]string, len(tensors))
	for i, t := range tensors {
		shapes[i] = t.String()
	}
	panic(&Error{Op: op, Args: strings.Join(shapes, ", "), Message: firstLine(msg)})
}

// firstLine cuts libtorch's message, which may go on with a C++ back trace.
func firstLine(msg string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(msg), "\n")
	return line
}
