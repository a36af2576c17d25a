package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are a server's own, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	queries  prometheus.Counter
	refused  prometheus.Counter
	corrupt  prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "retriever_requests_total", Help: "Requests by path and status.",
		}, []string{"path", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "retriever_request_seconds", Help: "Duration of requests, waiting included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"path"}),
		queries: counter("retriever_queries_total", "Queries answered."),
		refused: counter("retriever_refused_total", "Requests refused because too many were waiting."),
		corrupt: counter("retriever_corrupt_total", "Requests that found the index damaged."),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.queries, m.refused, m.corrupt,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// request counts a request that was answered; unknown paths are one.
func (m *metrics) request(path string, code int, took time.Duration) {
	switch path {
	case "/retrieve", "/healthz", "/health", "/metrics", "/openapi.json", "/":
	default:
		path = "other"
	}
	m.requests.WithLabelValues(path, strconv.Itoa(code)).Inc()
	m.seconds.WithLabelValues(path).Observe(took.Seconds())
}
