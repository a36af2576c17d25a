package train

import (
	"math"

	"github.com/memopd/memopd-bench/torch"
)

// The objectives are sums over sampled actions, never means: a loop divides by
// the number of action tokens of the whole mini-batch (token-mean), so that the
// result does not depend on how it was cut into microbatches.
//
// Shapes: A is the number of sampled actions. They are gathered before they come
// here, so no function has a mask or a shift of its own. What sees the whole
// vocabulary stands in distribution.go.

// Surrogate is a summed policy loss and what it says of the update.
type Surrogate struct {
	Loss         *torch.Tensor // sum over actions of the negated surrogate, ()
	ClippedCount float64       // actions whose clipped term was the smaller one
	KLSum        float64       // sum of (ratio - 1) - log ratio: the k3 estimate of KL(behaviour || policy)
	RatioMax     float64
	RatioMin     float64
}

// ClippedSurrogate is PPO's clipped objective (Schulman et al., arXiv
// 1707.06347, equation 7), negated and summed:
//
//	sum of -min(r A, clip(r, 1 - clip, 1 + clip) A),  r = exp(logProbs - behaviour)
//
// logProbs (A) are the policy's, behaviour (A) and advantages (A) have no gradient.
func ClippedSurrogate(logProbs, behaviour, advantages *torch.Tensor, clip float64) Surrogate {
	logRatio := logProbs.Sub(behaviour.Detach())
	ratio := logRatio.Exp()
	plain := ratio.Mul(advantages)
	clipped := ratio.Clamp(1-clip, 1+clip).Mul(advantages)
	s := Surrogate{Loss: plain.Minimum(clipped).Sum().Neg()}
	if logProbs.Numel() == 0 {
		return s
	}
	torch.NoGrad(func() {
		s.ClippedCount = clipped.Lt(plain).To(torch.Float32).Sum().Item()
		s.KLSum = ratio.AddScalar(-1).Sub(logRatio).Sum().Item()
		s.RatioMax, s.RatioMin = ratio.Max().Item(), ratio.Min().Item()
	})
	return s
}

// SampledReverseKL estimates the summed KL(student || teacher) and its gradient from
// the sampled tokens alone:
//
//	sum of r sg(log p(id) - log q(id)),  r = exp(logProbs - behaviour)
//
// where sg has no gradient. For an id drawn from the behaviour policy both are
// unbiased, as the tests show by going over all ids: the value's mean is the sum over
// v of p(v) (log p(v) - log q(v)), the gradient's that of this sum, whose other part, the
// sum over v of p(v) grad log p(v), is 0. The estimate is Schulman's k1
// (http://joschu.net/blog/kl-approx.html), used as the negated advantage of a policy
// gradient with importance sampling, which is what on-policy distillation does: Thinking
// Machines' blog of that name and tinker-cookbook's distillation/train_on_policy.py,
// veRL's trainer/distillation/losses.py with k1 and use_policy_gradient.
//
// k1 or k3 as a loss to be differentiated has another gradient: k1's mean is 0, k3's is
// that of the forward KL. k2 = (log p - log q)^2/2 has the one used here where r is 1
// (veRL's "k3+" takes it for that), but no ratio, so that it is biased from the
// second mini-batch on. Tinker holds log p at the sampler's value; we take the policy's,
// as veRL does, and clip nothing: a clip biases. There is no baseline; the variance is
// the estimator's own.
//
// logProbs (A) are the student's, behaviour (A) and teacher (A) have no gradient.
func SampledReverseKL(logProbs, behaviour, teacher *torch.Tensor) *torch.Tensor {
	ratio := logProbs.Sub(behaviour.Detach()).Exp()
	return ratio.Mul(logProbs.Detach().Sub(teacher.Detach())).Sum()
}

// ValueLoss is a summed value loss and how many actions the clip changed.
type ValueLoss struct {
	Loss         *torch.Tensor // ()
	ClippedCount float64
}

// ClippedValueLoss is half the squared error to the returns, where a value that
// moved more than clip away from the one that the rollout was judged with counts
// as clipped, and the larger of both errors is taken (as CleanRL and veRL do):
//
//	sum of max((v - R)^2, (old + clamp(v - old, -clip, clip) - R)^2) / 2
//
// clip 0 leaves the clip out. All arguments have shape (A).
func ClippedValueLoss(values, old, returns *torch.Tensor, clip float64) ValueLoss {
	plain := values.Sub(returns).Square()
	if clip == 0 {
		return ValueLoss{Loss: plain.Sum().MulScalar(0.5)}
	}
	near := old.Add(values.Sub(old).Clamp(-clip, clip))
	clipped := near.Sub(returns).Square()
	l := ValueLoss{Loss: plain.Maximum(clipped).Sum().MulScalar(0.5)}
	torch.NoGrad(func() {
		l.ClippedCount = clipped.Gt(plain).To(torch.Float32).Sum().Item()
	})
	return l
}

// CosineSchedule is the factor on the learning rate at a step (from 0): a linear
// warm-up over warmupSteps times a cosine from 1 to floor over all steps.
func CosineSchedule(step, steps, warmupSteps int, floor float64) float64 {
	warm := 1.0
	if warmupSteps > 0 {
		warm = math.Min(1, float64(step+1)/float64(warmupSteps))
	}
	progress := 1.0
	if steps > 0 {
		progress = math.Min(1, float64(step)/float64(steps))
	}
	return warm * (floor + (1-floor)*0.5*(1+math.Cos(math.Pi*progress)))
}
