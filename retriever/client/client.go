// Package client searches through servers that others run: Search-R1's and MEM1's
// POST /retrieve ([SearchR1]), OpenSearch and Elasticsearch ([OpenSearch]).
//
// A request that meets a server error (5xx, 429), a broken connection or its time
// limit is sent again, after a pause that doubles or that the server asks for. What
// stays unanswered, and an answer that is not the contract's, is an error that wraps
// [ErrUnavailable]; a request that the server refuses (another 4xx) is [ErrRefused].
// Fewer hits than were asked for, and none, are results.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/memopd/memopd-bench/retriever"
)

// What a search through a server can end with.
var (
	ErrUnavailable = errors.New("the retrieval server gives no answer")
	ErrRefused     = errors.New("the retrieval server refuses the request")
)

// Options say how a server is asked; [DefaultOptions] has good ones.
type Options struct {
	TimeoutSeconds    float64 // of one attempt
	AttemptsMax       int
	BackoffSeconds    float64 // the first pause; each next one is twice as long
	BackoffMaxSeconds float64
}

// DefaultOptions gives a server that is down 8 to 16 seconds to come back, and a slow
// one two minutes.
func DefaultOptions() Options {
	return Options{TimeoutSeconds: 20, AttemptsMax: 6, BackoffSeconds: 0.5, BackoffMaxSeconds: 10}
}

func (o Options) check() error {
	for _, x := range []struct {
		name  string
		value float64
	}{{"timeout", o.TimeoutSeconds}, {"backoff", o.BackoffSeconds}, {"longest backoff", o.BackoffMaxSeconds}} {
		if !(x.value > 0 && x.value < 1e6) {
			return fmt.Errorf("retrieval client: a %s of %g seconds", x.name, x.value)
		}
	}
	if o.AttemptsMax < 1 {
		return fmt.Errorf("retrieval client: %d attempts, at least 1 is needed", o.AttemptsMax)
	}
	return nil
}

// SearchR1 is a client of one server. It is safe for many goroutines.
type SearchR1 struct {
	caller
	url  string
	http *http.Client
}

var _ retriever.Searcher = (*SearchR1)(nil)

// New makes a client of the server at http://HOST:PORT; a path is kept, and /retrieve
// is added unless it ends so. Nothing is sent yet.
func New(server string, o Options) (*SearchR1, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("retrieval client: %q is no URL of the form http://HOST:PORT", server)
	}
	if !strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/retrieve") {
		u.Path = strings.TrimRight(u.Path, "/") + "/retrieve"
	}
	return &SearchR1{caller: newCaller(u.Redacted(), o), url: u.String(), http: &http.Client{Transport: transport()}}, nil
}

// transport is one whose connections many goroutines reuse.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	return t
}

// Search implements retriever.Searcher. Servers know no worlds: one that is not
// empty is an error.
func (c *SearchR1) Search(ctx context.Context, world, query string, k int) ([]retriever.Hit, error) {
	body := map[string]any{"queries": []string{query}, "topk": k, "return_scores": true}
	return c.search(ctx, world, k, body, func(ctx context.Context, body []byte) ([]retriever.Hit, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := answerOf(c.http.Do(r))
		if err != nil {
			return nil, err
		}
		return decode(answer)
	})
}

// Check makes one search, so that a wrong address is found before a run begins.
func (c *SearchR1) Check(ctx context.Context) error {
	_, err := c.Search(ctx, "", "the", 1)
	return err
}

// caller sends searches, again where that may help.
type caller struct {
	shown   string // the server, for messages
	options Options
	sleep   func(context.Context, time.Duration) error // replaced by tests
	stats   *counters
}

type counters struct{ searches, retries, failures atomic.Int64 }

func newCaller(shown string, o Options) caller {
	return caller{shown: shown, options: o, sleep: sleep, stats: &counters{}}
}

// Stats says what became of searches so far.
type Stats struct {
	Searches int64 `json:"searches"` // answered or failed for good
	Retries  int64 `json:"retries"`  // attempts beyond each search's first
	Failures int64 `json:"failures"` // failed for good
}

