package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

const tinyVocabulary = 24

// oneThread keeps the test's goroutine on one OS thread, on which libtorch uses
// one: its thread count belongs to an OS thread, and sums depend on it.
func oneThread(t testing.TB) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	torch.SetNumThreads(1)
}

// tinyModel is a decoder of some thousand weights.
func tinyModel(t testing.TB, seed uint64) *model.Decoder {
	t.Helper()
	oneThread(t)
	d, err := model.New(model.Config{
		ModelType: model.Llama, VocabSize: tinyVocabulary, HiddenSize: 16, IntermediateSize: 24,
		NumHiddenLayers: 2, NumAttentionHeads: 2, NumKeyValueHeads: 1, HeadDim: 8,
		MaxPositionEmbeddings: 256, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true,
	}, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Free)
	return d
}

// randomSource is an SFT source of random trajectories with MEM1's update.
func randomSource(seed uint64) (*trace.Trajectory, error) {
	c := aligntest.Small()
	c.Vocab = tinyVocabulary
	return aligntest.Random(rand.New(rand.NewPCG(seed, 3)), c), nil
}

// fakeTokens is the length of each call's output of the fake environment.
const fakeTokens = 6

// fakeRollout plays episodes of three calls under MEM1's update: random prefixes
// and observations, outputs sampled by the policy. The reward is the share of
// sampled ids that are even.
func fakeRollout(episodes int) Rollout { return fakeRolloutAt(episodes, 1) }

func fakeRolloutAt(episodes int, temperature float64) Rollout {
	return func(ctx context.Context, step int, policy *model.Decoder, seed uint64) ([]*trace.Trajectory, error) {
		settings := trace.Sampler{Temperature: temperature, TopP: 1, Seed: seed}
		s, err := model.NewSampler(policy, settings, 8)
		if err != nil {
			return nil, err
		}
		rng := rand.New(rand.NewPCG(seed, 5))
		q := &fakeQueue{requests: map[*trace.Request]*trace.Trajectory{}, rng: rng}
		for i := range episodes {
			t := &trace.Trajectory{
				Schema: trace.SchemaVersion, ID: fmt.Sprintf("step%d/%d", step, i), TaskID: fmt.Sprint(i), Agent: "mem1", Sampler: settings,
				Prefix: randomIDs(rng, 3+rng.IntN(4)), End: trace.EndAnswered,
			}
			q.all = append(q.all, t)
			q.ask(t)
		}
		if err := s.Generate(ctx, q); err != nil {
			return nil, err
		}
		for _, t := range q.all {
			even := 0
			for _, c := range t.Calls {
				for _, id := range c.Output {
					even += int(1 - id%2)
				}
			}
			t.Reward = float64(even) / float64(t.SampledTokens())
			t.Scores = map[string]float64{"em": float64(even % 2), "f1": t.Reward}
		}
		return q.all, nil
	}
}

func randomIDs(rng *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = rng.Int32N(tinyVocabulary)
	}
	return ids
}

// fakeQueue runs the episodes of fakeRollout.
type fakeQueue struct {
	all      []*trace.Trajectory
	ready    []*trace.Request
	requests map[*trace.Request]*trace.Trajectory
	rng      *rand.Rand
}

// ask makes the next request of a trajectory: prefix, last output, its observation.
func (q *fakeQueue) ask(t *trace.Trajectory) {
	context := slices.Clone(t.Prefix)
	if k := len(t.Calls); k > 0 {
		context = append(append(context, t.Calls[k-1].Output...), t.Calls[k-1].Observation...)
	}
	r := &trace.Request{Context: context, PrefixLength: len(t.Prefix), MaxNewTokens: fakeTokens, Seed: q.rng.Uint64()}
	q.requests[r] = t
	q.ready = append(q.ready, r)
}

func (q *fakeQueue) Next() (*trace.Request, bool) {
	if len(q.ready) == 0 {
		return nil, false
	}
	r := q.ready[0]
	q.ready = q.ready[1:]
	return r, true
}

func (q *fakeQueue) Done(r *trace.Request, resp *trace.Response) {
	t := q.requests[r]
	n, k := len(t.Prefix), len(t.Calls)
	spans := []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: n}}
	if k > 0 {
		last := t.Calls[k-1]
		mid := n + len(last.Output)
		spans = append(spans, trace.Span{Origin: trace.OriginRetained, FromCall: k - 1, Start: n, End: mid},
			trace.Span{Origin: trace.OriginObservation, FromCall: k - 1, Start: mid, End: mid + len(last.Observation)})
	}
	c := trace.Call{
		Index: k, Context: r.Context, Spans: spans, Output: resp.Output, LogProbs: resp.LogProbs, Stop: resp.Stop,
		MaxNewTokens: r.MaxNewTokens, Seed: r.Seed, Outcome: trace.OutcomeSearch, Query: "q", Observation: randomIDs(q.rng, 4),
	}
	if k == 2 {
		c.Outcome, c.Query, c.Observation = trace.OutcomeAnswer, "", nil
	}
	if t.Calls = append(t.Calls, c); k < 2 {
		q.ask(t)
	}
}

// tinyPPO is a configuration for tests of some steps.
func tinyPPO(teacher string) PPOConfig {
	c := MiniPPO()
	c.Seed, c.Steps, c.PromptsPerStep, c.Teacher = 7, 4, 6, teacher
	c.TokensPerMinibatch, c.TokensPerMicrobatch = 150, 100
	c.PolicyDelaySteps, c.LearningRate, c.CriticHiddenUnits = 1, 3e-3, 8
	c.RCETrajectoriesPerStep, c.CheckpointEvery, c.EvalEvery, c.BundleEvery = 2, 2, 0, 0
	return c
}

// runPPO runs a configuration in a folder with the fake environment.
func runPPO(t *testing.T, ctx context.Context, c PPOConfig, dir string, resume bool) (*model.Decoder, error) {
	t.Helper()
	p := PPOParts{Initial: tinyModel(t, 1), Rollout: fakeRollout(c.PromptsPerStep), Dir: dir, Resume: resume, TensorBoard: true}
	if c.Teacher != TeacherNone {
		p.Teacher = tinyModel(t, 2)
	}
	d, err := PPO(ctx, c, p)
	if d != nil {
		t.Cleanup(d.Free)
	}
	return d, err
}

// weights lists all weights of a decoder as bits.
func weights(d *model.Decoder) []float32 {
	var all []float32
	for _, p := range d.Parameters() {
		all = append(all, p.Tensor.Float32s()...)
	}
	return all
}

// timeless are the records of a run's folder without what a clock measured.
func timeless(t *testing.T, dir string) []Record {
	t.Helper()
	records, err := ReadRecords(dir + "/" + MetricsFile)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		records[i] = slices.DeleteFunc(r, func(m Metric) bool {
			return len(m.Name) > 7 && m.Name[:7] == "timing_" || m.Name == "perf/throughput"
		})
	}
	return records
}
