package export_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/align/export"
	"github.com/memopd/memopd-bench/torch/safetensors"
	"github.com/memopd/memopd-bench/trace"
)

// some are random trajectories of every context update.
func some(t *testing.T) []*trace.Trajectory {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 1))
	var all []*trace.Trajectory
	for _, update := range aligntest.Updates {
		c := aligntest.Small()
		c.Update, c.EmptyOutputChance = update, 0.2
		x := aligntest.Random(rng, c)
		x.Reward = rng.Float64()
		all = append(all, x)
	}
	all[1].Calls[0].LogProbs = nil // an import without them
	return all
}

func build(t *testing.T, layout string, all []*trace.Trajectory) *export.Batch {
	t.Helper()
	l, err := align.LayoutNamed(layout)
	if err != nil {
		t.Fatal(err)
	}
	values := export.Values{"advantage": nil}
	for i, x := range all {
		values["advantage"] = append(values["advantage"], make([]float32, x.SampledTokens()))
		for j := range values["advantage"][i] {
			values["advantage"][i][j] = float32(i) + float32(j)/100
		}
	}
	b, rejected, err := export.Build(all, l, align.Options{Teacher: align.TeacherFromCall(1)}, values)
	if err != nil || len(rejected) != 0 {
		t.Fatal(err, rejected)
	}
	return b
}

// What is written and read back is the same sequence in every layout: ids, positions,
// who sees whom, actions, masks and numbers.
func TestSafetensorsKeepEveryLayout(t *testing.T) {
	all := some(t)
	for _, layout := range align.Layouts() {
		path := filepath.Join(t.TempDir(), "b.safetensors")
		want := build(t, layout.Name, all)
		want.Metadata["ledger_sha256"] = "abc"
		if err := export.WriteSafetensors(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := export.ReadSafetensors(path)
		if err != nil {
			t.Fatalf("%s: %v", layout.Name, err)
		}
		if got.Layout != layout.Name || !reflect.DeepEqual(got.Trajectories, want.Trajectories) || !reflect.DeepEqual(got.Metadata, want.Metadata) {
			t.Errorf("%s: %q, %v, %v", layout.Name, got.Layout, got.Trajectories, got.Metadata)
		}
		if len(got.Sequences) != len(want.Sequences) || !slices.Equal(got.Columns, []string{"advantage", export.LogProb}) {
			t.Fatalf("%s: %d sequences with %v, want %d", layout.Name, len(got.Sequences), got.Columns, len(want.Sequences))
		}
		for i, w := range want.Sequences {
			sameSequence(t, fmt.Sprintf("%s, sequence %d", layout.Name, i), got.Sequences[i], w)
		}
	}
}

func sameSequence(t *testing.T, what string, got, want export.Sequence) {
	t.Helper()
	if !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Positions, want.Positions) || got.PrefixLength != want.PrefixLength {
		t.Errorf("%s: other ids, positions or prefix", what)
	}
	if !slices.Equal(got.Packed.Actions, want.Packed.Actions) || !slices.Equal(got.Trajectories, want.Trajectories) || got.TrajectoryID != want.TrajectoryID {
		t.Errorf("%s: actions %v, want %v", what, got.Packed.Actions, want.Packed.Actions)
	}
	for q := range want.IDs {
		for k := range want.IDs {
			if got.Visible(q, k) != want.Visible(q, k) {
				t.Fatalf("%s: that %d sees %d is %v", what, q, k, got.Visible(q, k))
			}
		}
	}
	for name, column := range want.Columns {
		for a := range column {
			if math.Float32bits(got.Columns[name][a]) != math.Float32bits(column[a]) {
				t.Errorf("%s: %s of action %d is %v, want %v", what, name, a, got.Columns[name][a], column[a])
			}
		}
	}
}

