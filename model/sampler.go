package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// Sampler generates responses with a key-value cache and continuous batching: a
// finished row's place is given to the next request at once. A request's draws
// depend on its own seed and context alone, up to rounding of the logits.
//
// Generate belongs to the goroutine that uses libtorch; the weights may change
// between two calls of it.
type Sampler struct {
	Decoder  *Decoder
	Settings trace.Sampler // Seed is not used: each request brings its own

	RowsMax          int     // requests in generation at once
	EOS              []int32 // ids that end an output
	ContextMax       int     // context and output together, in tokens
	TokensPerPrefill int     // contexts run together up to this many tokens
}

// NewSampler returns a sampler with the decoder's own end-of-sequence ids and context limit.
func NewSampler(d *Decoder, settings trace.Sampler, rowsMax int) (*Sampler, error) {
	s := &Sampler{
		Decoder: d, Settings: settings, RowsMax: rowsMax, EOS: d.Config.EOSTokenID,
		ContextMax: d.Config.MaxPositionEmbeddings, TokensPerPrefill: 4096,
	}
	return s, s.validate()
}

func (s *Sampler) validate() error {
	if s.RowsMax < 1 || s.ContextMax < 1 || s.TokensPerPrefill < 1 {
		return fmt.Errorf("sampler: rows %d, context %d, tokens a prefill %d: each must be above 0", s.RowsMax, s.ContextMax, s.TokensPerPrefill)
	}
	return checkSettings(&s.Settings)
}

// Generate answers requests until the queue is drained. A request whose context
// leaves no room for a token is answered with StopContext and no output. A request
// that is malformed (no context, an id outside the vocabulary, MaxNewTokens
// below 1) ends the run with an error, as does a cancelled ctx; requests then in
// generation are not handed back.
//
// Response.Seconds is the model's time for the request: of each step that it took
// part in, the time divided by the rows in it (prefills: by their tokens).
func (s *Sampler) Generate(ctx context.Context, q trace.Queue) error {
	if err := s.validate(); err != nil {
		return err
	}
	r := &generation{Sampler: s, queue: q, cache: newCache(&s.Decoder.Config, s.RowsMax), drawer: drawer{settings: s.Settings}}
	defer r.cache.free()
	return torch.Try(func() (err error) {
		torch.NoGrad(func() { err = r.loop(ctx) })
		return err
	})
}

// generation is the state of one Generate.
type generation struct {
	*Sampler
	queue  trace.Queue
	cache  *cache
	drawer drawer
	rows   []*row // row i of the cache
}

// row is a request in generation.
type row struct {
	request  *trace.Request
	response trace.Response
	rng      *rand.Rand
}

// place is the position of the row's newest token.
func (r *row) place() int { return len(r.request.Context) + len(r.response.Output) - 1 }

