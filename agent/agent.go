// Package agent runs compact-memory agents: it renders prompts, parses what the
// model wrote, asks the searcher, and updates the context that the next call
// sees (MEM1's protocol, arXiv 2506.15841). It knows text, token ids and its own
// small interfaces; gold answers never reach it.
package agent

import (
	"context"
	"errors"

	"github.com/memopd/memopd-bench/trace"
)

// Task is what the agent is told of a task.
type Task struct {
	ID        string
	World     string // restricts searches; "" is everything
	Questions []string
}

// Document is a search hit as the agent shows it to the model.
type Document struct {
	ID, Title, Text string
}

// ErrSearchUnavailable is what a searcher's error wraps when the search may work the
// next time: the agent is told, and goes on. Any other error ends the trajectory.
var ErrSearchUnavailable = errors.New("the search is unavailable")

// Searcher answers queries. It must be safe for several goroutines.
type Searcher interface {
	Search(ctx context.Context, world, query string, k int) ([]Document, error)
}

// Policy produces responses for the requests of a queue until it is drained.
type Policy interface {
	Generate(ctx context.Context, q trace.Queue) error
}

// Tokenizer turns text to ids and back. Encode adds no special tokens of its
// own; Decode is used for parsing alone, never to make ids again.
type Tokenizer interface {
	Decoder
	Encode(text string) []int32
}
