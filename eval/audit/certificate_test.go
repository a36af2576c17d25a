package audit

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch"
	"github.com/memopd/memopd-bench/train"
)

// In bfloat16 the truth stays float32, the floor is shown, and nothing is certified.
func TestBFloat16HasAFloorAndNoCertificate(t *testing.T) {
	r, err := RCE(context.Background(), Options{
		Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon,
		Model: newModel(t, 6), Trajectories: sampled(2), Layouts: named(t, "aligned"), Compute: cpu(train.BFloat16), GradientTrajectories: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	a := r.Named("aligned")
	if r.Floor == nil || !(r.Floor.P99 > 1e-3) || !(a.P99 > 1e-3) || a.P99 > 3*r.Floor.P99 || a.Pass || a.States != 0 {
		t.Fatalf("aligned %+v, floor %+v", a.Row(), r.Floor)
	}
	if f := a.Failures[0]; !slices.Equal(f.Parts, []align.Part{align.PartDType}) {
		t.Errorf("%s", f)
	}
	if _, err := r.Certify([]string{"aligned"}); err == nil || !strings.Contains(err.Error(), "no certificate in bf16") {
		t.Errorf("certificate: %v", err)
	}
	if err := r.Verdict([]string{"aligned"}); err == nil {
		t.Error("bf16 passes")
	}
}

func TestCertificate(t *testing.T) {
	r, err := RCE(context.Background(), Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: newModel(t, 7), Trajectories: sampled(2), Layouts: named(t, "aligned", "persistent"), GradientTrajectories: -1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Certify([]string{"aligned"})
	if err != nil || !c.Pass {
		t.Fatalf("%+v, %v", c, err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Layouts []map[string]any `json:"layouts"`
		Pass    bool             `json:"pass"`
		DType   string           `json:"dtype"`
	}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Layouts) != 2 || back.Layouts[0]["role"] != "audited" || back.Layouts[1]["role"] != "control" || back.Layouts[1]["pass"] != false || !back.Pass || back.DType != "f32" {
		t.Errorf("%s", data)
	}
	one := sampled(1)
	one[0].Calls = one[0].Calls[:1]
	alone, err := RCE(context.Background(), Options{Tolerance: DefaultTolerance, ClipEpsilon: DefaultClipEpsilon, Model: newModel(t, 7), Trajectories: one, Layouts: named(t, "aligned", "calls", "persistent")})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := alone.Table([]string{"aligned"}).WriteText(&b); err != nil || !strings.Contains(b.String(), "the control persistent passes") || strings.Contains(b.String(), "control calls passes") {
		t.Errorf("a control that cannot fail: %v\n%s", err, b.String())
	}
	if c, err := r.Certify([]string{"aligned", "persistent"}); err != nil || c.Pass {
		t.Errorf("passes with a layout that does not: %v", err)
	}
	line, err := json.Marshal(r.Rows()[0])
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(line, &keys); err != nil {
		t.Fatal(err)
	}
	want := []string{"name", "tokens", "p50", "p99", "max", "flips", "false_clips", "max_dlogit", "grad_error", "pass"}
	for _, k := range want {
		if _, ok := keys[k]; !ok {
			t.Errorf("no key %s in %s", k, line)
		}
	}
	if len(keys) != len(want) {
		t.Errorf("keys of %s, want %v", line, want)
	}
}

func TestHashModel(t *testing.T) {
	d := newModel(t, 9)
	hash := func() string {
		h, err := HashModel(d)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := hash()
	copied := d.Clone()
	defer copied.Free()
	if other, err := HashModel(copied); err != nil || other != first || len(first) != 64 {
		t.Errorf("a copy has %s, not %s (%v)", other, first, err)
	}
	torch.NoGrad(func() { d.Parameters()[3].Tensor.MulScalar_(1.001) })
	if hash() == first {
		t.Error("other weights, the same hash")
	}
}
