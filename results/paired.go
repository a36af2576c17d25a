package results

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// PairedTest is Student's paired t-test of a difference of means.
type PairedTest struct {
	Difference Interval // new - base, 95 % t interval
	// T is infinite, and P 0, where all differences are the same; of nothing but
	// zeros T is 0 and P 1.
	T float64
	P float64 // two-sided
}

// PairedT tests new against base, paired by place, such as two variants' means
// with the same seeds, with n - 1 degrees of freedom. Lists of unlike length, or
// of fewer than two values, are an error.
func PairedT(base, new []float64) (PairedTest, error) {
	if len(base) != len(new) {
		return PairedTest{}, fmt.Errorf("paired t-test of %d and %d values", len(base), len(new))
	}
	differences := make([]float64, len(base))
	for i := range base {
		differences[i] = new[i] - base[i]
	}
	interval, err := TInterval(differences)
	if err != nil {
		return PairedTest{}, fmt.Errorf("paired t-test: %w", err)
	}
	n := float64(len(differences))
	t := interval.Mean / (StdDev(differences) / math.Sqrt(n))
	if interval.Mean == 0 {
		t = 0
	}
	p := 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Survival(math.Abs(t))
	return PairedTest{interval, t, p}, nil
}
