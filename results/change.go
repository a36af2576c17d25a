package results

import "fmt"

// Change compares paired values: two variants with the same seeds, or on the
// same tasks.
type Change struct {
	Base, New  float64  // means
	Difference Interval // of the means, new - base
	// Percent is the difference relative to the baseline; nil where the baseline's
	// mean is 0 and the other's not.
	Percent *Interval
	Test    *PairedTest // over seeds; nil over tasks
}

// SeedChange is the change of the means from base to new by the paired t-test,
// a pair a seed. The percent interval is the difference's, divided by the
// baseline's mean, which is taken as it is.
func SeedChange(base, new []float64) (Change, error) {
	test, err := PairedT(base, new)
	if err != nil {
		return Change{}, err
	}
	c := Change{Base: Mean(base), New: Mean(new), Difference: test.Difference, Test: &test}
	if relative := RelativeChange(c.Base, c.New); finite(relative) {
		percent := Interval{Mean: relative}
		if c.Base != 0 {
			half := 100 * test.Difference.Half() / c.Base
			percent = Interval{relative, relative - half, relative + half}
		}
		c.Percent = &percent
	}
	return c, nil
}

// Change is the change of the means from base to new with 95 % percentile
// intervals over the pairs, a pair a task. A bound of the percent is infinite
// where so many resampled baselines are 0. Lists of unlike length, or empty ones,
// are an error.
func (b Bootstrap) Change(base, new []float64) (Change, error) {
	if len(base) != len(new) {
		return Change{}, fmt.Errorf("paired bootstrap of %d and %d values", len(base), len(new))
	}
	var differences, relatives []float64
	err := b.resample(len(base), func(pick []int) {
		m, n := meanOf(base, pick), meanOf(new, pick)
		differences = append(differences, n-m)
		relatives = append(relatives, RelativeChange(m, n))
	})
	if err != nil {
		return Change{}, err
	}
	c := Change{Base: Mean(base), New: Mean(new)}
	c.Difference = percentiles(c.New-c.Base, differences)
	if relative := RelativeChange(c.Base, c.New); finite(relative) {
		percent := percentiles(relative, relatives)
		c.Percent = &percent
	}
	return c, nil
}
