package train

import (
	"fmt"
	"math"
)

// Advantages are the estimates for one trajectory, one value a sampled action.
type Advantages struct {
	Advantage []float32
	Return    []float32 // Advantage + value: the target of the value loss
}

// GAE computes generalised advantage estimates (Schulman et al., arXiv
// 1506.02438, equation 16) over the sampled actions of one trajectory, ordered
// by call and token. Context copies and observations are no actions and so do
// not stand between two of them. The state after the last action has value 0:
//
//	delta_t = reward_t + gamma * value_{t+1} - value_t
//	A_t     = delta_t + gamma * lambda * A_{t+1}
func GAE(rewards, values []float32, gamma, lambda float64) (Advantages, error) {
	if len(rewards) != len(values) {
		return Advantages{}, fmt.Errorf("gae: %d rewards for %d values", len(rewards), len(values))
	}
	a := Advantages{
		Advantage: make([]float32, len(rewards)),
		Return:    make([]float32, len(rewards)),
	}
	next, running := 0.0, 0.0
	for t := len(rewards) - 1; t >= 0; t-- {
		value := float64(values[t])
		delta := float64(rewards[t]) + gamma*next - value
		running = delta + gamma*lambda*running
		a.Advantage[t] = float32(running)
		a.Return[t] = float32(running + value)
		next = value
	}
	return a, nil
}

// TokenRewards gives each sampled action its reward: -beta * (behaviour -
// reference), the token's estimate of the KL to the reference policy (the k1
// estimator, log-probability difference of the sampled token, as in MEM1's and
// veRL's in-reward KL), and the task's reward at the last action. With no
// action there is nothing to reward and the result is empty. reference may be nil when beta is 0.
func TokenRewards(taskReward, beta float64, behaviour, reference []float32) ([]float32, error) {
	rewards := make([]float32, len(behaviour))
	if beta != 0 {
		if len(reference) != len(behaviour) {
			return nil, fmt.Errorf("token rewards: %d reference log-probs for %d actions", len(reference), len(behaviour))
		}
		for t := range rewards {
			rewards[t] = float32(-beta * (float64(behaviour[t]) - float64(reference[t])))
		}
	}
	if n := len(rewards); n > 0 {
		rewards[n-1] += float32(taskReward)
	}
	return rewards, nil
}

// Whiten shifts and scales all advantages of a batch in place to mean 0 and
// standard deviation 1 (population deviation plus 1e-8), over all sampled
// actions together. It returns the mean and deviation that they had.
func Whiten(advantages ...[]float32) (mean, deviation float64) {
	mean, deviation = moments(advantages...)
	for _, a := range advantages {
		for t, x := range a {
			a[t] = float32((float64(x) - mean) / (deviation + 1e-8))
		}
	}
	return mean, deviation
}

// ExplainedVariance is 1 - Var(returns - values) / Var(returns): 1 when the
// critic predicts every return, 0 when it does no better than a constant. It is
// NaN when the returns do not vary.
func ExplainedVariance(values, returns []float32) float64 {
	residual := make([]float32, len(returns))
	for t := range returns {
		residual[t] = returns[t] - values[t]
	}
	_, total := moments(returns)
	_, left := moments(residual)
	if total == 0 {
		return math.NaN()
	}
	return 1 - left*left/(total*total)
}

// moments returns mean and population standard deviation over all slices; both
// are 0 when they are empty.
func moments(slices ...[]float32) (mean, deviation float64) {
	n := 0
	for _, s := range slices {
		n += len(s)
		for _, x := range s {
			mean += float64(x)
		}
	}
	if n == 0 {
		return 0, 0
	}
	mean /= float64(n)
	sum := 0.0
	for _, s := range slices {
		for _, x := range s {
			d := float64(x) - mean
			sum += d * d
		}
	}
	return mean, math.Sqrt(sum / float64(n))
}
