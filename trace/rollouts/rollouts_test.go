package rollouts

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/trace"
)

// What the rows of testdata are made of.
var (
	task   = []int32{1, 2, 3, 4, 5, 6}
	first  = []int32{20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}
	answer = []int32{7, 8, 9}
	second = []int32{40, 41, 42, 43, 44, 45}
)

// scores are the log-probs that the rows give n ids.
func scores(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = -.125 * float32(i%5)
	}
	return out
}

// read returns a file's trajectories and its records' errors, and checks that its
// format is found.
func read(t *testing.T, path, format string) (all []*trace.Trajectory, refused []*Refused) {
	t.Helper()
	f, err := Detect(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != format {
		t.Fatalf("%s is taken for %s", path, f.Name)
	}
	for tr, err := range f.Read(path) {
		var r *Refused
		switch {
		case errors.As(err, &r):
			refused = append(refused, r)
		case err != nil:
			t.Fatal(err)
		default:
			all = append(all, tr)
		}
	}
	for _, tr := range all {
		if err := tr.Validate(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		p, err := align.Compile(tr, align.Options{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if n := len(p.Actions); n != tr.SampledTokens() {
			t.Errorf("%s: %d actions of %d sampled tokens", path, n, tr.SampledTokens())
		}
	}
	return all, refused
}

// twoCalls is what most formats hold: a call, the environment's answer, a call.
func twoCalls() *trace.Trajectory {
	whole := slices.Concat(task, first, answer)
	prefix := trace.Span{Origin: trace.OriginPrefix, FromCall: -1, End: 6}
	return &trace.Trajectory{
		Schema: trace.SchemaVersion, Prefix: task, End: trace.EndUnknown, Sampler: trace.Sampler{Meaning: trace.MeaningUnknown},
		Calls: []trace.Call{
			{Context: task, Spans: []trace.Span{prefix}, Output: first, LogProbs: scores(12), Observation: answer,
				Stop: trace.StopUnknown, Outcome: trace.OutcomeUnknown},
			{Index: 1, Context: whole, Spans: []trace.Span{prefix, {Origin: trace.OriginRetained, Start: 6, End: 18},
				{Origin: trace.OriginObservation, Start: 18, End: 21}}, Output: second, LogProbs: scores(6),
				Stop: trace.StopUnknown, Outcome: trace.OutcomeUnknown},
		},
	}
}

// The formats say the same two calls, each with what it has beside them.
func TestFormatsHoldTheSameCalls(t *testing.T) {
	for _, c := range []struct {
		file, format string
		trajectories int
		set          func(*trace.Trajectory)
	}{
		{"nemo_gym.jsonl", "nemo-gym", 2, func(w *trace.Trajectory) {
			w.ID, w.TaskID, w.Agent, w.Model, w.Reward = "resp_a", "3", "simple", "m", .5
			w.Sampler.Temperature, w.Sampler.TopP = .75, 1
			w.Calls[1].Stop = trace.StopLength
			w.Lacks = []string{LackOrigins, LackMeaning, LackStops, LackTopK}
		}},
		{"nemo_rl.jsonl", "nemo-rl", 1, func(w *trace.Trajectory) {
			w.TaskID, w.Reward = "4", 1
			// An assistant's words in the prompt, without log-probs, were not sampled.
			w.Prefix = []int32{1, 2, 11, 12, 13, 3, 4, 5, 6}
			for i := range w.Calls {
				c := &w.Calls[i]
				c.Context = slices.Concat(w.Prefix, c.Context[6:])
				for j := range c.Spans {
					c.Spans[j].Start, c.Spans[j].End = max(0, c.Spans[j].Start+3), c.Spans[j].End+3
				}
				c.Spans[0].Start = 0
			}
			w.Lacks = []string{LackOrigins, LackMeaning, LackStops, LackTemperature, LackTopK, LackTopP}
		}},
		{"verl.jsonl", "verl", 2, func(w *trace.Trajectory) {
			w.TaskID, w.Reward = "u1", .25
			w.Sampler = trace.Sampler{Temperature: 1, TopP: 1}
			w.Lacks = []string{LackOrigins, LackStops}
		}},
		{"verifiers.jsonl", "prime-rl", 1, func(w *trace.Trajectory) {
			w.TaskID, w.Reward = "5", 1
			w.Sampler.Temperature, w.Sampler.TopP = .75, .5
			w.Calls[1].Stop = trace.StopLength
			w.Lacks = []string{LackOrigins, LackMeaning, LackStops, LackTopK}
		}},
		{"prime_rl_samples.jsonl", "prime-rl", 1, func(w *trace.Trajectory) {
			w.Sampler.Temperature = .5
			w.Lacks = []string{LackOrigins, LackMeaning, LackStops, LackTopK, LackTopP}
		}},
		{"tinker.jsonl", "tinker", 2, func(w *trace.Trajectory) {
			w.Reward = .5
			w.Calls[1].LogProbs, w.Calls[1].Stop = nil, trace.StopLength
			w.Lacks = []string{LackOrigins, LackMeaning, LackLogProbs, LackStops, LackTemperature, LackTopK, LackTopP}
		}},
		{"mem1.jsonl", "mem1", 1, func(w *trace.Trajectory) {
			w.Sampler.Meaning = trace.MeaningProcessed
			w.Calls[0].LogProbs, w.Calls[1].LogProbs = nil, nil
			w.Calls[1].Observation = nil
			w.Lacks = []string{LackBoundaries, LackOrigins, LackContexts, LackLogProbs, LackPadding, LackSampledIDs, LackStops,
				LackTemperature, LackTopK, LackTopP}
		}},
	} {
		all, _ := read(t, filepath.Join("testdata", c.file), c.format)
		if len(all) != c.trajectories {
			t.Errorf("%s: %d trajectories, want %d", c.file, len(all), c.trajectories)
			continue
		}
		want := twoCalls()
		want.ID, want.Agent = c.file+":1", c.format
		c.set(want)
		if want.TaskID == "" {
			want.TaskID = want.ID
		}
		got := all[0]
		for i := range got.Calls { // empty and nil are one
			got.Calls[i].Observation = append([]int32(nil), got.Calls[i].Observation...)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.file, got, want)
		}
	}
}

// Records without ids are refused by name, and the others are read on.
func TestRecordsWithoutIDsAreRefused(t *testing.T) {
	for _, c := range []struct {
		file, format string
		errors       []string
	}{
		{"vllm.jsonl", "vllm", []string{":3: prompt_token_ids: no token ids: choice 0 does not say what it was sampled on"}},
		{"nemo_rl.jsonl", "nemo-rl", []string{":2: message_log: no token ids: none of its 2 messages holds sampled ids",
			":3: message_log[0].token_ids: no token ids: the history is not known from there on"}},
		{"verl_dump.jsonl", "verl", []string{":1: input, output: no token ids: a dump of texts; what the sampler saw cannot be told from them",
			":2: input, output: no token ids: a dump of texts; what the sampler saw cannot be told from them"}},
		{"verifiers.jsonl", "prime-rl", []string{":2: trajectory[0].tokens: no token ids: the client recorded none"}},
		{"tinker.jsonl", "tinker", []string{`:2: trajectories_G[1].transitions[0].ob: no token ids: a chunk of type "image" has none`}},
		{"mem1.jsonl", "mem1", []string{":2: q: no token ids: the record holds texts; what the sampler saw cannot be told from them"}},
	} {
		path := filepath.Join("testdata", c.file)
		_, refused := read(t, path, c.format)
		var got []string
		for _, r := range refused {
			if r.Lacks != LackIDs {
				t.Errorf("%v: lacks %q", r, r.Lacks)
			}
			got = append(got, strings.TrimPrefix(r.Error(), path))
		}
		if !slices.Equal(got, c.errors) {
			t.Errorf("%s: %q, want %q", c.file, got, c.errors)
		}
	}
}

func TestChoicesAreTrajectories(t *testing.T) {
	all, _ := read(t, "testdata/vllm.jsonl", "vllm")
	if len(all) != 3 {
		t.Fatalf("%d trajectories", len(all))
	}
	for i, want := range []struct {
		id       string
		output   []int32
		logProbs []float32
		stop     trace.StopReason
	}{
		{"vllm.jsonl:1", first, scores(12), trace.StopLength}, {"vllm.jsonl:1/1", second, nil, trace.StopUnknown},
		{"vllm.jsonl:2", second, scores(6), trace.StopUnknown},
	} {
		c := &all[i].Calls[0]
		if all[i].ID != want.id || !slices.Equal(c.Output, want.output) || !slices.Equal(c.LogProbs, want.logProbs) || c.Stop != want.stop {
			t.Errorf("choice %d: %+v, want %+v", i, all[i], want)
		}
	}
}

// A call whose items bear no ids is left out and said to be missing.
func TestLostCallsAreNamed(t *testing.T) {
	all, _ := read(t, "testdata/nemo_gym.jsonl", "nemo-gym")
	if slices.Contains(all[0].Lacks, LackCalls) || !slices.Contains(all[1].Lacks, LackCalls) || len(all[1].Calls) != 2 {
		t.Errorf("lacks %q and %q, %d calls", all[0].Lacks, all[1].Lacks, len(all[1].Calls))
	}
}

// A pair of seen and rendered ids is a call and a prompt without output, in which
// the rendering's own ids are of unknown origin.
func TestRenderedPromptsHaveNoOutput(t *testing.T) {
	for _, file := range []string{"testdata/nemo_rl_pair.json", "testdata/nemo_rl_pair_longer.json"} {
		all, refused := read(t, file, "nemo-rl")
		if len(all) != 1 || len(refused) > 0 {
			t.Fatalf("%s: %d trajectories, refused %v", file, len(all), refused)
		}
		tr := all[0]
		if out := append(slices.Clone(first), 91); len(tr.Calls) != 2 || !slices.Equal(tr.Calls[0].Output, out) || tr.Calls[1].Output != nil {
			t.Fatalf("%s: %+v", file, tr)
		}
		// Six ids of the output, one of the template's, no run of eight after it.
		spans := []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: 13}, {Origin: trace.OriginRetained, Start: 13, End: 19},
			{Origin: trace.OriginUnknown, FromCall: -1, Start: 19, End: 33}}
		if got := tr.Calls[1].Spans; !reflect.DeepEqual(got, spans) {
			t.Errorf("%s: spans %v, want %v", file, got, spans)
		}
		if !slices.Contains(tr.Lacks, LackGeneration) || !slices.Contains(tr.Lacks, LackBoundaries) {
			t.Errorf("%s: lacks %q", file, tr.Lacks)
		}
	}
}

// malformedRows are records that a format cannot read, and what is said of them.
func TestMalformedRecordsNameTheField(t *testing.T) {
	for _, c := range []struct{ format, record, says string }{
		{"nemo-gym", `{"response":{"output":[{"prompt_token_ids":[1,"x"],"generation_token_ids":[2]}]}}`, "response.output.[0].prompt_token_ids: no list of token ids"},
		{"nemo-gym", `{"response":{"output":[{"prompt_token_ids":[1,-2],"generation_token_ids":[2]}]}}`, "response.output.[0].prompt_token_ids: token id 1 is -2"},
		{"nemo-gym", `{"response":{"output":[{"prompt_token_ids":[1,null],"generation_token_ids":[2]}]}}`, "token id 1 is null"},
		{"nemo-gym", `{"response":{"output":[{"generation_token_ids":[2]}]}}`, "item 0 has generation_token_ids and no prompt_token_ids"},
		{"nemo-gym", `{"response":{"output":7}}`, "response.output: a number where"},
		{"nemo-gym", `{"response":{"output":[{"prompt_token_ids":[],"generation_token_ids":[2]}]}}`, "call 0 has an empty prompt"},
		{"verl", `{"prompts":[1],"responses":[2,3],"response_mask":[1]}`, "response_mask: 1 for 2 ids"},
		{"verl", `{"prompts":[1],"responses":[2,3]}`, "response_mask: none"},
		{"verl", `{"prompts":[1],"responses":[2],"response_mask":[1],"rollout_log_probs":[0,0]}`, "rollout_log_probs: 2 for 1"},
		{"verl", `{"prompts":[1],"responses":[2],"response_mask":[1],"attention_mask":[1]}`, "attention_mask: 1 for 2"},
		{"prime-rl", `{"prompt_ids":[1],"completion_ids":[2],"completion_mask":[1,1]}`, "completion_mask: 2 for 1"},
		{"prime-rl", `{"trajectory":[{"tokens":{"prompt_ids":[1],"completion_ids":[2],"overlong_prompt":true}}]}`, "trajectory[0].tokens.overlong_prompt: the prompt was cut"},
		{"mem1", `{"q":[1],"t0":[2.5],"r0":[3]}`, "t0: token id 0 is 2.5"},
		{"nemo-rl", `{"seen_token_ids":[1,2],"output_prompt_token_ids":[3]}`, "do not begin alike"},
	} {
		f, err := Named(c.format)
		if err != nil {
			t.Fatal(err)
		}
		path := write(t, c.record+"\n")
		n := 0
		for _, err := range f.Read(path) {
			n++
			var r *Refused
			if !errors.As(err, &r) || r.Lacks != "" || !strings.Contains(err.Error(), c.says) || r.Line != 1 {
				t.Errorf("%s %s: %v, want %q", c.format, c.record, err, c.says)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d results", c.record, n)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnknownFormats(t *testing.T) {
	_, err := Named("csv")
	if err == nil || !strings.Contains(err.Error(), "nemo-gym, vllm, nemo-rl, verl, prime-rl, tinker, mem1") {
		t.Errorf("%v", err)
	}
	for text, says := range map[string]string{`{"x":1}`: "of no known format (known: nemo-gym", "": "no records", "[]": "no records",
		"7": `'7' where a JSON object belongs`, `{"x":`: "unexpected EOF"} {
		if _, err := Detect(write(t, text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// Pads are what the attention mask hides. An id of the same value that was shown or
// sampled, as where the end of a sequence is the pad too, is a token like any other.
func TestPadsAreToldByTheirMask(t *testing.T) {
	const pad = 0
	path := write(t, `{"prompts":[0,0,1,0,2],"responses":[20,0,7,0,21,0,0,0],"response_mask":[1,1,0,0,1,1,0,0],
		"attention_mask":[0,0,1,1,1,1,1,1,1,1,1,0,0],"rollout_log_probs":[-1,-2,0,0,-3,-4,0,0]}`)
	all, _ := read(t, path, "verl")
	if len(all) != 1 || len(all[0].Calls) != 2 {
		t.Fatalf("%+v", all)
	}
	a, b := all[0].Calls[0], all[0].Calls[1]
	if !slices.Equal(a.Context, []int32{1, pad, 2}) || !slices.Equal(a.Output, []int32{20, pad}) || !slices.Equal(a.LogProbs, []float32{-1, -2}) {
		t.Errorf("first call %+v", a)
	}
	if !slices.Equal(b.Context, []int32{1, pad, 2, 20, pad, 7, pad}) || !slices.Equal(b.Output, []int32{21, pad}) || !slices.Equal(b.LogProbs, []float32{-3, -4}) {
		t.Errorf("second call %+v", b)
	}
	if slices.Contains(all[0].Lacks, LackPadding) {
		t.Errorf("lacks %q", all[0].Lacks)
	}
}
