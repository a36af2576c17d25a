package train

import (
	"math"
	"math/rand/v2"
	"testing"
)

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = float64(x[i])
	}
	return y
}

// Worked by hand with gamma 0.9, lambda 0.5: delta = (0.35, -0.15, 0.5), so
// A_2 = 0.5, A_1 = -0.15 + 0.45*0.5 = 0.075, A_0 = 0.35 + 0.45*0.075 = 0.38375.
func TestGAEByHand(t *testing.T) {
	a, err := GAE([]float32{0.3, -0.1, 1}, []float32{0.4, 0.5, 0.5}, 0.9, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "advantage", widen(a.Advantage), []float64{0.38375, 0.075, 0.5}, 1e-6)
	near(t, "return", widen(a.Return), []float64{0.78375, 0.575, 1}, 1e-6)
}

// With lambda 1 the advantage is the discounted rest of the rewards less the
// value (the definition, summed forwards); with lambda 0 it is the one-step error.
func TestGAELimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		n := 1 + rng.IntN(40)
		rewards, values := make([]float32, n), make([]float32, n)
		for i := range n {
			rewards[i], values[i] = rng.Float32()-0.5, rng.Float32()-0.5
		}
		gamma := 0.8 + 0.2*rng.Float64()
		one, err := GAE(rewards, values, gamma, 1)
		if err != nil {
			t.Fatal(err)
		}
		zero, err := GAE(rewards, values, gamma, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			rest, next := 0.0, 0.0
			for k := i; k < n; k++ {
				rest += math.Pow(gamma, float64(k-i)) * float64(rewards[k])
			}
			if i+1 < n {
				next = float64(values[i+1])
			}
			near(t, "lambda 1", []float64{float64(one.Advantage[i]), float64(one.Return[i])}, []float64{rest - float64(values[i]), rest}, 1e-5)
			near(t, "lambda 0", []float64{float64(zero.Advantage[i])}, []float64{float64(rewards[i]) + gamma*next - float64(values[i])}, 1e-5)
		}
	}
	if _, err := GAE(make([]float32, 3), make([]float32, 2), 1, 1); err == nil {
		t.Error("3 rewards for 2 values were accepted")
	}
}

func TestTokenRewards(t *testing.T) {
	got, err := TokenRewards(0.5, 0.1, []float32{-1, -2, -3}, []float32{-2, -2, -1})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "rewards", widen(got), []float64{-0.1, 0, 0.2 + 0.5}, 1e-6)
	if got, err = TokenRewards(0.5, 0, []float32{-1, -2}, nil); err != nil {
		t.Fatal(err)
	}
	near(t, "rewards without KL", widen(got), []float64{0, 0.5}, 0)
	if _, err := TokenRewards(0.5, 0.1, []float32{-1, -2}, []float32{-1}); err == nil {
		t.Error("1 reference log-prob for 2 actions was accepted")
	}
}

func TestWhiten(t *testing.T) {
	a, b := []float32{1, 2}, []float32{3, 6}
	mean, deviation := Whiten(a, b)
	near(t, "moments", []float64{mean, deviation}, []float64{3, math.Sqrt(3.5)}, 1e-12)
	s := math.Sqrt(3.5)
	near(t, "whitened", widen(append(a, b...)), []float64{-2 / s, -1 / s, 0, 3 / s}, 1e-6)
	same := []float32{2, 2, 2}
	Whiten(same)
	near(t, "equal advantages", widen(same), []float64{0, 0, 0}, 0)
}

func TestExplainedVariance(t *testing.T) {
	near(t, "explained variance", []float64{
		ExplainedVariance([]float32{1, 2, 3}, []float32{1, 2, 3}),
		ExplainedVariance([]float32{5, 5, 5}, []float32{1, 2, 3}),
		ExplainedVariance([]float32{3, 2, 1}, []float32{1, 2, 3}),
	}, []float64{1, 0, -3}, 1e-9)
	if v := ExplainedVariance([]float32{1, 2}, []float32{1, 1}); !math.IsNaN(v) {
		t.Errorf("explained variance of equal returns is %g, want NaN", v)
	}
}
