package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memopd/memopd-bench/agent"
	"github.com/memopd/memopd-bench/trace"
)

// hang holds an answer back until the client has gone.
func hang(_ http.ResponseWriter, r request) { <-r.gone }

// cut breaks an answer off in the middle.
func cut(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	io.WriteString(w, text[:len(text)/2])
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Close()
}

// passingFaults are answers that another attempt may not meet; again serves the
// right one.
func passingFaults(right func(request) string) map[string]func(http.ResponseWriter, request) {
	write := func(status int, kind, text string) func(http.ResponseWriter, request) {
		return func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, text)
		}
	}
	return map[string]func(http.ResponseWriter, request){
		"timeout": hang,
		"429": func(w http.ResponseWriter, _ request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		},
		"408":                write(408, "text/plain", ""),
		"500":                write(500, "text/plain", "Internal Server Error"),
		"503":                write(503, "application/json", `{"error": "loading"}`),
		"a cut body":         func(w http.ResponseWriter, r request) { cut(w, right(r)) },
		"a cut chunked body": func(w http.ResponseWriter, r request) { io.WriteString(w, right(r)[:20]) },
		"no answer":          func(w http.ResponseWriter, _ request) { drop(w) },
		"no JSON":            write(200, "application/json", "<html>"),
		"nothing":            write(200, "application/json", ""),
		"a wrong type": func(w http.ResponseWriter, r request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, right(r))
		},
		"no choices":   write(200, "application/json", `{"choices": [], "meta_info": {}}`),
		"choices null": write(200, "application/json", `{"choices": null, "meta_info": null}`),
		"ids as text":  write(200, "application/json", `{"choices": [{"token_ids": "1 2", "message": {"content": 5}}], "meta_info": 5}`),
	}
}

// Each fault is met once and costs an attempt, no more: the records are whole.
func TestFaultsThatPass(t *testing.T) {
	for kind, right := range map[Kind]func(request) string{
		VLLM: func(r request) string {
			prompt := ids(r.body["prompt"])
			return vllmText(prompt, (bytesTokenizer{}).Encode(script(prompt)), "stop", nil)
		},
		SGLang: func(r request) string {
			prompt := ids(r.body["input_ids"])
			return sglangText(prompt, (bytesTokenizer{}).Encode(script(prompt)), nil, map[string]any{"type": "stop"}, true)
		},
	} {
		for name, fault := range passingFaults(right) {
			f := newFake(t, func(w http.ResponseWriter, r request, n int) {
				if n == 1 {
					fault(w, r)
					return
				}
				io.WriteString(w, right(r))
			})
			o := testOptions()
			if name == "timeout" {
				o.TimeoutSeconds = 0.2
			}
			p := newPolicy(t, f, kind, o)
			got, err := roll(t, p, 3)
			if err != nil {
				t.Errorf("%s, %s: %v", kind, name, err)
				continue
			}
			for _, tr := range got {
				if tr.End != trace.EndAnswered {
					t.Errorf("%s, %s: %s ended %s: %s", kind, name, tr.ID, tr.End, tr.Error)
				}
			}
			if s := p.Stats(); name != "timeout" && s.Retries != 1 || s.Failures != 0 || s.Requests != 6 {
				t.Errorf("%s, %s: stats %+v", kind, name, s)
			}
			if name == "429" && f.pauses[0] != 7*time.Second {
				t.Errorf("%s: a pause of %v after Retry-After: 7", kind, f.pauses[0])
			}
		}
	}
}

// What does not pass ends its trajectory alone, with the calls before it.
func TestFaultsThatStay(t *testing.T) {
	isT1 := func(r request) bool {
		return strings.Contains((bytesTokenizer{}).Decode(ids(r.body["prompt"])), "is 1 so?")
	}
	for name, c := range map[string]struct {
		status   int
		text     string
		attempts int // requests of the call that fails
		says     string
	}{
		"500":               {500, "no memory", 3, "after 3 attempts: status 500: no memory"},
		"400":               {400, `{"error": {"message": "maximum context length"}}`, 1, "maximum context length"},
		"422":               {422, `{"detail": "x"}`, 1, "status 422"},
		"200 with an error": {200, `{"error": {"message": "bad"}}`, 1, "bad"},
		"an abort":          {200, "", 1, "abort"},
	} {
		var failed atomic.Int32
		f := newFake(t, func(w http.ResponseWriter, r request, n int) {
			prompt := ids(r.body["prompt"])
			second := strings.Contains((bytesTokenizer{}).Decode(prompt), "Doc 1(")
			if !isT1(r) || !second {
				answerVLLM(w, r, n)
				return
			}
			failed.Add(1)
			w.WriteHeader(c.status)
			if c.text == "" {
				c.text = vllmText(prompt, []int32{5}, "abort", nil)
			}
			io.WriteString(w, c.text)
		})
		p := newPolicy(t, f, VLLM, testOptions())
		got, err := roll(t, p, 3)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, tr := range got {
			end, calls := trace.EndAnswered, 2
			if i == 1 {
				end, calls = trace.EndModelError, 1
			}
			if tr.End != end || len(tr.Calls) != calls || i == 1 && !strings.Contains(tr.Error, c.says) {
				t.Errorf("%s: %s ended %s after %d calls: %s", name, tr.ID, tr.End, len(tr.Calls), tr.Error)
			}
		}
		if int(failed.Load()) != c.attempts || p.Stats().Failures != 1 {
			t.Errorf("%s: %d attempts, stats %+v", name, failed.Load(), p.Stats())
		}
	}
}

