package model

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// list is a queue over fixed requests; limit is how many may be out at once (0: all).
type list struct {
	requests  []*trace.Request
	responses map[*trace.Request]*trace.Response
	limit     int
	out       int
	order     []*trace.Request // as they were handed back
}

func (l *list) Next() (*trace.Request, bool) {
	if len(l.requests) == 0 || l.limit > 0 && l.out >= l.limit {
		return nil, false
	}
	r := l.requests[0]
	l.requests = l.requests[1:]
	l.out++
	return r, true
}

func (l *list) Done(r *trace.Request, p *trace.Response) {
	if l.responses == nil {
		l.responses = map[*trace.Request]*trace.Response{}
	}
	l.responses[r] = p
	l.order = append(l.order, r)
	l.out--
}

// requests makes n requests of random contexts.
func requests(n int, vocab int32) []*trace.Request {
	rng := rand.New(rand.NewPCG(5, 5))
	var out []*trace.Request
	for i := range n {
		r := &trace.Request{MaxNewTokens: 1 + rng.IntN(20), Seed: uint64(i)}
		for range 1 + rng.IntN(70) {
			r.Context = append(r.Context, rng.Int32N(vocab))
		}
		out = append(out, r)
	}
	return out
}

func generate(t *testing.T, s *Sampler, l *list) map[*trace.Request]*trace.Response {
	t.Helper()
	if err := s.Generate(context.Background(), l); err != nil {
		t.Fatal(err)
	}
	return l.responses
}

func newSampler(t *testing.T, d *Decoder, settings trace.Sampler, rows int) *Sampler {
	t.Helper()
	s, err := NewSampler(d, settings, rows)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var warm = trace.Sampler{Temperature: 1, TopP: 1}

// TestDecodeEqualsForward holds that the log-probabilities of sampling with a
// cache are those of a full forward pass over context and output.
func TestDecodeEqualsForward(t *testing.T) {
	for _, kind := range []string{Llama, Qwen2} {
		d := newModel(t, tiny(kind), 3, 2)
		settings := warm
		settings.Temperature = 0.7
		all := requests(23, 50)
		l := &list{requests: all}
		responses := generate(t, newSampler(t, d, settings, 5), l)
		if len(responses) != len(all) {
			t.Fatalf("%d responses to %d requests", len(responses), len(all))
		}
		for i, r := range all {
			got := responses[r]
			if len(got.Output) != r.MaxNewTokens || got.Stop != trace.StopLength {
				t.Fatalf("request %d: %d tokens, stop %q", i, len(got.Output), got.Stop)
			}
			want := logProbs(d, r.Context, got.Output, 0.7)
			for j := range want {
				if e := math.Abs(want[j] - float64(got.LogProbs[j])); !(e < 4e-5) {
					t.Errorf("%s: request %d token %d: log-probability off by %g", kind, i, j, e)
				}
			}
			if got.Seconds <= 0 {
				t.Errorf("request %d took %v s", i, got.Seconds)
			}
		}
	}
}

// logProbs scores an output by a full forward pass.
func logProbs(d *Decoder, context, output []int32, temperature float64) []float64 {
	s := torch.NewScope()
	defer s.Close()
	var out []float64
	torch.NoGrad(func() {
		ids := append(append([]int32{}, context...), output...)
		logits := d.Logits(d.HiddenAll([][]int32{ids})).MulScalar(1 / temperature).LogSoftmax(-1)
		rows := logits.Float64s()
		for j, id := range output {
			out = append(out, rows[(len(context)+j-1)*d.Config.VocabSize+int(id)])
		}
	})
	return out
}

func TestGreedyTakesTheLargest(t *testing.T) {
	d := newModel(t, tiny(Llama), 4, 2)
	all := requests(9, 50)
	responses := generate(t, newSampler(t, d, trace.Sampler{Greedy: true}, 4), &list{requests: all})
	for i, r := range all {
		ids := append([]int32{}, r.Context...)
		for j, id := range responses[r].Output {
			s := torch.NewScope()
			var last []int64
			torch.NoGrad(func() { last = d.Logits(d.HiddenAll([][]int32{ids})).Argmax(-1, false).Int64s() })
			s.Close()
			if want := last[len(last)-1]; int64(id) != want {
				t.Fatalf("request %d token %d: %d, want %d", i, j, id, want)
			}
			ids = append(ids, id)
		}
		want := logProbs(d, r.Context, responses[r].Output, 1)
		for j := range want {
			if e := math.Abs(want[j] - float64(responses[r].LogProbs[j])); e > 1e-5 {
				t.Errorf("request %d token %d: log-probability off by %g", i, j, e)
			}
		}
	}
}

// TestOrderDoesNotMatter holds that a request's tokens do not depend on what
// else is in generation.
func TestOrderDoesNotMatter(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 5, 1)
	all := requests(17, 50)
	one := generate(t, newSampler(t, d, warm, 1), &list{requests: all})
	backwards := make([]*trace.Request, len(all))
	for i, r := range all {
		backwards[len(all)-1-i] = r
	}
	for _, c := range []struct {
		rows, limit int
	}{{4, 0}, {16, 3}, {64, 0}} {
		got := generate(t, newSampler(t, d, warm, c.rows), &list{requests: backwards, limit: c.limit})
		for i, r := range all {
			if !reflect.DeepEqual(one[r].Output, got[r].Output) {
				t.Errorf("rows %d: request %d gave %v, alone %v", c.rows, i, got[r].Output, one[r].Output)
			}
		}
	}
}

