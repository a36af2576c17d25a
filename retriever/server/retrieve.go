package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"sync"

	"github.com/memopd/memopd-bench/retriever"
)

// texts are queries: a list of strings, or one string.
type texts []string

func (t *texts) UnmarshalJSON(data []byte) error {
	if string(data) == "null" { // as if it was not there
		return nil
	}
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	var several []*string
	if json.Unmarshal(data, &several) != nil {
		return errors.New("queries are neither a string nor a list of strings")
	}
	*t = texts{}
	for i, s := range several {
		if s == nil {
			return fmt.Errorf("query %d is null", i)
		}
		*t = append(*t, *s)
	}
	return nil
}

// request is the body of a request.
type request struct {
	Queries      texts `json:"queries"`
	Query        texts `json:"query"`
	TopK         *int  `json:"topk"`
	ReturnScores bool  `json:"return_scores"`
}

// document is a hit's document as Search-R1's servers give it.
type document struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Text     string `json:"text"`
	Contents string `json:"contents"`
}

// scored is a document with its score.
type scored struct {
	Document document `json:"document"`
	Score    float64  `json:"score"`
}

// statusError is an error with the status that it is answered by.
type statusError struct {
	status int
	error
}

func (x *Server) retrieve(w http.ResponseWriter, r *http.Request) {
	select {
	case x.requests <- struct{}{}:
		defer func() { <-x.requests }()
	default:
		x.metrics.refused.Inc()
		w.Header().Set("Retry-After", strconv.Itoa(x.options.RetryAfterSeconds))
		fail(w, http.StatusServiceUnavailable, fmt.Errorf("%d requests are running or waiting", cap(x.requests)))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), x.options.RequestTimeout)
	defer cancel()
	q, err := x.read(w, r)
	if err == nil {
		x.running.Add(1)
		defer x.running.Add(-1)
		var results [][]retriever.Hit
		if results, err = x.search(ctx, q); err == nil {
			write(w, http.StatusOK, map[string]any{"result": q.shape(results)})
			return
		}
		err = x.explain(ctx, err)
	}
	var s statusError
	if !errors.As(err, &s) {
		s = statusError{http.StatusInternalServerError, err}
	}
	fail(w, s.status, s.error)
}

// read takes the request's body apart.
func (x *Server) read(w http.ResponseWriter, r *http.Request) (*request, error) {
	bad := func(format string, args ...any) error {
		return statusError{http.StatusBadRequest, fmt.Errorf(format, args...)}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, x.options.BodyBytesMax))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, statusError{http.StatusRequestEntityTooLarge, fmt.Errorf("the request is longer than %d bytes", large.Limit)}
	}
	if err != nil {
		return nil, bad("the request's body did not arrive in whole")
	}
	q := &request{}
	if err := json.Unmarshal(body, q); err != nil {
		return nil, bad("the request is not the JSON that is expected: %s", inWords(err))
	}
	if q.Queries != nil && q.Query != nil {
		return nil, bad("queries and query are given, one is needed")
	}
	if q.Queries == nil {
		q.Queries = q.Query
	}
	topK := x.options.TopK
	if q.TopK != nil {
		topK = *q.TopK
	}
	q.TopK = &topK
	switch {
	case len(q.Queries) == 0:
		return nil, bad(`no queries: {"queries": ["…"], "topk": %d, "return_scores": true} is expected`, x.options.TopK)
	case len(q.Queries) > x.options.QueriesMax:
		return nil, bad("%d queries, at most %d are taken", len(q.Queries), x.options.QueriesMax)
	case topK < 1 || topK > x.options.TopKMax:
		return nil, bad("topk is %d, 1 to %d is taken", topK, x.options.TopKMax)
	}
	return q, nil
}

// inWords is an error of encoding/json without the names of Go's types.
func inWords(err error) string {
	var kind *json.UnmarshalTypeError
	var form *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		want := map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "a whole number"}[kind.Type.Kind()]
		if kind.Field == "" || want == "" {
			return "a JSON object is wanted, not " + kind.Value
		}
		return fmt.Sprintf("%s is %s, want %s", kind.Field, kind.Value, want)
	case errors.As(err, &form):
		return fmt.Sprintf("at byte %d: %s", form.Offset, form)
	}
	return err.Error()
}

// search asks the queries, as many at a time as there are slots.
func (x *Server) search(ctx context.Context, q *request) ([][]retriever.Hit, error) {
	results, errs := make([][]retriever.Hit, len(q.Queries)), make([]error, len(q.Queries))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for i, text := range q.Queries {
		select {
		case x.slots <- struct{}{}:
		case <-ctx.Done():
			errs[i] = ctx.Err()
		}
		if errs[i] != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-x.slots }()
			results[i], errs[i] = x.one(ctx, text, *q.TopK)
			if errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	for _, err := range errs { // the first that is not another's end
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	x.metrics.queries.Add(float64(len(q.Queries)))
	return results, nil
}

// one asks one query; a panic in it is that request's error, not the server's end.
func (x *Server) one(ctx context.Context, text string, k int) (hits []retriever.Hit, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the search panicked: %v", p)
		}
	}()
	return x.searcher.Search(ctx, "", text, k)
}

// statusGone is what metrics count a request as whose client hung up; nginx's code.
const statusGone = 499

// explain gives a failed search its status.
func (x *Server) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, retriever.ErrCorrupt):
		x.metrics.corrupt.Inc()
		return statusError{http.StatusInternalServerError, err}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return statusError{http.StatusGatewayTimeout, fmt.Errorf("the request took longer than %s", x.options.RequestTimeout)}
	case ctx.Err() != nil:
		return statusError{statusGone, errors.New("the client is gone")}
	case errors.Is(err, retriever.ErrClosed):
		return statusError{http.StatusServiceUnavailable, err}
	}
	return statusError{http.StatusInternalServerError, err}
}

// shape is results as they are answered.
func (q *request) shape(results [][]retriever.Hit) any {
	with, without := make([][]scored, len(results)), make([][]document, len(results))
	for i, hits := range results {
		with[i], without[i] = []scored{}, []document{}
		for _, h := range hits {
			d := document{h.ID, h.Title, h.Text, `"` + h.Title + "\"\n" + h.Text}
			with[i] = append(with[i], scored{d, h.Score})
			without[i] = append(without[i], d)
		}
	}
	if q.ReturnScores {
		return with
	}
	return without
}

func (x *Server) health(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, struct {
		Status string `json:"status"`
		About
	}{"ok", x.about})
}

// write answers with JSON. What can no longer be written has no one to be told.
func write(w http.ResponseWriter, status int, value any) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		status = http.StatusInternalServerError
		body.Reset()
		fmt.Fprintf(&body, `{"error": %q}`, err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
}

func fail(w http.ResponseWriter, status int, err error) {
	write(w, status, map[string]string{"error": err.Error()})
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}