// A server that is gone ends the run soon, with what was recorded before.
func TestServerDies(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, r request, n int) {
		if n >= 4 {
			drop(w)
			return
		}
		answerVLLM(w, r, n)
	})
	o := testOptions()
	o.RequestsMax, o.AttemptsMax, o.FailuresMax = 2, 2, 3
	p := newPolicy(t, f, VLLM, o)
	got, err := roll(t, p, 30)
	if err == nil || !strings.Contains(err.Error(), "3 requests in a row have failed") || errors.Is(err, ErrRefused) || errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	calls := 0
	for _, tr := range got {
		calls += len(tr.Calls)
	}
	// Two requests may fail before the last good answer arrives and ends their row, three
	// more end the run, and one is out by then; each is tried twice.
	if n := f.asked(); calls != 4 || n > 4+2*(2+3+1) {
		t.Errorf("%d calls recorded, %d requests", calls, n)
	}
}

// Failures that are not in a row do not end a run, however many.
func TestFailuresNowAndThen(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, r request, n int) {
		if n%2 == 0 {
			w.WriteHeader(400)
			return
		}
		answerVLLM(w, r, n)
	})
	o := testOptions()
	o.RequestsMax, o.FailuresMax = 1, 2
	p := newPolicy(t, f, VLLM, o)
	if _, err := roll(t, p, 9); err != nil || p.Stats().Failures < 5 {
		t.Errorf("%v, stats %+v", err, p.Stats())
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	slow := newFake(t, func(w http.ResponseWriter, r request, n int) {
		if n == 0 {
			answerVLLM(w, r, n)
			return
		}
		cancel()
		<-r.gone
	})
	p := newPolicy(t, slow, VLLM, testOptions())
	out, err := agent.Rollout(ctx, p, noDocuments{}, agentOptions(), tasks(3)...)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for _, tr := range out {
		if tr.End != trace.EndCancelled {
			t.Errorf("%s ended %s", tr.ID, tr.End)
		}
	}
}

func TestRequestsAtATime(t *testing.T) {
	var now, most atomic.Int32
	three := make(chan struct{})
	f := newFake(t, func(w http.ResponseWriter, r request, n int) {
		k := now.Add(1)
		for seen := most.Load(); k > seen && !most.CompareAndSwap(seen, k); seen = most.Load() {
		}
		if n == 2 {
			close(three)
		}
		select { // the first three are held until all are here
		case <-three:
		case <-time.After(10 * time.Second):
		}
		time.Sleep(time.Millisecond) // a fourth would show
		now.Add(-1)
		answerVLLM(w, r, n)
	})
	o := testOptions()
	o.RequestsMax = 3
	if _, err := roll(t, newPolicy(t, f, VLLM, o), 20); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 3 {
		t.Errorf("%d requests at once, want 3", most.Load())
	}
}

func TestPauses(t *testing.T) {
	c := &client{Connection: Connection{BackoffSeconds: 2, BackoffMaxSeconds: 20}}
	different := false
	for attempt, longest := range map[int]float64{1: 2, 2: 4, 3: 8, 4: 16, 5: 20, 60: 20} {
		for range 50 {
			if got := c.pause(attempt, 0).Seconds(); got < longest/2 || got > longest {
				t.Errorf("attempt %d: a pause of %v s, want %v to %v", attempt, got, longest/2, longest)
			} else if got != longest {
				different = true
			}
		}
	}
	if !different {
		t.Error("pauses are not drawn")
	}
	if got := c.pause(1, 15*time.Second); got != 15*time.Second {
		t.Errorf("asked for 15 s: %v", got)
	}
	if got := c.pause(1, time.Hour); got != 20*time.Second {
		t.Errorf("asked for an hour: %v", got)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"7": 7 * time.Second, " 0 ": 0, "": 0, "-1": 0, "soon": 0, "99999999999": 0,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("Retry-After %q: %v, want %v", text, got, want)
		}
	}
}

// The key must not stand in errors, which are written into records.
func TestTheKeyStaysSecret(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, _ request, _ int) { w.WriteHeader(403) })
	o := testOptions()
	o.APIKey = "hunter2"
	p, err := New(VLLM, strings.Replace(f.URL, "http://", "http://user:hunter2@", 1), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := roll(t, p, 1); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
	}
}