func TestSameRunIsBitIdentical(t *testing.T) {
	d := newModel(t, tiny(Qwen2), 5, 1)
	var outs [2][]float32
	for i := range outs {
		all := requests(9, 50)
		l := &list{requests: all}
		generate(t, newSampler(t, d, warm, 4), l)
		for _, r := range all {
			outs[i] = append(outs[i], l.responses[r].LogProbs...)
		}
	}
	if !reflect.DeepEqual(outs[0], outs[1]) {
		t.Error("log-probabilities differ between two runs")
	}
}

// TestRefillAtOnce holds that a finished row's place goes to the next request
// while the others go on.
func TestRefillAtOnce(t *testing.T) {
	d := newModel(t, tiny(Llama), 6, 1)
	long := &trace.Request{Context: []int32{1, 2}, MaxNewTokens: 30}
	all := []*trace.Request{long}
	for i := range 10 {
		all = append(all, &trace.Request{Context: []int32{3}, MaxNewTokens: 2, Seed: uint64(i)})
	}
	l := &list{requests: all}
	generate(t, newSampler(t, d, warm, 2), l)
	if len(l.order) != len(all) || l.order[len(all)-1] != long {
		t.Error("the long request did not end last: short ones waited for it")
	}
}

func TestStops(t *testing.T) {
	d := newModel(t, tiny(Llama), 7, 1)
	greedy := trace.Sampler{Greedy: true}
	base := &trace.Request{Context: []int32{4, 5, 6}, MaxNewTokens: 8}
	output := generate(t, newSampler(t, d, greedy, 1), &list{requests: []*trace.Request{base}})[base].Output

	run := func(r trace.Request, change func(*Sampler)) *trace.Response {
		s := newSampler(t, d, greedy, 3)
		if change != nil {
			change(s)
		}
		return generate(t, s, &list{requests: []*trace.Request{&r}})[&r]
	}
	first := func(id int32) int {
		for i, v := range output {
			if v == id {
				return i + 1
			}
		}
		return -1
	}
	got := run(*base, func(s *Sampler) { s.EOS = []int32{-1, output[3]} })
	if n := first(output[3]); got.Stop != trace.StopEOS || len(got.Output) != n {
		t.Errorf("eos: %q after %d tokens, want %d", got.Stop, len(got.Output), n)
	}
	var seen []int
	tag := *base
	tag.Stopped = func(o []int32) bool { seen = append(seen, len(o)); return len(o) == 5 }
	if got := run(tag, nil); got.Stop != trace.StopTag || len(got.Output) != 5 || !reflect.DeepEqual(seen, []int{1, 2, 3, 4, 5}) {
		t.Errorf("tag: %q after %d tokens, asked at %v", got.Stop, len(got.Output), seen)
	}
	if got := run(*base, func(s *Sampler) { s.ContextMax = 7 }); got.Stop != trace.StopContext || len(got.Output) != 4 {
		t.Errorf("context: %q after %d tokens, want 4", got.Stop, len(got.Output))
	}
	if got := run(*base, func(s *Sampler) { s.ContextMax = 3 }); got.Stop != trace.StopContext || len(got.Output) != 0 {
		t.Errorf("no room: %q after %d tokens", got.Stop, len(got.Output))
	}
	if got := run(*base, nil); got.Stop != trace.StopLength || !reflect.DeepEqual(got.Output, output) {
		t.Errorf("length: %q, %v, want %v", got.Stop, got.Output, output)
	}
}

func TestBadRequests(t *testing.T) {
	d := newModel(t, tiny(Llama), 8, 1)
	for _, c := range []struct {
		request trace.Request
		want    string
	}{
		{trace.Request{MaxNewTokens: 1}, "no context"},
		{trace.Request{Context: []int32{1}}, "0 new tokens"},
		{trace.Request{Context: []int32{1, 50}, MaxNewTokens: 1}, "id 50 at 1 is outside the vocabulary of 50"},
		{trace.Request{Context: []int32{-1}, MaxNewTokens: 1}, "id -1 at 0"},
	} {
		err := newSampler(t, d, warm, 2).Generate(context.Background(), &list{requests: []*trace.Request{&c.request}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q in it", err, c.want)
		}
	}
	for _, s := range []trace.Sampler{{}, {Temperature: -1, TopP: 1}, {Temperature: 1}, {Temperature: 1, TopP: 1.5}, {Temperature: 1, TopP: 1, TopK: -1}} {
		if _, err := NewSampler(d, s, 1); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
	if _, err := NewSampler(d, warm, 0); err == nil {
		t.Error("0 rows: no error")
	}
}

func TestCancel(t *testing.T) {
	d := newModel(t, tiny(Llama), 8, 1)
	ctx, cancel := context.WithCancel(context.Background())
	r := &trace.Request{Context: []int32{1}, MaxNewTokens: 200}
	r.Stopped = func(o []int32) bool {
		if len(o) == 3 {
			cancel()
		}
		return len(o) > 5
	}
	if err := newSampler(t, d, warm, 2).Generate(ctx, &list{requests: []*trace.Request{r}}); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("error %v", err)
	}
}
