package audit

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/trace"
)

// TestTeacherByHand reckons every figure from two plain rows a token.
func TestTeacherByHand(t *testing.T) {
	d := newModel(t, 1)
	trajectories := sampled(3)
	trajectories[2].Sampler.Temperature = 0.7
	short := sampled(1)[0]
	short.Calls[1].Context = nil
	o := TeacherOptions{Tolerance: DefaultTolerance, Model: d, Trajectories: append(slices.Clone(trajectories), short), Compute: cpu("f32")}
	o.Compute.LogitsPerChunk = 5
	live := torch.Live()
	r, err := Teacher(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if torch.Live() != live {
		t.Errorf("%d tensors live, %d before", torch.Live(), live)
	}
	var errors []float64
	kl, flips, before := 0.0, 0, 0
	for _, traj := range trajectories {
		history := slices.Clone(traj.Prefix)
		for k, c := range traj.Calls {
			context := slices.Clone(c.Context)
			for _, id := range c.Output {
				if k == 0 {
					before++
				}
				p, _ := distribution(d, context, traj.Sampler.Temperature)
				q, _ := distribution(d, history, traj.Sampler.Temperature)
				errors = append(errors, math.Abs(p[id]-q[id]))
				for i := range p {
					kl += math.Exp(p[i]) * (p[i] - q[i])
				}
				if argmax(p) != argmax(q) {
					flips++
				}
				context, history = append(context, id), append(history, id)
			}
			history = append(history, c.Observation...)
		}
	}
	n := len(errors)
	slices.Sort(errors)
	near(t, "p99", float64(r.All.P99), errors[int(math.Ceil(.99*float64(n)))-1], 1e-5)
	near(t, "max", float64(r.All.Max), errors[n-1], 1e-5)
	near(t, "mean KL", float64(r.All.MeanKL), kl/float64(n), 1e-4)
	near(t, "agreement", float64(r.All.Agreement), 1-float64(flips)/float64(n), 1e-9)
	if r.All.Flips != flips || flips == 0 || r.All.Tokens != n || r.Before.Tokens != before || r.After.Tokens != n-before {
		t.Errorf("%+v, want %d flips of %d tokens, %d of call 0", r.All, flips, n, before)
	}
	if r.Before.Flips != 0 || r.Before.Agreement != 1 || r.Before.Max > 1e-5 || math.Abs(float64(r.Before.MeanKL)) > 1e-6 {
		t.Errorf("before the first update: %+v", r.Before)
	}
	if len(r.Rejected) != 1 || r.Trajectories != 3 {
		t.Errorf("%d trajectories, %v rejected", r.Trajectories, r.Rejected)
	}
	if _, err := Teacher(context.Background(), TeacherOptions{Tolerance: DefaultTolerance, Model: d, Trajectories: []*trace.Trajectory{short}}); err == nil || !strings.Contains(err.Error(), "none of 1") {
		t.Errorf("nothing to compare: %v", err)
	}
	var b strings.Builder
	if err := r.Table().WriteText(&b); err != nil || !strings.Contains(b.String(), "after, published") || !strings.Contains(b.String(), "19.854") {
		t.Errorf("table %v:\n%s", err, b.String())
	}
}
