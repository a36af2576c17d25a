package results

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean with a 95 % interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Half is half the interval's width.
func (i Interval) Half() float64 { return (i.High - i.Low) / 2 }

// Mean is the arithmetic mean, NaN of nothing.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// StdDev is the sample standard deviation (n - 1), NaN of fewer than two values.
func StdDev(values []float64) float64 {
	mean, sum := Mean(values), 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / (float64(len(values)) - 1))
}

// TInterval is the 95 % interval of the mean by Student's t with n - 1 degrees
// of freedom, over independent values such as the seeds' means. Fewer than two
// values are an error.
func TInterval(values []float64) (Interval, error) {
	n := float64(len(values))
	if n < 2 {
		return Interval{}, fmt.Errorf("t interval of %d values", len(values))
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
	mean, half := Mean(values), t*StdDev(values)/math.Sqrt(n)
	return Interval{mean, mean - half, mean + half}, nil
}

// Bootstrap says how intervals over tasks are drawn.
type Bootstrap struct {
	Resamples int
	Seed      uint64
}

// DefaultBootstrap is used by the tables.
var DefaultBootstrap = Bootstrap{Resamples: 10000, Seed: 1}

// Mean is the mean with its 95 % percentile interval. The same seed and number
// of values give the same resamples. No values are an error.
func (b Bootstrap) Mean(values []float64) (Interval, error) {
	var means []float64
	err := b.resample(len(values), func(pick []int) {
		means = append(means, meanOf(values, pick))
	})
	if err != nil {
		return Interval{}, err
	}
	return percentiles(Mean(values), means), nil
}

// RelativeChange is the change from base to new in percent of base: 0 when both
// are 0, infinite when base alone is.
func RelativeChange(base, new float64) float64 {
	if base == new {
		return 0
	}
	return 100 * (new - base) / math.Abs(base)
}

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

// resample draws n indices with replacement, Resamples times.
func (b Bootstrap) resample(n int, each func(pick []int)) error {
	if n == 0 || b.Resamples < 1 {
		return fmt.Errorf("bootstrap of %d values with %d resamples", n, b.Resamples)
	}
	rng := rand.New(rand.NewPCG(b.Seed, 0))
	pick := make([]int, n)
	for range b.Resamples {
		for j := range pick {
			pick[j] = rng.IntN(n)
		}
		each(pick)
	}
	return nil
}

// percentiles is the interval between the 2.5th and the 97.5th of resampled values.
func percentiles(mean float64, resampled []float64) Interval {
	slices.Sort(resampled)
	return Interval{mean, quantile(resampled, 0.025), quantile(resampled, 0.975)}
}

// quantile interpolates linearly between sorted values, as numpy does by default.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	part := at - float64(i)
	if part == 0 || sorted[i] == sorted[i+1] { // infinite values cannot be subtracted
		return sorted[i]
	}
	return sorted[i] + part*(sorted[i+1]-sorted[i])
}

func meanOf(values []float64, pick []int) float64 {
	sum := 0.0
	for _, i := range pick {
		sum += values[i]
	}
	return sum / float64(len(pick))
}
