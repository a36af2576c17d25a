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
// Keys and values of the requests' prefixes are kept for the length of a Generate
// and serve later calls of the trajectory, other samples of the task, and any
// context that begins likewise.
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
	PrefixBytesMax   int64   // memory for kept keys and values, in bytes; 0 keeps none
}

// NewSampler returns a sampler with the decoder's own end-of-sequence ids and context limit.
func NewSampler(d *Decoder, settings trace.Sampler, rowsMax int) (*Sampler, error) {
	s := &Sampler{
		Decoder: d, Settings: settings, RowsMax: rowsMax, EOS: d.Config.EOSTokenID,
		ContextMax: d.Config.MaxPositionEmbeddings, TokensPerPrefill: 4096, PrefixBytesMax: 1 << 30,
	}
	return s, s.validate()
}

func (s *Sampler) validate() error {
	if s.RowsMax < 1 || s.ContextMax < 1 || s.TokensPerPrefill < 1 {
		return fmt.Errorf("sampler: rows %d, context %d, tokens a prefill %d: each must be above 0", s.RowsMax, s.ContextMax, s.TokensPerPrefill)
	}
	if s.PrefixBytesMax < 0 {
		return fmt.Errorf("sampler: %d bytes for prefixes", s.PrefixBytesMax)
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
// part in, the time divided by the rows in it (prefills: by the tokens that were run
// for it).
func (s *Sampler) Generate(ctx context.Context, q trace.Queue) error {
	if err := s.validate(); err != nil {
		return err
	}
	return torch.Try(func() (err error) {
		decoder, free := s.Decoder.forSampling()
		defer free()
		g := &generation{
			Sampler: s, queue: q, decoder: decoder, cache: newCache(decoder, s.RowsMax),
			prefixes: newPrefixStore(decoder, s.PrefixBytesMax), drawer: drawer{settings: s.Settings},
		}
		defer g.free()
		torch.NoGrad(func() { err = g.loop(ctx) })
		return err
	})
}

// generation is the state of one Generate.
type generation struct {
	*Sampler
	queue    trace.Queue
	decoder  *Decoder // the sampler's, its weights made ready
	cache    *cache
	prefixes *prefixStore
	drawer   drawer
	rows     []*row // row i of the cache
}

func (g *generation) free() {
	g.cache.free()
	g.prefixes.free()
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
		if err := g.prefill(fresh[:n]); err != nil {
			return err
		}
		fresh = fresh[n:]
	}
	g.release()
	return nil
}

func (g *generation) prefill(fresh []*row) error {
	begin := time.Now()
	openings := make([]opening, len(fresh))
	longest := 0
	for i, r := range fresh {
		openings[i] = opening{ids: r.request.Context, prefix: min(r.request.PrefixLength, len(r.request.Context)), row: len(g.rows) + i}
		longest = max(longest, min(len(r.request.Context)+r.request.MaxNewTokens, g.ContextMax))
	}
	s := torch.NewScope()
	defer s.Close()
	g.cache.reserve(longest)
	plan := g.prefixes.plan(openings)
	logits := g.decoder.prefill(g.cache, g.prefixes, plan)
	g.rows = append(g.rows, fresh...)
	if err := g.draw(fresh, logits); err != nil {
		return err
	}
	seconds := time.Since(begin).Seconds()
	for i, r := range fresh {
		r.response.Seconds += seconds * float64(plan.ran[i]) / float64(len(plan.layout.ids))
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
	s := torch.NewScope()
	defer s.Close()
	if err := g.draw(g.rows, g.decoder.decodeStep(g.cache, ids, places)); err != nil {
		return err
	}
	share := time.Since(begin).Seconds() / float64(len(g.rows))
	for _, r := range g.rows {
		r.response.Seconds += share
	}
	g.release()
	return nil
}

// draw appends a token to each row and notes why a row stops. logits is (rows, V).
func (g *generation) draw(rows []*row, logits *torch.Tensor) error {
	u := make([]float64, len(rows))
	for i, r := range rows {
		u[i] = r.rng.Float64()
	}
	choices, err := choose(&g.Settings, &g.drawer, logits, u)
	if err != nil {
		return err
	}
	for i, r := range rows {
		out := &r.response
		out.Output, out.LogProbs = append(out.Output, choices[i].id), append(out.LogProbs, choices[i].logProb)
		out.Stop = g.stop(r, choices[i].id)
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
