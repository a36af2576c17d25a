package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// calls makes the requests of tasks that all start alike, with samples of each
// and calls that keep the task's prefix alone, as compact memory does, or everything.
func calls(seed uint64, vocab int32, tasks, samples, each int, whole bool) []*trace.Request {
	rng := rand.New(rand.NewPCG(seed, 8))
	ids := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = rng.Int32N(vocab)
		}
		return out
	}
	var all []*trace.Request
	system := ids(12)
	for task := range tasks {
		prefix := append(slices.Clone(system), ids(5+rng.IntN(20))...)
		for range samples {
			context := slices.Clone(prefix)
			for call := range each {
				all = append(all, &trace.Request{
					Context: slices.Clone(context), PrefixLength: len(prefix), MaxNewTokens: 1 + rng.IntN(8),
					Seed: rng.Uint64(), TaskID: fmt.Sprint(task), Call: call,
				})
				if !whole {
					context = slices.Clone(prefix)
				}
				context = append(context, ids(1+rng.IntN(25))...)
			}
		}
	}
	return all
}

// TestPrefixReuseChangesNothing holds that outputs and log-probabilities with kept
// keys are those without, whatever share of a context is kept already.
func TestPrefixReuseChangesNothing(t *testing.T) {
	for _, kind := range []string{Llama, Qwen2, Qwen3} {
		for _, settings := range []trace.Sampler{warm, {Greedy: true}} {
			for _, whole := range []bool{false, true} {
				d := newModel(t, tiny(kind), 21, 1.5)
				for _, rows := range []int{1, 5, 32} {
					all := calls(uint64(rows), 50, 4, 3, 3, whole)
					s := newSampler(t, d, settings, rows)
					s.PrefixBytesMax = 0
					want := generate(t, s, &list{requests: all})
					for _, tokens := range []int64{45, 1 << 20} {
						s.PrefixBytesMax = tokens * newPrefixStore(d, 0).bytesPerToken
						sameResponses(t, fmt.Sprintf("%s %+v whole %v rows %d tokens %d", kind, settings, whole, rows, tokens),
							all, want, generate(t, s, &list{requests: all}))
					}
				}
			}
		}
	}
}

func sameResponses(t *testing.T, name string, all []*trace.Request, want, got map[*trace.Request]*trace.Response) {
	t.Helper()
	for i, r := range all {
		if !slices.Equal(want[r].Output, got[r].Output) {
			t.Fatalf("%s: request %d gave %v, want %v", name, i, got[r].Output, want[r].Output)
		}
		for j, v := range want[r].LogProbs {
			if e := math.Abs(float64(v - got[r].LogProbs[j])); !(e < 2e-5) {
				t.Errorf("%s: request %d token %d: log-probability off by %g", name, i, j, e)
			}
		}
	}
}

// runPlans runs openings one batch after another and counts the tokens of each pass.
func runPlans(t *testing.T, d *Decoder, bytesMax int64, batches ...[]opening) []int {
	t.Helper()
	store, c := newPrefixStore(d, bytesMax), newCache(d, 8)
	defer c.free()
	defer store.free()
	c.reserve(64)
	var ran []int
	for _, batch := range batches {
		s := torch.NewScope()
		p := store.plan(batch)
		torch.NoGrad(func() { d.prefill(c, store, p) })
		s.Close()
		sum := 0
		for _, n := range p.ran {
			sum += n
		}
		if sum != len(p.layout.ids) {
			t.Errorf("%d tokens shared out, %d run", sum, len(p.layout.ids))
		}
		ran = append(ran, sum)
	}
	return ran
}

// TestPrefixIsRunOnce counts the tokens that prefills run.
func TestPrefixIsRunOnce(t *testing.T) {
	d := newModel(t, tiny(Llama), 21, 1)
	ids := func(n int, from int32) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = from + int32(i)
		}
		return out
	}
	with := func(prefix []int32, more ...int32) opening {
		return opening{ids: append(slices.Clone(prefix), more...), prefix: len(prefix)}
	}
	a, b := ids(20, 0), append(ids(15, 0), ids(5, 40)...)
	token := newPrefixStore(d, 0).bytesPerToken
	if want := int64(2 * 3 * 2 * 8 * 4); token != want {
		t.Errorf("%d bytes a token, want %d", token, want)
	}
	for _, c := range []struct {
		name    string
		bytes   int64
		batches [][]opening
		want    []int
	}{
		{"kept from call to call", 1 << 20, [][]opening{{with(a, 1, 2)}, {with(a, 3)}, {with(a, 4, 5, 6)}}, []int{22, 1, 3}},
		{"shared in a batch", 1 << 20, [][]opening{{with(a, 1), with(a, 2, 3), with(a)}}, []int{23}},
		{"the last token runs", 1 << 20, [][]opening{{with(a)}, {with(a)}}, []int{20, 1}},
		{"a common beginning of two tasks", 1 << 20, [][]opening{{with(a, 1)}, {with(b, 2)}, {with(b, 3), with(a, 4)}}, []int{21, 6, 2}},
		{"shared, over a common beginning", 1 << 20, [][]opening{{with(a, 1)}, {with(b, 2), with(b, 3)}, {with(b, 3)}}, []int{21, 7, 1}},
		{"room for one", 30 * token, [][]opening{{with(a, 1)}, {with(ids(20, 25), 1)}, {with(a, 1)}, {with(a, 2)}}, []int{21, 21, 21, 1}},
		{"room for none", 19 * token, [][]opening{{with(a, 1)}, {with(a, 1), with(a, 2)}}, []int{21, 22}},
		{"nothing is kept", 0, [][]opening{{with(a, 1)}, {with(a, 1), with(a, 2)}}, []int{21, 42}},
		{"too short", 1 << 20, [][]opening{{with(a[:7], 1)}, {with(a[:7], 2)}}, []int{8, 8}},
		{"one that went on from another", 1 << 20, [][]opening{{with(a[:10])}, {with(a)}, {with(a[:12], 1), with(a, 2)}}, []int{10, 10, 2}},
	} {
		if got := runPlans(t, d, c.bytes, c.batches...); !slices.Equal(got, c.want) {
			t.Errorf("%s: ran %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPrefixSeconds holds that a response's time is its share of the tokens run.
func TestPrefixSeconds(t *testing.T) {
	d := newModel(t, tiny(Llama), 21, 1)
	all := calls(3, 50, 2, 2, 2, false)
	for r, p := range generate(t, newSampler(t, d, warm, 4), &list{requests: all}) {
		if !(p.Seconds > 0) {
			t.Errorf("call %d of task %s took %v s", r.Call, r.TaskID, p.Seconds)
		}
	}
}

// TestFailedGenerateLeavesNothing cancels in the middle.
func TestFailedGenerateLeavesNothing(t *testing.T) {
	d := newModel(t, tiny(Llama), 21, 1)
	all := calls(3, 50, 3, 2, 2, false)
	all[4].Context = []int32{99}
	if err := newSampler(t, d, warm, 2).Generate(context.Background(), &list{requests: all}); err == nil {
		t.Error("an id outside the vocabulary is taken")
	}
	s := newSampler(t, d, warm, 2)
	s.PrefixBytesMax = -1
	if err := s.Generate(context.Background(), &list{}); err == nil {
		t.Error("a negative limit is taken")
	}
}
