// Package server answers searches over HTTP by the contract of Search-R1's and
// MEM1's retrieval servers:
//
//	POST /retrieve {"queries": ["…"], "topk": 3, "return_scores": true}
//	→ {"result": [[{"document": {"id", "title", "text", "contents"}, "score": 7.1}, …]]}
//
// With return_scores false a hit is its document alone. queries may be one string,
// which is also taken under the name query. contents is the title in quotes, a line
// feed and the text, as in Search-R1's corpora. A query without any term has an empty
// list of hits. Errors are {"error": "…"} with a status of 4xx or 5xx.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/memopd/memopd-bench/retriever"
)

// Options are a server's limits; [DefaultOptions] has good ones.
type Options struct {
	TopK              int           // hits a query where a request names none
	TopKMax           int           // most hits a query
	QueriesMax        int           // most queries a request
	BodyBytesMax      int64         // longest request
	SearchesMax       int           // searches at a time
	RequestsWaiting   int           // requests that wait for others; more are refused with 503
	RequestTimeout    time.Duration // of a request, its wait included
	ShutdownGrace     time.Duration // that running requests have beyond RequestTimeout when the server ends
	RetryAfterSeconds int           // that a refused client is told to wait
}

// DefaultOptions returns the options that the benchmark uses on a machine with n cores.
func DefaultOptions(n int) Options {
	return Options{
		TopK: 3, TopKMax: 1000, QueriesMax: 1024, BodyBytesMax: 4 << 20, SearchesMax: n, RequestsWaiting: 256,
		RequestTimeout: 30 * time.Second, ShutdownGrace: 5 * time.Second, RetryAfterSeconds: 1,
	}
}

// Check says what is wrong with the options.
func (o Options) Check() error {
	for _, x := range []struct {
		name  string
		value int64
	}{
		{"hits a query", int64(o.TopK)}, {"most hits a query", int64(o.TopKMax)}, {"most queries a request", int64(o.QueriesMax)},
		{"longest request", o.BodyBytesMax}, {"searches at a time", int64(o.SearchesMax)}, {"requests waiting", int64(o.RequestsWaiting)},
		{"timeout of a request", int64(o.RequestTimeout)}, {"grace of the shutdown", int64(o.ShutdownGrace)},
		{"seconds to retry after", int64(o.RetryAfterSeconds)},
	} {
		if x.value < 1 {
			return fmt.Errorf("retrieval server: %s: %d, at least 1 is needed", x.name, x.value)
		}
	}
	if o.TopK > o.TopKMax {
		return fmt.Errorf("retrieval server: %d hits a query by default, and %d at most", o.TopK, o.TopKMax)
	}
	return nil
}

// Server is an [http.Handler] over a searcher.
type Server struct {
	searcher retriever.Searcher
	about    About
	options  Options
	mux      *http.ServeMux
	slots    chan struct{} // one for each search that runs
	requests chan struct{} // one for each request that runs or waits
	running  atomic.Int64  // requests that were read and are not answered yet
	metrics  *metrics
}

// About is what a server says of its index.
type About struct {
	Index     string  `json:"index"`
	Documents int     `json:"documents"`
	Scoring   string  `json:"scoring"`
	K1        float64 `json:"k1"`
	B         float64 `json:"b"`
	Analyser  string  `json:"analyser"`
}

// AboutIndex is what there is to say of an open index.
func AboutIndex(name string, m retriever.Manifest) About {
	return About{name, m.Documents, m.Scoring.Name, m.Scoring.K1, m.Scoring.B, string(m.Analyser)}
}

// New makes a server.
func New(s retriever.Searcher, about About, o Options) (*Server, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	x := &Server{
		searcher: s, about: about, options: o, mux: http.NewServeMux(), metrics: newMetrics(),
		slots: make(chan struct{}, o.SearchesMax), requests: make(chan struct{}, o.SearchesMax+o.RequestsWaiting),
	}
	x.mux.HandleFunc("POST /retrieve", x.retrieve)
	x.mux.HandleFunc("GET /healthz", x.health)
	x.mux.HandleFunc("GET /health", x.health)
	x.mux.Handle("GET /metrics", x.metrics.handler())
	x.mux.HandleFunc("GET /openapi.json", serve("application/json", openAPI))
	x.mux.HandleFunc("GET /{$}", serve("text/html; charset=utf-8", page))
	return x, nil
}

// ServeHTTP implements http.Handler.
func (x *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watched := &statusWriter{ResponseWriter: w}
	start := time.Now()
	if _, pattern := x.mux.Handler(r); pattern == "" {
		x.unknown(watched, r)
	} else {
		x.mux.ServeHTTP(watched, r)
	}
	x.metrics.request(r.URL.Path, watched.code(), time.Since(start))
}

// unknown answers another path or method, in JSON as all errors.
func (x *Server) unknown(w http.ResponseWriter, r *http.Request) {
	for path, method := range map[string]string{"/retrieve": http.MethodPost, "/healthz": http.MethodGet, "/health": http.MethodGet, "/metrics": http.MethodGet, "/openapi.json": http.MethodGet, "/": http.MethodGet} {
		if r.URL.Path == path {
			w.Header().Set("Allow", method)
			fail(w, http.StatusMethodNotAllowed, fmt.Errorf("%s takes %s, not %s", path, method, r.Method))
			return
		}
	}
	fail(w, http.StatusNotFound, fmt.Errorf("no %s here; there are POST /retrieve, GET /healthz, /metrics, /openapi.json", r.URL.Path))
}

// Serve answers requests on a listener until ctx ends; then those that run have the
// time that a request may take, and a little more, to end. Connections without a whole
// request hold the end up no longer than that, and are no error. It returns nil after a
// clean end.
func (x *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: x, ReadHeaderTimeout: min(10*time.Second, x.options.RequestTimeout), ReadTimeout: x.options.RequestTimeout,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16,
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("retrieval server: %w", err)
	case <-ctx.Done():
	}
	wait := x.options.RequestTimeout + x.options.ShutdownGrace
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	err := h.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		running := x.running.Load()
		if err = h.Close(); running > 0 {
			err = errors.Join(fmt.Errorf("retrieval server: %d requests still ran %s after the shutdown began", running, wait), err)
		}
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