// The flat lists themselves, by hand: a prefix of two, a call of context 0 and output
// 2, and one that retains it. docs/EXPORT.md shows the same file.
func TestListsByHand(t *testing.T) {
	x := &trace.Trajectory{
		ID: "t", TaskID: "task", Prefix: []int32{1, 2}, Reward: 0.5,
		Calls: []trace.Call{
			{Index: 0, Context: []int32{1, 2}, Spans: []trace.Span{{Origin: trace.OriginPrefix, FromCall: -1, End: 2}},
				Output: []int32{3, 4}, LogProbs: []float32{-1, -2}, Observation: []int32{5}},
			{Index: 1, Context: []int32{1, 2, 4, 5}, Spans: []trace.Span{
				{Origin: trace.OriginPrefix, FromCall: -1, End: 2},
				{Origin: trace.OriginRetained, FromCall: 0, Offset: 1, Start: 2, End: 3},
				{Origin: trace.OriginObservation, FromCall: 0, Start: 3, End: 4}},
				Output: []int32{6}, LogProbs: []float32{-3}},
		},
	}
	path := filepath.Join(t.TempDir(), "b.safetensors")
	l, _ := align.LayoutNamed("aligned")
	b, _, err := export.Build([]*trace.Trajectory{x}, l, align.Options{Teacher: align.TeacherFromCall(1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := export.WriteSafetensors(path, b); err != nil {
		t.Fatal(err)
	}
	tensors, metadata, err := safetensors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"ids": []int32{1, 2, 3, 4, 4, 5, 6}, "positions": []int32{0, 1, 2, 3, 2, 3, 4}, "block_ids": []int32{0, 0, 1, 1, 2, 2, 2},
		"action_mask":      []bool{false, false, true, true, false, false, true},
		"teacher_mask":     []bool{false, false, false, false, false, false, true},
		"sequence_offsets": []int64{0, 7}, "prefix_lengths": []int32{2},
		"block_offsets": []int64{0, 3}, "block_start": []int32{0, 2, 4}, "block_end": []int32{2, 4, 7}, "block_call": []int32{-1, 0, 1},
		"range_offsets": []int64{0, 0, 1, 2}, "range_start": []int32{0, 0}, "range_end": []int32{2, 2},
		"action_offsets": []int64{0, 3}, "action_trajectory": []int32{0, 0, 0}, "action_call": []int32{0, 0, 1}, "action_token": []int32{0, 1, 0},
		"action_id": []int32{3, 4, 6}, "action_index": []int32{2, 3, 6}, "action_predict": []int32{1, 2, 5},
		"action_teacher": []bool{false, false, true}, "action_log_prob": []float32{-1, -2, -3}, "trajectory_reward": []float64{0.5},
	}
	if len(tensors) != len(want) || metadata["layout"] != "aligned" || metadata["trajectories"] != `["t"]` || metadata["tasks"] != `["task"]` {
		t.Errorf("%d tensors, want %d; metadata %v", len(tensors), len(want), metadata)
	}
	for name, values := range want {
		var got any
		var err error
		switch values.(type) {
		case []int32:
			got, err = safetensors.Values[int32](tensors[name])
		case []int64:
			got, err = safetensors.Values[int64](tensors[name])
		case []bool:
			got, err = safetensors.Values[bool](tensors[name])
		case []float32:
			got, err = safetensors.Values[float32](tensors[name])
		case []float64:
			got, err = safetensors.Values[float64](tensors[name])
		}
		if err != nil || !reflect.DeepEqual(got, values) {
			t.Errorf("%s is %v (%v), want %v", name, got, err, values)
		}
	}
}

// Samples of one task stand in one sequence: each action keeps its trajectory's
// log-prob, reward and id; samples that do not fit together stand alone.
func TestSamplesOfATaskShareASequence(t *testing.T) {
	all := some(t)
	for i, x := range all {
		x.TaskID = "task0"
		if i > 0 { // one prefix for all but the last, whose task is another
			x.Prefix = all[0].Prefix
			old := x.Calls[0].Spans[0].End
			for k := range x.Calls {
				c := &x.Calls[k]
				c.Context = append(slices.Clone(x.Prefix), c.Context[old:]...)
				for s := range c.Spans {
					c.Spans[s].End += len(x.Prefix) - old
					if s > 0 {
						c.Spans[s].Start += len(x.Prefix) - old
					}
				}
			}
		}
	}
	all[len(all)-1].TaskID = "task1"
	b, rejected, err := export.BuildGroups(all, align.Options{})
	if err != nil || len(rejected) > 0 || len(b.Sequences) != 2 || len(b.Trajectories) != len(all) {
		t.Fatalf("%v, rejected %v, %d sequences of %d trajectories", err, rejected, len(b.Sequences), len(b.Trajectories))
	}
	path := filepath.Join(t.TempDir(), "b.safetensors")
	if err := export.WriteSafetensors(path, b); err != nil {
		t.Fatal(err)
	}
	got, err := export.ReadSafetensors(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i, s := range got.Sequences {
		sameSequence(t, fmt.Sprint("sequence ", i), s, b.Sequences[i])
		for j, a := range s.Packed.Actions {
			at := s.Trajectories[a.Trajectory]
			c := all[at].Calls[a.Call]
			if got.Trajectories[at].ID != all[at].ID || c.Output[a.Token] != a.ID {
				t.Errorf("action %d is of %q", j, got.Trajectories[at].ID)
			}
			if p := s.Columns[export.LogProb][j]; c.LogProbs != nil && p != c.LogProbs[a.Token] || c.LogProbs == nil && p == p {
				t.Errorf("action %d has the log-prob %v", j, p)
			}
			seen++
		}
	}
	sampled := 0
	for _, x := range all {
		sampled += x.SampledTokens()
	}
	if seen != sampled {
		t.Errorf("%d actions of %d sampled tokens", seen, sampled)
	}
	apart, _, err := export.BuildGroups(all, align.Options{MaxPackedTokens: len(b.Sequences[0].IDs) - 1})
	if err != nil || len(apart.Sequences) != len(all) {
		t.Errorf("what does not fit together: %v, %d sequences", err, len(apart.Sequences))
	}
}

// Numbers that are not one a sampled token are refused, and so are rejections counted.
func TestBuildRefuses(t *testing.T) {
	all := some(t)
	l, _ := align.LayoutNamed("aligned")
	for name, values := range map[string]export.Values{
		"values of 1 trajectories": {"advantage": {{1}}},
		"1 values of advantage":    {"advantage": slices.Repeat([][]float32{{1}}, len(all))},
	} {
		if _, _, err := export.Build(all, l, align.Options{}, values); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	all[2].Calls[0].Index = 5
	b, rejected, err := export.Build(all, l, align.Options{}, nil)
	if err != nil || len(rejected) != 1 || rejected[0].Reason != align.ReasonInconsistent || len(b.Trajectories) != len(all)-1 {
		t.Errorf("%v, rejected %v, %d taken", err, rejected, len(b.Trajectories))
	}
}

// A file whose lists contradict each other is an error that names the list.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b.safetensors")
	if err := export.WriteSafetensors(path, build(t, "aligned", some(t))); err != nil {
		t.Fatal(err)
	}
	tensors, metadata, err := safetensors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(name string, change func(map[string]safetensors.Tensor, map[string]string)) {
		t.Helper()
		x, m := map[string]safetensors.Tensor{}, map[string]string{}
		for k, v := range tensors {
			v.Data = slices.Clone(v.Data)
			x[k] = v
		}
		for k, v := range metadata {
			m[k] = v
		}
		change(x, m)
		var all []safetensors.Tensor
		for _, v := range x {
			all = append(all, v)
		}
		if err := safetensors.WriteFile(path, all, m); err != nil {
			t.Fatal(err)
		}
		if _, err := export.ReadSafetensors(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	set := func(name string, at int, value int32) func(map[string]safetensors.Tensor, map[string]string) {
		return func(x map[string]safetensors.Tensor, _ map[string]string) {
			list, err := safetensors.Values[int32](x[name])
			if err != nil {
				t.Fatal(err)
			}
			list[at] = value
			x[name] = safetensors.Of(name, list)
		}
	}
	spoil("memopd.packed.schema", func(_ map[string]safetensors.Tensor, m map[string]string) { m["memopd.packed.schema"] = "9" })
	spoil(`no tensor "action_predict"`, func(x map[string]safetensors.Tensor, _ map[string]string) { delete(x, "action_predict") })
	spoil(`"positions" has 1 elements`, func(x map[string]safetensors.Tensor, _ map[string]string) {
		x["positions"] = safetensors.Of("positions", []int32{1})
	})
	spoil(`"ids" holds F32`, func(x map[string]safetensors.Tensor, _ map[string]string) {
		x["ids"] = safetensors.Of("ids", []float32{1})
	})
	spoil(`"sequence_offsets" has 2 elements`, func(x map[string]safetensors.Tensor, _ map[string]string) {
		x["sequence_offsets"] = safetensors.Of("sequence_offsets", []int64{0, -5})
	})
	spoil("is predicted at -1", set("action_predict", 0, -1))
	spoil("of trajectory 99", set("action_trajectory", 0, 99))
	spoil("a block is [0, 0)", set("block_end", 0, 0))
	spoil("sees [0, 1000)", set("range_end", 0, 1000))
	spoil("the prefix at 1000", set("prefix_lengths", 0, 1000))
	spoil("metadata tasks", func(_ map[string]safetensors.Tensor, m map[string]string) { delete(m, "tasks") })
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := export.ReadSafetensors(path); err == nil {
		t.Error("a broken file was read")
	}
}

// A file says of which distribution its log-probs are: temperature, top-k, top-p and
// whether those were applied; where trajectories differ in any of them, that they do.
func TestFilesSayWhoseLogProbsTheyHold(t *testing.T) {
	raw := trace.Sampler{Temperature: 0.5, TopK: 3, TopP: 0.75, Meaning: trace.MeaningRaw, Seed: 9}
	processed := raw
	processed.Meaning = trace.MeaningProcessed
	for _, c := range []struct {
		a, b trace.Sampler
		want string
	}{
		{raw, raw, `{"greedy":false,"temperature":0.5,"top_k":3,"top_p":0.75,"seed":0,"meaning":"raw"}`},
		{processed, processed, `{"greedy":false,"temperature":0.5,"top_k":3,"top_p":0.75,"seed":0}`},
		{raw, processed, "mixed"},
	} {
		all := some(t)[:2]
		all[0].Sampler, all[1].Sampler = c.a, c.b
		path := filepath.Join(t.TempDir(), "b.safetensors")
		if err := export.WriteSafetensors(path, build(t, "aligned", all)); err != nil {
			t.Fatal(err)
		}
		got, err := export.ReadSafetensors(path)
		if err != nil || got.Metadata["sampler"] != c.want {
			t.Errorf("%+v and %+v: %q, %v", c.a, c.b, got.Metadata["sampler"], err)
		}
	}
}