func (g *generation) loop(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
		fresh, err := g.admit()
		if err != nil {
			return err
		}
		switch {
		case len(fresh) > 0:
			err = g.start(fresh)
		case len(g.rows) > 0:
			err = g.step()
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// admit takes requests from the queue while there are free rows.
func (g *generation) admit() ([]*row, error) {
	var fresh []*row
	for len(g.rows)+len(fresh) < g.RowsMax {
		request, ok := g.queue.Next()
		if !ok {
			break
		}
		if err := g.check(request); err != nil {
			return nil, err
		}
		if len(request.Context) >= g.ContextMax {
			g.queue.Done(request, &trace.Response{Stop: trace.StopContext})
			continue
		}
		fresh = append(fresh, &row{request: request, rng: rand.New(rand.NewPCG(request.Seed, 0x6d656d6f))})
	}
	return fresh, nil
}

func (g *generation) check(r *trace.Request) error {
	switch {
	case len(r.Context) == 0:
		return errors.New("generate: a request has no context")
	case r.MaxNewTokens < 1:
		return fmt.Errorf("generate: a request asks for %d new tokens", r.MaxNewTokens)
	}
	for i, id := range r.Context {
		if id < 0 || int(id) >= g.Decoder.Vocab() {
			return fmt.Errorf("generate: context id %d at %d is outside the vocabulary of %d", id, i, g.Decoder.Vocab())
		}
	}
	return nil
}

// start runs the contexts of fresh rows, in parts, and draws their first tokens.
func (g *generation) start(fresh []*row) error {
	for len(fresh) > 0 {
		n, tokens := 0, 0
		for n < len(fresh) && (n == 0 || tokens+len(fresh[n].request.Context) <= g.TokensPerPrefill) {
			tokens += len(fresh[n].request.Context)
			n++
		}
		if err := g.prefill(fresh[:n], tokens); err != nil {
			return err
		}
		fresh = fresh[n:]
	}
	g.release()
	return nil
}

func (g *generation) prefill(fresh []*row, tokens int) error {
	begin := time.Now()
	contexts, places := make([][]int32, len(fresh)), make([]int, len(fresh))
	longest := 0
	for i, r := range fresh {
		contexts[i], places[i] = r.request.Context, len(g.rows)+i
		longest = max(longest, min(len(r.request.Context)+r.request.MaxNewTokens, g.ContextMax))
	}
	g.cache.reserve(longest)
	logits := g.Decoder.prefill(g.cache, contexts, places)
	g.rows = append(g.rows, fresh...)
	if err := g.draw(fresh, logits); err != nil {
		return err
	}
	seconds := time.Since(begin).Seconds()
	for _, r := range fresh {
		r.response.Seconds += seconds * float64(len(r.request.Context)) / float64(tokens)
	}
	return nil
}

// step decodes one token of every row.
func (g *generation) step() error {
	begin := time.Now()
	ids, places := make([]int64, len(g.rows)), make([]int, len(g.rows))
	for i, r := range g.rows {
		ids[i] = int64(r.response.Output[len(r.response.Output)-1])
		places[i] = r.place()
	}
	logits := g.Decoder.decodeStep(g.cache, ids, places)
	if err := g.draw(g.rows, logits); err != nil {
		return err
	}
	share := time.Since(begin).Seconds() / float64(len(g.rows))
	for _, r := range g.rows {
		r.response.Seconds += share
	}
	g.release()
	return nil
}

// draw appends a token to each row and notes why a row stops.
func (g *generation) draw(rows []*row, logits []float32) error {
	vocab := g.Decoder.Vocab()
	for i, r := range rows {
		id, logProb, err := g.drawer.draw(logits[i*vocab:(i+1)*vocab], r.rng.Float64())
		if err != nil {
			return err
		}
		out := &r.response
		out.Output, out.LogProbs = append(out.Output, id), append(out.LogProbs, logProb)
		out.Stop = g.stop(r, id)
	}
	return nil
}

// stop says why a row ends with the id just drawn, "" while it goes on.
func (g *generation) stop(r *row, id int32) trace.StopReason {
	tag := r.request.Stopped != nil && r.request.Stopped(r.response.Output)
	for _, eos := range g.EOS {
		if id == eos {
			return trace.StopEOS
		}
	}
	switch {
	case tag:
		return trace.StopTag
	case len(r.response.Output) >= r.request.MaxNewTokens:
		return trace.StopLength
	case r.place()+1 >= g.ContextMax:
		return trace.StopContext
	}
	return ""
}

// release hands finished rows back and closes the gaps in the cache with the last rows.
func (g *generation) release() {
	var done []*row
	for i := 0; i < len(g.rows); {
		r := g.rows[i]
		if r.response.Stop == "" {
			i++
			continue
		}
		done = append(done, r)
		last := len(g.rows) - 1
		if moved := g.rows[last]; i < last && moved.response.Stop == "" {
			g.cache.move(last, i, moved.place())
		}
		g.rows[i] = g.rows[last]
		g.rows = g.rows[:last]
	}
	for _, r := range done {
		g.queue.Done(r.request, &r.response)
	}
}
