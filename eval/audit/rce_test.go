package audit

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// byHand are the figures of the persistent layout, each token from two plain rows
// that are forwarded on their own.
func byHand(t *testing.T, o Options) (errors, dlogits []float64, flips, clips []bool) {
	t.Helper()
	for _, traj := range o.Trajectories {
		temperature := traj.Sampler.Temperature
		history := slices.Clone(traj.Prefix)
		for _, c := range traj.Calls {
			context := slices.Clone(c.Context)
			for _, id := range c.Output {
				want, wantLogits := distribution(o.Model, context, temperature)
				have, haveLogits := distribution(o.Model, history, temperature)
				most := 0.0
				for i := range want {
					most = max(most, math.Abs(wantLogits[i]-haveLogits[i]))
				}
				ratio := math.Exp(have[id] - want[id])
				errors, dlogits = append(errors, math.Abs(have[id]-want[id])), append(dlogits, most)
				flips, clips = append(flips, argmax(have) != argmax(want)), append(clips, ratio < 0.7 || ratio > 1.3)
				context, history = append(context, id), append(history, id)
			}
			history = append(history, c.Observation...)
		}
	}
	return errors, dlogits, flips, clips
}

func TestRCEByHand(t *testing.T) {
	o := Options{Tolerance: DefaultTolerance, Model: newModel(t, 1), Trajectories: sampled(4), Layouts: named(t, "aligned", "calls", "persistent"), ClipEpsilon: 0.3}
	for i, traj := range o.Trajectories {
		traj.Sampler.Temperature = []float64{1, 0.6, 1.5, 1}[i]
	}
	o.Compute.LogitsPerChunk = 7
	live := torch.Live()
	r, err := RCE(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if torch.Live() != live {
		t.Errorf("%d tensors live, %d before", torch.Live(), live)
	}
	errors, dlogits, flips, clips := byHand(t, o)
	l := r.Named("persistent")
	if len(l.Records) != len(errors) || l.Tokens != len(errors) || r.Tokens != len(errors) {
		t.Fatalf("%d records, %d and %d tokens, want %d", len(l.Records), l.Tokens, r.Tokens, len(errors))
	}
	sum := func(list []bool) (n int) {
		for _, x := range list {
			if x {
				n++
			}
		}
		return n
	}
	for i, x := range l.Records {
		near(t, "error", x.Error, errors[i], 1e-5)
		near(t, "dlogit", x.DLogit, dlogits[i], 1e-4)
		if x.Flip != flips[i] || x.Clip != clips[i] {
			t.Errorf("token %d: flip %v, clip %v, want %v, %v", i, x.Flip, x.Clip, flips[i], clips[i])
		}
	}
	slices.Sort(errors)
	n := len(errors)
	near(t, "p50", l.P50, errors[(n+1)/2-1], 1e-5)
	near(t, "p99", l.P99, errors[int(math.Ceil(.99*float64(n)))-1], 1e-5)
	near(t, "max", l.Max, errors[n-1], 1e-5)
	near(t, "max dlogit", l.MaxDLogit, slices.Max(dlogits), 1e-4)
	if l.Flips != sum(flips) || l.FalseClips != sum(clips) || l.Flips == 0 || l.FalseClips == 0 || l.Pass {
		t.Errorf("%d flips, %d clips, pass %v, want %d, %d (some of both), false", l.Flips, l.FalseClips, l.Pass, sum(flips), sum(clips))
	}
	if l.Before.Max > 1e-5 || l.After.P99 < 0.1 || l.Before.Tokens+l.After.Tokens != l.Tokens {
		t.Errorf("before %+v, after %+v", l.Before, l.After)
	}
	tokens := 0
	for _, p := range l.ByCall {
		tokens += p.Tokens
	}
	if tokens != l.Tokens || l.ByCall[0].Tokens != l.Before.Tokens {
		t.Errorf("%d tokens by call, %d in all", tokens, l.Tokens)
	}
	if c := r.Named("calls"); c.Max != 0 || c.MaxDLogit != 0 || c.States != 0 || !c.Pass || len(c.Failures) != 0 {
		t.Errorf("the truth against itself: %+v", c.Row())
	}
	if a := r.Named("aligned"); a.Max > 1e-5 || a.States != 0 || !a.Pass || a.MaxDLogit == 0 {
		t.Errorf("aligned: %+v, %v", a.Row(), a.Reasons)
	}
	if r.Recorded != nil {
		t.Error("log-probs are compared that were not recorded")
	}
}

// persistentGradient is the PPO loss's in the flattened history by autograd, the old
// log-probs being those of the calls: a list a weight.
func persistentGradient(o Options, advantages []float32, persistent bool) [][]float64 {
	s := torch.NewScope()
	defer s.Close()
	d := o.Model
	traj := o.Trajectories[0]
	logProbs := func(ids []int32, from int, output []int32) *torch.Tensor {
		hidden := d.HiddenAll([][]int32{ids}).Narrow(0, int64(from-1), int64(len(output)))
		picks := make([]int64, len(output))
		for i, id := range output {
			picks[i] = int64(id)
		}
		return d.Logits(hidden).LogSoftmax(-1).Gather(-1, torch.FromInt64(picks, int64(len(output)), 1)).Squeeze(-1)
	}
	var own, other []*torch.Tensor
	history := slices.Clone(traj.Prefix)
	for _, c := range traj.Calls {
		own = append(own, logProbs(append(slices.Clone(c.Context), c.Output...), len(c.Context), c.Output))
		history = append(history, c.Output...)
		other = append(other, logProbs(history, len(history)-len(c.Output), c.Output))
		history = append(history, c.Observation...)
	}
	old := torch.Cat(own, 0)
	now := old
	if persistent {
		now = torch.Cat(other, 0)
	}
	a := torch.FromFloat32(advantages, int64(len(advantages)))
	ratio := now.Sub(old.Detach()).Exp()
	ratio.Mul(a).Minimum(ratio.Clamp(0.8, 1.2).Mul(a)).Mean().Neg().Backward()
	var all [][]float64
	for _, p := range d.Parameters() {
		all = append(all, p.Tensor.Grad().Float64s())
		p.Tensor.ZeroGrad()
	}
	return all
}

func TestGradientErrorByAutograd(t *testing.T) {
	o := Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: newModel(t, 2), Trajectories: sampled(3), Layouts: named(t, "aligned", "persistent"), GradientTrajectories: 1, Seed: 4}
	r, err := RCE(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := align.Calls(o.Trajectories[0], align.Options{})
	if err != nil {
		t.Fatal(err)
	}
	advantages := (&rce{o: o}).advantages(0, &audited{truth: newTruth(rows)})
	have, want := persistentGradient(o, advantages, true), persistentGradient(o, advantages, false)
	difference, size := 0.0, 0.0
	for i := range have {
		for j := range have[i] {
			difference += (have[i][j] - want[i][j]) * (have[i][j] - want[i][j])
			size += want[i][j] * want[i][j]
		}
	}
	near(t, "gradient error", r.Named("persistent").GradError, math.Sqrt(difference/size), 1e-4)
	if a := r.Named("aligned"); !(a.GradError < 1e-5) || !(a.After.GradError < 1e-5) || !(a.Before.GradError < 1e-5) {
		t.Errorf("aligned: %g, %g, %g", a.GradError, a.Before.GradError, a.After.GradError)
	}
	if p := r.Named("persistent"); !(p.Before.GradError < 1e-5) || p.After.GradError < 0.01 || r.GradientTrajectories != 1 {
		t.Errorf("persistent: %g before, %g after, over %d", p.Before.GradError, p.After.GradError, r.GradientTrajectories)
	}
	for _, p := range o.Model.Parameters() {
		if p.Tensor.Grad() != nil {
			t.Fatalf("%s keeps a gradient", p.Name)
		}
	}
}

// spoilt is the aligned layout with one thing spoilt in its rows.
func spoilt(spoil func(t *trace.Trajectory, p *align.Packed)) align.Layout {
	return align.Layout{Name: "spoilt", Rows: func(t *trace.Trajectory, o align.Options) ([]*align.Packed, error) {
		o.PrefixOnly = true
		p, err := align.Compile(t, o)
		if err == nil {
			spoil(t, p)
		}
		return []*align.Packed{p}, err
	}}
}

// TestFailuresAreExplained spoils one part of one trajectory, from call 2 on: the
// first failing token is there, and the part is named.
func TestFailuresAreExplained(t *testing.T) {
	trajectories := sampled(3)
	id := trajectories[1].ID
	d := newModel(t, 3)
	for _, c := range []struct {
		part  align.Part
		at    func(b align.Block) int // the place that is wrong
		spoil func(p *align.Packed, b *align.Block)
	}{
		{align.PartIDs, start, func(p *align.Packed, b *align.Block) { p.IDs[b.Start] = (p.IDs[b.Start] + 1) % vocabulary }},
		{align.PartPositions, start, func(p *align.Packed, b *align.Block) { p.Positions[b.Start] += 9 }},
		{align.PartVisibility, nil, func(_ *align.Packed, b *align.Block) { b.Sees = []align.Range{{Start: 0, End: b.Start}} }},
		{align.PartVisibility, nil, func(_ *align.Packed, b *align.Block) { b.Sees = []align.Range{} }},
		{align.PartPrediction, nil, func(p *align.Packed, b *align.Block) {
			for i := range p.Actions {
				if p.Actions[i].Call == b.Call {
					p.Actions[i].Predict = p.Actions[i].Index
				}
			}
		}},
	} {
		l := spoilt(func(t *trace.Trajectory, p *align.Packed) {
			if t.ID == id {
				c.spoil(p, &p.Blocks[2])
			}
		})
		r, err := RCE(context.Background(), Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: trajectories, Layouts: []align.Layout{l}})
		if err != nil {
			t.Fatal(err)
		}
		s := r.Layouts[0]
		if s.Pass || len(s.Failures) != 1 {
			t.Errorf("%s: pass %v, failures %v", c.part, s.Pass, s.Failures)
			continue
		}
		f := s.Failures[0]
		if f.Trajectory != id || f.Call != 2 || f.Token != 0 || !slices.Equal(f.Parts, []align.Part{c.part}) {
			t.Errorf("%s: %s", c.part, f)
		}
		p, _ := align.Compile(trajectories[1], align.Options{PrefixOnly: true})
		if c.at != nil && f.At != c.at(p.Blocks[2]) {
			t.Errorf("%s: at place %d, want %d", c.part, f.At, c.at(p.Blocks[2]))
		}
		if f.Place != p.Actions[slices.IndexFunc(p.Actions, func(a align.Action) bool { return a.Call == 2 })].Index {
			t.Errorf("%s: place %d", c.part, f.Place)
		}
		for _, x := range s.Records {
			if other := x.Trajectory != 1 || x.Call != 2; other && (!x.Same || x.failed(r.Tolerance)) || !other && x.Same && c.part != align.PartPrediction {
				t.Errorf("%s: %+v", c.part, x)
			}
		}
		if err := r.Verdict([]string{"spoilt"}); err == nil || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), string(c.part)) {
			t.Errorf("%s: verdict %v", c.part, err)
		}
	}
}

