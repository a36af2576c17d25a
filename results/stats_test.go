package results

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func TestTInterval(t *testing.T) {
	for _, c := range []struct {
		values []float64
		half   float64 // t table (0.975): 12.7062 for 1, 2.7764 for 4 degrees of freedom
	}{
		{[]float64{1, 3}, 12.706204736 * 1},
		{[]float64{1, 2, 3, 4, 5}, 2.776445105 * math.Sqrt(2.5) / math.Sqrt(5)},
		{[]float64{4, 4, 4}, 0},
	} {
		got, err := TInterval(c.values)
		if err != nil || !near(got.Half(), c.half, 1e-6) || got.Mean != Mean(c.values) || !near(got.Mean-got.Low, c.half, 1e-6) {
			t.Errorf("TInterval(%v) = %+v, %v; want ±%v", c.values, got, err, c.half)
		}
	}
	if _, err := TInterval([]float64{1}); err == nil {
		t.Error("one value has an interval")
	}
}

// The expected values are numpy.quantile's.
func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		q, want float64
	}{
		{[]float64{1, 2, 3, 4}, 0.025, 1.075},
		{[]float64{1, 2, 3, 4}, 0.975, 3.925},
		{[]float64{1, 2, 4}, 0.5, 2},
		{[]float64{1, 2, 4}, 1, 4},
		{[]float64{7}, 0.3, 7},
		{[]float64{0, math.Inf(1), math.Inf(1)}, 0.75, math.Inf(1)},
		{[]float64{0, 3, math.Inf(1)}, 0.5, 3},
	} {
		if got := quantile(c.values, c.q); got != c.want && !near(got, c.want, 1e-12) {
			t.Errorf("quantile(%v, %v) = %v, want %v", c.values, c.q, got, c.want)
		}
	}
}

func TestBootstrapMean(t *testing.T) {
	b := Bootstrap{Resamples: 2000, Seed: 4}
	// Two values: a resample's mean is 0, 0.5 or 1 with 1/4, 1/2, 1/4.
	if got, err := b.Mean([]float64{0, 1}); err != nil || got != (Interval{0.5, 0, 1}) {
		t.Errorf("two values: %+v, %v", got, err)
	}
	if got, err := b.Mean([]float64{3}); err != nil || got != (Interval{3, 3, 3}) {
		t.Errorf("one value: %+v, %v", got, err)
	}
	if _, err := b.Mean(nil); err == nil {
		t.Error("no values have an interval")
	}
	if _, err := (Bootstrap{}).Mean([]float64{1}); err == nil {
		t.Error("no resamples give an interval")
	}
	// Many values: the normal approximation.
	rng := rand.New(rand.NewPCG(1, 1))
	values := make([]float64, 400)
	for i := range values {
		values[i] = rng.NormFloat64()
	}
	got, err := b.Mean(values)
	want := 1.96 * StdDev(values) / 20
	if err != nil || !near(got.Half(), want, 0.06*want) || got.Low > got.Mean || got.High < got.Mean {
		t.Errorf("interval %+v, %v; want ±%v", got, err, want)
	}
	if again, _ := b.Mean(values); again != got {
		t.Errorf("the same seed gives %+v and %+v", got, again)
	}
	if other, _ := (Bootstrap{Resamples: 2000, Seed: 5}).Mean(values); other == got {
		t.Error("another seed gives the same resamples")
	}
}

func TestBootstrapChange(t *testing.T) {
	b := Bootstrap{Resamples: 1000, Seed: 1}
	base := []float64{1, 2, 4, 8, 16}
	double := []float64{2, 4, 8, 16, 32}
	// Paired: whatever tasks are drawn, the mean doubles.
	got, err := b.Change(base, double)
	if err != nil || got.Percent == nil || *got.Percent != (Interval{100, 100, 100}) {
		t.Errorf("doubled: %+v, %v", got.Percent, err)
	}
	if d := got.Difference; d.Mean != 6.2 || d.Low < 1 || d.High > 16 || d.Low >= d.High {
		t.Errorf("difference %+v, want 6.2 within (1, 16)", d)
	}
	if got, err := b.Change([]float64{0, 0}, []float64{0, 1}); err != nil || got.Percent != nil || got.Difference != (Interval{0.5, 0, 1}) {
		t.Errorf("baseline 0: %+v, %v", got, err)
	}
	// A quarter of the resampled baselines are 0: no upper bound.
	if got, err := b.Change([]float64{0, 1}, []float64{1, 1}); err != nil || got.Percent == nil || *got.Percent != (Interval{100, 0, math.Inf(1)}) {
		t.Errorf("baseline nearly 0: %+v, %v", got.Percent, err)
	}
	if got, err := b.Change([]float64{0, 0}, []float64{0, 0}); err != nil || got.Percent == nil || got.Percent.Mean != 0 {
		t.Errorf("both 0: %+v, %v", got, err)
	}
	if _, err := b.Change(base, base[1:]); err == nil {
		t.Error("unlike lengths are compared")
	}
	if _, err := b.Change(nil, nil); err == nil {
		t.Error("nothing is compared")
	}
}

func TestRelativeChange(t *testing.T) {
	for _, c := range [][3]float64{{4, 5, 25}, {4, 3, -25}, {0, 0, 0}, {0, 1, math.Inf(1)}, {-2, -1, 50}} {
		if got := RelativeChange(c[0], c[1]); got != c[2] {
			t.Errorf("RelativeChange(%v, %v) = %v, want %v", c[0], c[1], got, c[2])
		}
	}
}