// Stats may be called at any time.
func (c *caller) Stats() Stats {
	return Stats{c.stats.searches.Load(), c.stats.retries.Load(), c.stats.failures.Load()}
}

// search checks what is asked and makes the attempts, each by once.
func (c *caller) search(ctx context.Context, world string, k int, request any, once attempt) ([]retriever.Hit, error) {
	if world != "" {
		return nil, fmt.Errorf("search %s: worlds such as %q are for local indexes", c.shown, world)
	}
	if k < 1 {
		return nil, fmt.Errorf("search %s: k is %d, at least 1 is needed", c.shown, k)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("search %s: %w", c.shown, err)
	}
	hits, err := c.insist(ctx, body, once)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.stats.searches.Add(1)
	if err != nil {
		c.stats.failures.Add(1)
		return nil, fmt.Errorf("search %s: %w", c.shown, err)
	}
	return hits[:min(k, len(hits))], nil
}

// attempt sends a body once.
type attempt func(ctx context.Context, body []byte) ([]retriever.Hit, error)

// passing is an error that another attempt may not meet.
type passing struct {
	error
	after time.Duration // the server asked to wait so long
}

func (p passing) Unwrap() error { return p.error }

// insist makes as many attempts as are allowed.
func (c *caller) insist(ctx context.Context, body []byte, once attempt) ([]retriever.Hit, error) {
	for attempt := 1; ; attempt++ {
		within, cancel := context.WithTimeout(ctx, seconds(c.options.TimeoutSeconds))
		hits, err := once(within, body)
		cancel()
		var again passing
		switch {
		case err == nil:
			return hits, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.As(err, &again):
			return nil, err
		case attempt >= c.options.AttemptsMax:
			return nil, fmt.Errorf("%w, after %d attempts: %w", ErrUnavailable, attempt, again.error)
		}
		c.stats.retries.Add(1)
		if err := c.sleep(ctx, c.pause(attempt, again.after)); err != nil {
			return nil, err
		}
	}
}

// pause is how long to wait after an attempt: what the server asked for, or half to
// all of a time that doubles, so that searches that failed together do not come back
// together.
func (c *caller) pause(attempt int, asked time.Duration) time.Duration {
	longest := c.options.BackoffSeconds
	for range attempt - 1 {
		longest = min(2*longest, c.options.BackoffMaxSeconds)
	}
	own := seconds(min(longest, c.options.BackoffMaxSeconds) * (0.5 + 0.5*rand.Float64()))
	return max(own, min(asked, seconds(c.options.BackoffMaxSeconds)))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// answerMax is the most bytes of an answer that are read.
const answerMax = 64 << 20

// answerOf reads the answer to a request, or says why there is none.
func answerOf(w *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, passing{error: err}
	}
	defer w.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(w.Body, answerMax+1))
	switch {
	case err != nil:
		return nil, passing{error: fmt.Errorf("the answer breaks off: %w", err)}
	case len(answer) > answerMax:
		return nil, fmt.Errorf("%w: the answer is longer than %d bytes", ErrUnavailable, answerMax)
	case w.StatusCode >= 500 || w.StatusCode == http.StatusTooManyRequests:
		return nil, passing{fmt.Errorf("status %d: %s", w.StatusCode, excerpt(answer)), retryAfter(w.Header)}
	case w.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: status %d: %s", ErrRefused, w.StatusCode, excerpt(answer))
	}
	return answer, nil
}

// retryAfter is the pause that a server asks for in seconds; a date is not read.
func retryAfter(h http.Header) time.Duration {
	s, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || !(s > 0 && s < 1e6) {
		return 0
	}
	return seconds(s)
}

// excerpt is the beginning of an answer, for messages.
func excerpt(answer []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(answer), "?")), " ")
	if text == "" {
		return "nothing"
	}
	if runes := []rune(text); len(runes) > 200 {
		return string(runes[:200]) + "…"
	}
	return text
}