func start(b align.Block) int { return b.Start }

// A context token that is not stored, an action that is dropped, one that is added.
func TestLostTokensAndActions(t *testing.T) {
	trajectories := sampled(1)
	cut := align.Layout{Name: "cut", Rows: func(t *trace.Trajectory, o align.Options) ([]*align.Packed, error) {
		rows, err := align.Calls(t, o)
		last := rows[len(rows)-1]
		n := last.PrefixLength + 1 // without the oldest mutable token
		last.IDs = append(slices.Clone(last.IDs[:n-1]), last.IDs[n:]...)
		last.Positions = last.Positions[:len(last.IDs)]
		last.Blocks[0].End--
		for i := range last.Actions {
			last.Actions[i].Index--
			last.Actions[i].Predict--
		}
		return rows, err
	}}
	dropped := align.Layout{Name: "dropped", Rows: func(t *trace.Trajectory, o align.Options) ([]*align.Packed, error) {
		rows, err := align.Calls(t, o)
		return rows[:len(rows)-1], err
	}}
	twice := align.Layout{Name: "twice", Rows: func(t *trace.Trajectory, o align.Options) ([]*align.Packed, error) {
		rows, err := align.Calls(t, o)
		return append(rows, rows[0]), err
	}}
	r, err := RCE(context.Background(), Options{
		Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon,
		Model: newModel(t, 3), Trajectories: trajectories, Layouts: append(named(t, "response-mask"), cut, dropped, twice), GradientTrajectories: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Named("cut").Failures; len(f) != 1 || !slices.Contains(f[0].Parts, align.PartTruncation) {
		t.Errorf("cut: %v", f)
	}
	last := len(trajectories[0].Calls[len(trajectories[0].Calls)-1].Output)
	if l := r.Named("dropped"); l.Missing != last || l.Pass || l.Tokens != r.Tokens-last || l.Max != 0 || !slices.Contains(l.Failures[0].Parts, align.PartMask) {
		t.Errorf("dropped: %+v %v", l.Row(), l.Reasons)
	}
	if l := r.Named("twice"); l.Spurious != len(trajectories[0].Calls[0].Output) || l.Pass || l.Tokens != r.Tokens || l.Missing != 0 {
		t.Errorf("twice: %+v, %d spurious, %d missing", l.Row(), l.Spurious, l.Missing)
	}
	if l := r.Named("response-mask"); l.Spurious == 0 || l.Pass || l.P99 > 1e-5 || l.States != 0 || !(l.GradError < 1e-5) {
		t.Errorf("response-mask: %+v, %d spurious", l.Row(), l.Spurious)
	}
}

// TestRecorded compares what the sampler noted: right, off at one token, truncated.
func TestRecorded(t *testing.T) {
	d := newModel(t, 5)
	trajectories := sampled(2)
	for _, traj := range trajectories {
		for k := range traj.Calls {
			c := &traj.Calls[k]
			c.LogProbs = nil
			ids := slices.Clone(c.Context)
			for _, id := range c.Output {
				own, _ := distribution(d, ids, 1)
				c.LogProbs = append(c.LogProbs, float32(own[id]))
				ids = append(ids, id)
			}
		}
	}
	audit := func() *Report {
		r, err := RCE(context.Background(), Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: trajectories, Layouts: named(t, "aligned")})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := audit()
	if r.Recorded == nil || r.Recorded.Tokens != r.Tokens || r.Recorded.Max > 1e-5 || r.Verdict([]string{"aligned", "recorded"}) != nil {
		t.Fatalf("recorded: %+v", r.Recorded)
	}
	if data, _ := json.Marshal(r.Recorded.Row()); !strings.Contains(string(data), `"flips":null`) || !strings.Contains(string(data), `"grad_error":null`) {
		t.Errorf("recorded: %s", data)
	}
	trajectories[1].Calls[1].LogProbs[0] -= 0.5
	if l := audit().Recorded; l.Pass || math.Abs(l.Max-0.5) > 1e-4 || l.FalseClips != 1 || !strings.Contains(strings.Join(l.Reasons, " "), "1 false clips") {
		t.Errorf("one log-prob off by .5: %+v %v", l.Row(), l.Reasons)
	}
	trajectories[1].Sampler.TopP = 0.9
	if r := audit(); r.Recorded.Tokens != r.Trajectories[0].Tokens || len(r.Incomparable) != 1 || r.Incomparable[0].ID != trajectories[1].ID {
		t.Errorf("log-probs of a truncated distribution are compared: %d tokens, %v", r.Recorded.Tokens, r.Incomparable)
	}
	for _, c := range []struct {
		s    trace.Sampler
		want string
	}{
		{trace.Sampler{Greedy: true, TopK: 3}, ""}, {trace.Sampler{Temperature: 0.5, TopP: 1}, ""}, {trace.Sampler{Temperature: 1, TopP: 1, Meaning: trace.MeaningRaw}, ""},
		{trace.Sampler{Temperature: 0.5, TopP: 1, Meaning: trace.MeaningRaw}, `meaning is "raw"`}, {trace.Sampler{TopP: 1}, "temperature is not known"},
		{trace.Sampler{Temperature: 1, TopP: 1, TopK: 5}, "top-k 5"},
	} {
		if got := incomparable(&trace.Trajectory{Sampler: c.s}); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}

func TestWrongUse(t *testing.T) {
	d, trajectories := newModel(t, 8), sampled(2)
	broken := sampled(1)[0]
	broken.Calls[1].Output[0] = vocabulary
	short := sampled(1)[0]
	short.Calls[1].Context = nil
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Trajectories: trajectories}, "no model"},
		{Options{Model: d}, "no trajectories"},
		{Options{ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: trajectories, Tolerance: -1}, "tolerance -1"},
		{Options{Tolerance: DefaultTolerance, Model: d, Trajectories: trajectories, ClipEpsilon: 1}, "clip epsilon 1"},
		{Options{Model: d, Trajectories: trajectories, ClipEpsilon: DefaultClipEpsilon}, "tolerance 0"},
		{Options{Model: d, Trajectories: trajectories, Tolerance: DefaultTolerance}, "clip epsilon 0"},
		{Options{Model: d, Trajectories: trajectories, Tolerance: math.Inf(1), ClipEpsilon: DefaultClipEpsilon}, "finite"},
		{Options{Model: d, Trajectories: trajectories, Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, GradientTrajectories: -2}, "-2 trajectories for gradients"},
		{Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: trajectories, Compute: cpu("f8")}, `unknown dtype "f8" (known: f32, bf16)`},
		{Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: []*trace.Trajectory{broken}}, "call 1: output token 0 is id 40, the model has 40"},
		{Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: trajectories, Layouts: named(t, "aligned", "aligned")}, `layout "aligned" twice`},
		{Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: []*trace.Trajectory{short}, Layouts: named(t, "aligned")}, "none of 1 trajectories"},
	} {
		if _, err := RCE(context.Background(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	r, err := RCE(context.Background(), Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: append(trajectories, short), Layouts: named(t, "aligned"), GradientTrajectories: -1})
	if err != nil || len(r.Rejected) != 1 || len(r.Trajectories) != 2 || r.GradientTrajectories != 2 || !r.Named("aligned").Pass {
		t.Errorf("one of three is rejected: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	steps := 0
	_, err = RCE(ctx, Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: trajectories, Layouts: named(t, "aligned"), Progress: func(done, total int) {
		if steps++; steps == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || steps != 3 {
		t.Errorf("cancelled after %d steps: %v", steps, err)
	}
}
