package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/memopd/memopd-bench/trace"
)

// answered is one request with its response, or why it has none.
type answered struct {
	request  *trace.Request
	response *trace.Response
	err      error
}

// drain answers a queue's requests, up to RequestsMax at once, until it is empty.
// A request that fails ends its own trajectory; a refused server, FailuresMax
// failures in a row and ctx end the run.
func (c *client) drain(ctx context.Context, q trace.Queue, answer func(context.Context, *trace.Request) (*trace.Response, error)) error {
	run := ctx
	ctx, cancel := context.WithCancel(run)
	defer cancel()
	done := make(chan answered, c.RequestsMax)
	var ended error
	for out, inARow := 0, 0; ; {
		for ended == nil && ctx.Err() == nil && out < c.RequestsMax {
			r, ok := q.Next()
			if !ok {
				break
			}
			out++
			go func() {
				response, err := answer(ctx, r)
				done <- answered{r, response, err}
			}()
		}
		if out == 0 {
			return errors.Join(ended, run.Err())
		}
		a := <-done
		out--
		if ended != nil && a.err != nil || ctx.Err() != nil && errors.Is(a.err, ctx.Err()) {
			continue // stopped with the run
		}
		c.stats.requests.Add(1)
		if a.err == nil {
			inARow = 0
			q.Done(a.request, a.response)
			continue
		}
		c.stats.failures.Add(1)
		inARow++
		switch {
		case errors.Is(a.err, ErrRefused):
			ended = a.err
		case inARow >= c.FailuresMax:
			ended = fmt.Errorf("%d requests in a row have failed, the last: %w", inARow, a.err)
		}
		q.Done(a.request, &trace.Response{Err: a.err})
		if ended != nil {
			cancel()
		}
	}
}
