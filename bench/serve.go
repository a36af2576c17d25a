package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/retriever/server"
)

// serveOptions holds the settings of bench serve retriever.
type serveOptions struct {
	Index          string  `flag:"index" help:"folder of the index"`
	Address        string  `flag:"address" help:"host and port to listen at; port 0: a free one"`
	TopK           int     `flag:"topk" help:"hits a query where a request names none"`
	TopKMax        int     `flag:"topk-max" help:"most hits a query"`
	QueriesMax     int     `flag:"queries-max" help:"most queries a request"`
	BodyBytesMax   int     `flag:"body-bytes-max" help:"longest request"`
	SearchesMax    int     `flag:"searches-max" help:"searches at a time; 0: one a core"`
	Waiting        int     `flag:"requests-waiting" help:"requests that wait for others; more get 503 and Retry-After"`
	TimeoutSeconds float64 `flag:"timeout-seconds" help:"longest time of a request, its wait included"`
	SkipChecksums  bool    `flag:"skip-checksums" help:"do not read the whole index first, which finds damage and takes minutes for tens of gigabytes"`
}

func newServe() *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Serve an index over HTTP"}
	cmd.AddCommand(newServeRetriever())
	return cmd
}

func newServeRetriever() *cobra.Command {
	var o serveOptions
	defaults := func() error {
		d := server.DefaultOptions(1)
		o = serveOptions{
			Index: filepath.Join("data", "index"), Address: "127.0.0.1:8000", TopK: d.TopK, TopKMax: d.TopKMax, QueriesMax: d.QueriesMax,
			BodyBytesMax: int(d.BodyBytesMax), Waiting: d.RequestsWaiting, TimeoutSeconds: d.RequestTimeout.Seconds(),
		}
		return nil
	}
	return command(&cobra.Command{
		Use:   "retriever",
		Short: "Search-R1's and MEM1's POST /retrieve over an index",
		Long: `Answers POST /retrieve {"queries": [...], "topk": 3, "return_scores": true} as the retrieval
servers of Search-R1 and MEM1 do, so that their training code can search an index of bench
index. GET / is a page to try it, /openapi.json describes it, /healthz (or /health) says what is served, and
/metrics is for Prometheus. It listens to this machine alone unless --address says otherwise: there
is no authentication. It ends with Ctrl-C or SIGTERM, once the requests that run are answered,
which is a little over --timeout-seconds later at the most.`,
		Example: `  bench serve retriever --index data/real/index
  curl -d '{"queries": ["who wrote faust"], "return_scores": true}' http://127.0.0.1:8000/retrieve`,
	}, &o, nil, defaults, func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) })
}

// timeoutSecondsMax is a day.
const timeoutSecondsMax = 24 * 60 * 60

func (o serveOptions) run(ctx context.Context) (err error) {
	options := server.DefaultOptions(runtime.GOMAXPROCS(0))
	options.TopK, options.TopKMax, options.QueriesMax, options.BodyBytesMax = o.TopK, o.TopKMax, o.QueriesMax, int64(o.BodyBytesMax)
	options.RequestsWaiting, options.RequestTimeout = o.Waiting, time.Duration(o.TimeoutSeconds*float64(time.Second))
	if o.SearchesMax != 0 {
		options.SearchesMax = o.SearchesMax
	}
	if o.SearchesMax < 0 || !(o.TimeoutSeconds > 0 && o.TimeoutSeconds <= timeoutSecondsMax) {
		return fmt.Errorf("searches-max is %d, timeout-seconds %g: want 0 or more, and more than 0 to %d", o.SearchesMax, o.TimeoutSeconds, timeoutSecondsMax)
	}
	if err := options.Check(); err != nil {
		return err
	}
	index, err := retriever.Open(o.Index, retriever.OpenOptions{SkipChecksums: o.SkipChecksums})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	x, err := server.New(index, server.AboutIndex(o.Index, index.Manifest()), options)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", o.Address, err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		note("other machines can reach this server at %s, and it asks nobody who they are", a)
	}
	note("serving %d documents at http://%s", index.Manifest().Documents, l.Addr())
	if err := x.Serve(ctx, l); err != nil {
		return err
	}
	note("ended")
	return nil
}
