package server

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/retriever"
)

// served is a server on a port of its own that a test tells to end.
type served struct {
	address string
	stop    context.CancelFunc
	ended   chan error
}

func serveOn(t *testing.T, s retriever.Searcher, o Options) served {
	t.Helper()
	x, err := New(s, About{}, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	out := served{l.Addr().String(), cancel, make(chan error, 1)}
	go func() { out.ended <- x.Serve(ctx, l) }()
	return out
}

// send opens a connection and writes to it.
func (s served) send(t *testing.T, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

const halfBody = "POST /retrieve HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{\"queries\""

// A running request has as long as it had before, however short the grace; idle
// connections and halves of requests do not make an error of the end.
func TestShutdownDrains(t *testing.T) {
	o := testOptions()
	o.RequestTimeout, o.ShutdownGrace = 3*time.Second, time.Millisecond
	begun, hold := make(chan struct{}), make(chan struct{})
	s := serveOn(t, scripted(func(ctx context.Context, query string, k int) ([]retriever.Hit, error) {
		close(begun)
		<-hold
		return small(ctx, query, k)
	}), o)
	s.send(t, "")
	s.send(t, "POST /retrieve HTTP/1.1\r\nHost: a\r\nX-Half")
	s.send(t, halfBody)
	kept := s.send(t, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := kept.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		defer close(answered)
		status, _, _ := ask(t, "POST", "http://"+s.address+"/retrieve", `{"queries": "a"}`)
		answered <- status
	}()
	<-begun
	s.stop()
	time.AfterFunc(300*time.Millisecond, func() { close(hold) }) // longer than the grace
	if status := <-answered; status != 200 {
		t.Errorf("the running request got %d", status)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("end: %v", err)
	}
}

// What still runs when the time is over is an error that counts it.
func TestShutdownBreaksOff(t *testing.T) {
	o := testOptions()
	o.RequestTimeout, o.ShutdownGrace = 100*time.Millisecond, 50*time.Millisecond
	begun, hold := make(chan struct{}), make(chan struct{})
	defer close(hold)
	s := serveOn(t, scripted(func(context.Context, string, int) ([]retriever.Hit, error) {
		close(begun)
		<-hold // looks at no context
		return nil, nil
	}), o)
	s.send(t, "POST /retrieve HTTP/1.1\r\nHost: a\r\nContent-Length: 16\r\n\r\n{\"queries\": \"a\"}")
	<-begun
	s.stop()
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "1 requests still ran 150ms after") {
		t.Errorf("end: %v", err)
	}
}

// A search over the time is told so, also by the server that limits how long it reads.
func TestServedTimeout(t *testing.T) {
	o := testOptions()
	o.RequestTimeout = 100 * time.Millisecond
	s := serveOn(t, scripted(func(ctx context.Context, _ string, _ int) ([]retriever.Hit, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}), o)
	status, got, _ := ask(t, "POST", "http://"+s.address+"/retrieve", `{"queries": "a"}`)
	if status != 504 || !strings.Contains(got, "longer than 100ms") {
		t.Errorf("%d %s", status, got)
	}
	c := s.send(t, halfBody)
	answer, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(answer), "400 ") || !strings.Contains(string(answer), "did not arrive in whole") {
		t.Errorf("half a body: %v: %s", err, answer)
	}
}
