package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// bodyMax is the most bytes of an answer that are read: 1,000 ids with
// their log-probs are some 100 KiB.
const bodyMax = 64 << 20

// client sends requests to one server, again where that may help.
type client struct {
	Connection
	base  string // URL before the paths
	shown string // the same for messages
	http  *http.Client
	sleep func(context.Context, time.Duration) error // replaced by tests
	stats stats
}

// stats counts what was sent and what came back.
type stats struct {
	requests, retries, failures, truncated, closed, promptTokens, outputTokens atomic.Int64
}

// Stats says what was sent and what came back so far.
type Stats struct {
	Requests     int64 `json:"requests"`      // answered or failed for good
	Retries      int64 `json:"retries"`       // attempts beyond each request's first
	Failures     int64 `json:"failures"`      // failed for good
	Truncated    int64 `json:"truncated"`     // answers that the server cut at the token limit
	ClosedTags   int64 `json:"closed_tags"`   // stop tags that a chat server left out and that were put back
	PromptTokens int64 `json:"prompt_tokens"` // as the server counts
	OutputTokens int64 `json:"output_tokens"` // as the server counts
}

// Stats may be called at any time.
func (c *client) Stats() Stats {
	s := &c.stats
	return Stats{
		Requests: s.requests.Load(), Retries: s.retries.Load(), Failures: s.failures.Load(),
		Truncated: s.truncated.Load(), ClosedTags: s.closed.Load(),
		PromptTokens: s.promptTokens.Load(), OutputTokens: s.outputTokens.Load(),
	}
}

func newClient(server string, c Connection) (*client, error) {
	base, shown, err := baseURL(server)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = c.RequestsMax
	return &client{Connection: c, base: base, shown: shown, http: &http.Client{Transport: transport}, sleep: sleep}, nil
}

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

// passing is an error that another attempt may not meet.
type passing struct {
	error
	after time.Duration // the server asked to wait so long
}

func (p passing) Unwrap() error { return p.error }

// call sends body (nil: a GET) and decodes the answer, in as many attempts as it
// takes. It returns the seconds of the attempt that succeeded.
func (c *client) call(ctx context.Context, path string, body any, decode func([]byte) error) (float64, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	for attempt := 1; ; attempt++ {
		begin := time.Now()
		err := c.once(ctx, path, data, decode)
		if err == nil {
			return time.Since(begin).Seconds(), nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		var again passing
		if !errors.As(err, &again) {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if attempt >= c.AttemptsMax {
			return 0, fmt.Errorf("%s, after %d attempts: %w", path, attempt, err)
		}
		c.stats.retries.Add(1)
		if err := c.sleep(ctx, c.pause(attempt, again.after)); err != nil {
			return 0, err
		}
	}
}

// pause is how long to wait after an attempt: what the server asked for, or else
// half to all of a time that doubles, so that many requests that failed together
// do not come back together.
func (c *client) pause(attempt int, asked time.Duration) time.Duration {
	longest := c.BackoffSeconds
	for range attempt - 1 {
		longest = min(2*longest, c.BackoffMaxSeconds)
	}
	longest = min(longest, c.BackoffMaxSeconds)
	own := seconds(longest * (0.5 + 0.5*rand.Float64()))
	return max(own, min(asked, seconds(c.BackoffMaxSeconds)))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// once is one attempt.
func (c *client) once(ctx context.Context, path string, data []byte, decode func([]byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(c.TimeoutSeconds))
	defer cancel()
	method, body := http.MethodGet, io.Reader(nil)
	if data != nil {
		method, body = http.MethodPost, bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if data != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.broken(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, bodyMax+1))
	if err != nil {
		return c.broken(ctx, fmt.Errorf("the answer breaks off after %d bytes: %w", len(text), err))
	}
	if resp.StatusCode != http.StatusOK {
		return statusError(resp, text)
	}
	if len(text) > bodyMax {
		return fmt.Errorf("the answer is longer than %d bytes", bodyMax)
	}
	kind := resp.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
		return passing{error: fmt.Errorf("the answer is %q, not JSON: %s", kind, excerpt(text))}
	}
	return decode(text)
}

// broken is the error of a connection that failed or took too long.
func (c *client) broken(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v: %w", seconds(c.TimeoutSeconds), err)
	}
	return passing{error: err}
}

// statusError judges an answer that is not 200.
func statusError(resp *http.Response, text []byte) error {
	err := fmt.Errorf("status %d: %s", resp.StatusCode, excerpt(text))
	switch code := resp.StatusCode; {
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return passing{err, retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	case code == http.StatusUnauthorized, code == http.StatusForbidden,
		code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code >= 300 && code < 400:
		return fmt.Errorf("%w: %w (is the URL right, and the key?)", ErrRefused, err)
	}
	return err
}

// retryAfter reads the header: seconds or a date; 0 when it is neither.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// parse decodes JSON; what is cut or no JSON may be whole next time.
func parse(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return passing{error: fmt.Errorf("%w in %s", err, excerpt(text))}
	}
	return nil
}

// excerpt is the beginning of an answer on one line, for messages.
func excerpt(text []byte) string {
	const most = 300
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), 4*most)]), "\uFFFD")), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	if s == "" {
		return "nothing"
	}
	return s
}
