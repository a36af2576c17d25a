package audit

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// entropyGradient is that of the mean entropy over every token after the prefix of
// each call's own row, negated, by autograd: the response domain.
func entropyGradient(o MaskOptions) (gradient [][]float64, positions int) {
	s := torch.NewScope()
	defer s.Close()
	var sums []*torch.Tensor
	for _, traj := range o.Trajectories {
		for _, c := range traj.Calls {
			ids := append(append([]int32(nil), c.Context...), c.Output...)
			n := len(ids) - len(traj.Prefix)
			hidden := o.Model.HiddenAll([][]int32{ids}).Narrow(0, int64(len(traj.Prefix)-1), int64(n))
			logp := o.Model.Logits(hidden).LogSoftmax(-1)
			sums = append(sums, logp.Exp().Mul(logp).Sum())
			positions += n
		}
	}
	torch.Stack(sums, 0).Sum().DivScalar(float64(positions)).Backward()
	for _, p := range o.Model.Parameters() {
		gradient = append(gradient, p.Tensor.Grad().Float64s())
		p.Tensor.ZeroGrad()
	}
	return gradient, positions
}

func TestMasksByHand(t *testing.T) {
	o := MaskOptions{
		ClipEpsilon: DefaultClipEpsilon,
		Model:       newModel(t, 1), Teacher: newModel(t, 2), Trajectories: sampled(3),
		Domains: named(t, "aligned", "calls", "trajectory-mask", "response-mask"), GradientTrajectories: -1, Seed: 3,
	}
	o.Compute = cpu("f32")
	o.Compute.LogitsPerChunk = 9
	live := torch.Live()
	r, err := Masks(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if torch.Live() != live {
		t.Errorf("%d tensors live, %d before", torch.Live(), live)
	}
	sampledTokens, copies, observed := 0, 0, 0
	for _, traj := range o.Trajectories {
		sampledTokens += traj.SampledTokens()
		for _, c := range traj.Calls {
			for _, s := range c.Spans {
				switch s.Origin {
				case trace.OriginRetained:
					copies += s.End - s.Start
				case trace.OriginObservation:
					observed += s.End - s.Start
				}
			}
		}
	}
	for i, want := range []struct{ positions, spurious, copies int }{
		{sampledTokens, 0, 0}, {sampledTokens, 0, 0}, {sampledTokens + observed, observed, 0}, {sampledTokens + observed + copies, observed + copies, copies},
	} {
		d := r.Domains[i]
		if d.Positions != want.positions || d.Spurious != want.spurious || d.Copies != want.copies || copies == 0 || observed == 0 {
			t.Errorf("%s: %+v, want %+v", d.Name, d, want)
		}
		if len(d.Gradients) != 3 {
			t.Fatalf("%s: %d gradients", d.Name, len(d.Gradients))
		}
	}
	for i, g := range r.Domains[1].Gradients { // the same domain row by row
		near(t, g.Loss+" cosine", g.Cosine, 1, 1e-5)
		near(t, g.Loss+" norm", g.Norm, r.Domains[0].Gradients[i].Norm, 1e-5)
	}
	for _, g := range r.Domains[3].Gradients {
		if !(g.Cosine < 0.99) {
			t.Errorf("%s: spurious positions change nothing: cosine %g", g.Loss, g.Cosine)
		}
	}
	want, positions := entropyGradient(o)
	norm := 0.0
	for _, p := range want {
		for _, x := range p {
			norm += x * x
		}
	}
	if g := r.Domains[3].Gradients[1]; g.Loss != LossEntropy || positions != r.Domains[3].Positions {
		t.Errorf("%+v over %d positions, want %d", g, r.Domains[3].Positions, positions)
	} else {
		near(t, "entropy over the response domain", g.Norm, math.Sqrt(norm), 1e-4)
	}
	for _, p := range o.Model.Parameters() {
		if p.Tensor.Grad() != nil {
			t.Fatalf("%s keeps a gradient", p.Name)
		}
	}
}

// Without a teacher there is no KL; a teacher that is the model has a KL of nothing.
func TestMasksWithoutTeacher(t *testing.T) {
	d := newModel(t, 1)
	o := MaskOptions{ClipEpsilon: DefaultClipEpsilon, Model: d, Trajectories: sampled(2), Domains: named(t, "aligned", "response-mask"), GradientTrajectories: 1, Compute: cpu("f32")}
	r, err := Masks(context.Background(), o)
	if err != nil || len(r.Domains[0].Gradients) != 2 || r.GradientTrajectories != 1 || r.Trajectories != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	o.Teacher = d
	if r, err = Masks(context.Background(), o); err != nil || r.Domains[0].Gradients[2].Norm > 1e-6 {
		t.Fatalf("a teacher that is the student: %+v, %v", r.Domains, err)
	}
	if data, err := json.Marshal(r.Rows()); err != nil || !strings.Contains(string(data), `"loss":"kl"`) {
		t.Errorf("%s, %v", data, err)
	}
	o.GradientTrajectories = 0
	if r, err = Masks(context.Background(), o); err != nil || len(r.Domains[0].Gradients) != 0 || r.Domains[1].Spurious == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	var b strings.Builder
	if err := r.Table().WriteText(&b); err != nil || !strings.Contains(b.String(), "66830") {
		t.Errorf("table %v:\n%s", err, b.String())
	}
	o.Domains = []align.Layout{}
	if _, err := Masks(context.Background(), o); err == nil {
		t.Error("no domains are taken")
	}
}
