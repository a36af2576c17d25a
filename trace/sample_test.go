package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// sample makes a valid trajectory with MEM1's rule, all fields set.
func sample(seed uint64) *Trajectory {
	r := rand.New(rand.NewPCG(seed, 0))
	t := &Trajectory{
		Schema: SchemaVersion, ID: fmt.Sprintf("w1/q2-%d#0", seed), TaskID: fmt.Sprintf("w1/q2-%d", seed),
		Agent: "mem1", Model: "runs/ppo é \"x\" <y>", Prefix: ids(r, 1+r.IntN(9)),
		Sampler: Sampler{Temperature: r.Float64(), TopK: r.IntN(50), TopP: r.Float64(), Seed: r.Uint64()},
		End:     EndAnswered, Answers: []string{"kome", "", "São Tomé\u00a0x"},
		Reward: r.NormFloat64(), Scores: map[string]float64{"em": 1, "f1": r.Float64()},
	}
	for k := range 1 + r.IntN(5) {
		t.Calls = append(t.Calls, sampleCall(r, t, k))
	}
	if first := &t.Calls[0]; len(t.Calls) == 5 {
		first.RetrievalError, first.Documents = "status 503 \"x\"", nil
	}
	last := &t.Calls[len(t.Calls)-1]
	last.Outcome, last.Query, last.Observation, last.Documents = OutcomeAnswer, "", nil, nil
	return t
}

func sampleCall(r *rand.Rand, t *Trajectory, k int) Call {
	c := Call{
		Index: k, Output: ids(r, 1+r.IntN(12)), Stop: StopTag, Outcome: OutcomeSearch,
		Query: "noge", Observation: ids(r, 1+r.IntN(9)), Documents: []string{"w1/noge", "w1/ä"},
		Seed: r.Uint64()>>1 | 1, MaxNewTokens: 12, Seconds: r.Float64(), RetrievalSeconds: r.Float64(),
	}
	if r.IntN(4) > 0 {
		for range c.Output {
			c.LogProbs = append(c.LogProbs, -r.Float32()*float32(r.ExpFloat64()))
		}
		c.LogProbs[0] = 0 // a real value, not a missing one
	}
	c.Context = slices.Clone(t.Prefix)
	c.Spans = []Span{{Origin: OriginPrefix, FromCall: -1, End: len(t.Prefix)}}
	if k > 0 {
		before := t.Calls[k-1]
		c.copySpan(OriginRetained, k-1, before.Output)
		c.copySpan(OriginObservation, k-1, before.Observation)
	}
	return c
}

func (c *Call) copySpan(origin Origin, from int, source []int32) {
	start := len(c.Context)
	c.Context = append(c.Context, source...)
	c.Spans = append(c.Spans, Span{Origin: origin, FromCall: from, Start: start, End: len(c.Context)})
}

func ids(r *rand.Rand, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = r.Int32N(1 << 18)
	}
	return out
}

// cancelled is a trajectory that ended before its first call.
func cancelled() *Trajectory {
	return &Trajectory{Schema: SchemaVersion, ID: "x#0", TaskID: "x", Agent: "full", End: EndCancelled, Error: "context canceled"}
}
