package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultAttempts = 6
	defaultStall    = 60 * time.Second
	firstPause      = time.Second
	longestPause    = 30 * time.Second
	longestWait     = 10 * time.Minute // of a Retry-After that is obeyed
	mostRedirects   = 10
	largestJSON     = 64 << 20 // bytes
	largestMessage  = 500      // bytes of an error's body that are shown
)

// refusedRedirect is a redirect that is not followed.
type refusedRedirect struct{ error }

// client is the HTTP client with this package's rules for redirects.
func (d *Downloader) client() *http.Client {
	c := http.Client{}
	if d.HTTP != nil {
		c = *d.HTTP
	}
	if c.Transport == nil {
		c.Transport = transport
	}
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		from := via[len(via)-1].URL
		switch {
		case req.Method == http.MethodHead && req.Response.Header.Get("X-Linked-Etag") != "":
			return http.ErrUseLastResponse // says all there is to know
		case len(via) >= mostRedirects:
			return &refusedRedirect{fmt.Errorf("more than %d redirects", mostRedirects)}
		case from.Scheme == "https" && req.URL.Scheme != "https":
			return &refusedRedirect{fmt.Errorf("redirect to %s would leave https", bare(req.URL))}
		case req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme:
			// net/http keeps it for subdomains and other ports; a token is for one host.
			req.Header.Del("Authorization")
		}
		return nil
	}
	return &c
}

// transport does not wait for ever for a connection or a first byte, and leaves
// content as it is sent.
var transport = &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
	ForceAttemptHTTP2:     true,
	TLSHandshakeTimeout:   20 * time.Second,
	ResponseHeaderTimeout: 60 * time.Second,
	IdleConnTimeout:       90 * time.Second,
	DisableCompression:    true,
}

// send asks once. Any status of 400 or more is an error, transient where the
// server may answer better later.
func (d *Downloader) send(ctx context.Context, method, address, token string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, fmt.Errorf("url %q: %w", address, err)
	}
	place := bare(req.URL)
	for key, values := range header {
		req.Header[key] = values
	}
	req.Header.Set("User-Agent", "memopd-bench")
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges are of the file itself
	if token != "" && mayCarryToken(req.URL) {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := d.client().Do(req)
	if err != nil {
		return nil, netError(ctx, place, err)
	}
	if resp.StatusCode < 400 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, statusError(place, resp)
}

// mayCarryToken: not in the clear, but for a server on this machine.
func mayCarryToken(u *url.URL) bool {
	if u.Scheme == "https" || u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

func statusError(place string, resp *http.Response) error {
	e := &StatusError{URL: place, Code: resp.StatusCode, Reason: resp.Header.Get("X-Error-Code"), Message: resp.Header.Get("X-Error-Message")}
	if e.Message == "" && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, largestMessage)) // an explanation, if it comes
		e.Message = strings.TrimSpace(string(body))
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		if resp.StatusCode < 500 || resp.StatusCode == http.StatusNotImplemented {
			return e
		}
	}
	return &transient{error: e, after: resp.Header.Get("Retry-After"), connected: true}
}

// tries counts the faults in a row and waits between them.
type tries struct {
	d         *Downloader
	faults    int
	connected bool // the host has answered before, so a lost connection may come back
}

// again waits before the next try; it returns the error where there is to be none.
func (t *tries) again(ctx context.Context, err error) error {
	var fault *transient
	if !errors.As(err, &fault) {
		return err
	}
	t.connected = t.connected || fault.connected
	t.faults++
	most := t.d.attempts()
	if !t.connected {
		most = min(most, 2)
	}
	if t.faults >= most {
		if most > 1 {
			return fmt.Errorf("%w (tried %d times)", fault.error, t.faults)
		}
		return fault.error
	}
	pause, err := t.d.pause(t.faults, fault.after)
	if err != nil {
		return fmt.Errorf("%w: %w", fault.error, err)
	}
	t.d.note("%v; trying again in %s", fault.error, pause.Round(time.Millisecond))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

func (d *Downloader) attempts() int {
	if d.Attempts > 0 {
		return d.Attempts
	}
	return defaultAttempts
}

// pause is the time to wait after the nth fault: what the server asked for, else
// one that doubles, with some chance in it so that processes do not come back
// together.
func (d *Downloader) pause(n int, after string) (time.Duration, error) {
	if wait, ok := retryAfter(after, time.Now()); ok {
		if wait > longestWait {
			return 0, fmt.Errorf("the server asks to wait %s", wait.Round(time.Second))
		}
		return wait, nil
	}
	first := d.FirstPause
	if first <= 0 {
		first = firstPause
	}
	wait := min(first<<min(n-1, 10), longestPause)
	return wait/2 + rand.N(wait/2+1), nil
}

// retryAfter reads a Retry-After header: seconds or a date.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseInt(strings.TrimSpace(header), 10, 32); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// getJSON reads a JSON answer into v, with retries.
func (d *Downloader) getJSON(ctx context.Context, address, token string, v any) error {
	t := tries{d: d}
	for {
		err := d.getJSONOnce(ctx, address, token, v)
		if err == nil {
			return nil
		}
		if err := t.again(ctx, err); err != nil {
			return err
		}
	}
}

func (d *Downloader) getJSONOnce(outer context.Context, address, token string, v any) error {
	ctx, cancel := context.WithTimeout(outer, 2*d.stall())
	defer cancel()
	resp, err := d.send(ctx, http.MethodGet, address, token, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return d.stalled(outer, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, largestJSON))
	if err != nil {
		return d.stalled(outer, netError(ctx, bare(resp.Request.URL), err))
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: not the JSON that is expected: %w", bare(resp.Request.URL), err)
	}
	return nil
}

// stalled tells the end of one try's own time, which is worth another, from the
// caller's.
func (d *Downloader) stalled(outer context.Context, err error) error {
	if outer.Err() != nil {
		return outer.Err()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &transient{error: errors.New("the server sent nothing for too long"), connected: true}
	}
	return err
}

func (d *Downloader) stall() time.Duration {
	if d.Stall > 0 {
		return d.Stall
	}
	return defaultStall
}

func (d *Downloader) note(format string, args ...any) {
	if d.Note != nil {
		d.Note(fmt.Sprintf(format, args...))
	}
}
