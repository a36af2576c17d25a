package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// What callers tell apart; errors.Is finds them in what this package returns.
var (
	// ErrUnreachable: no connection to the host came about.
	ErrUnreachable = errors.New("host cannot be reached")
	// ErrAccess: the host wants a token, or one with more rights.
	ErrAccess = errors.New("access refused")
	// ErrNotFound: there is no such repository, revision or file.
	ErrNotFound = errors.New("not found")
	// ErrMismatch: what came is not what was promised, in size or hash.
	ErrMismatch = errors.New("content is not what was expected")
	// ErrOffline: a download is needed and HF_HUB_OFFLINE forbids it.
	ErrOffline = errors.New("downloads are turned off by HF_HUB_OFFLINE")
)

// StatusError is an answer that is not the file. It is ErrAccess for 401 and
// 403 and ErrNotFound for 404 and 410.
type StatusError struct {
	URL     string // without its query, which may hold a signature
	Code    int    // HTTP status
	Reason  string // Hugging Face's X-Error-Code, such as GatedRepo; "" elsewhere
	Message string // the server's own words, if it had any
}

// Error is the status and what the server said.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: status %d", e.URL, e.Code)
	for _, more := range []string{e.Reason, e.Message} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// Is makes the status one of the package's errors.
func (e *StatusError) Is(target error) bool {
	switch e.Code {
	case 401, 403:
		return target == ErrAccess
	case 404, 410:
		return target == ErrNotFound
	}
	return false
}

// transient is a fault that another try may not meet.
type transient struct {
	error
	after     string // the Retry-After header, if there was one
	connected bool   // the host answered
}

func (t *transient) Unwrap() error { return t.error }

// netError gives an error of net/http the package's form: the place without the
// query, and whether it is worth another try.
func netError(ctx context.Context, place string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var (
		unknown  x509.UnknownAuthorityError
		host     x509.HostnameError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		op       *net.OpError
		dns      *net.DNSError
		refused  *refusedRedirect
		unusable = errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) || errors.As(err, &verify)
	)
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %w", place, err)
	case unusable:
		return fmt.Errorf("%s: %w: %w", place, ErrUnreachable, err)
	case errors.As(err, &dns), errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		return &transient{error: fmt.Errorf("%s: %w: %w", place, ErrUnreachable, err)}
	}
	return &transient{error: fmt.Errorf("%s: %w", place, err), connected: true}
}

// bare is a URL as errors show it: no query, no credentials.
func bare(u *url.URL) string {
	c := *u
	c.RawQuery, c.Fragment, c.User = "", "", nil
	return c.String()
}
