package train

import "github.com/memopd/memopd-bench/torch"

// The losses over the vocabulary as one would write them for autograd, on all
// actions at once: what the chunked ones are compared with.

// LogDistribution is log softmax(logits / temperature) in float32, (A, V).
// Sampler, student, reference and teacher all use the same temperature.
func LogDistribution(logits *torch.Tensor, temperature float64) *torch.Tensor {
	if logits.DType() != torch.Float32 && logits.DType() != torch.Float64 {
		logits = logits.To(torch.Float32)
	}
	if temperature != 1 {
		logits = logits.DivScalar(temperature)
	}
	return logits.LogSoftmax(-1)
}

// LogProbs gathers the log-probability of each action's id from log
// distributions (A, V): (A).
func LogProbs(logDistribution, ids *torch.Tensor) *torch.Tensor {
	return logDistribution.Gather(-1, ids.Unsqueeze(-1)).Squeeze(-1)
}

// Entropy of each action's distribution in nats: (A, V) to (A).
func Entropy(logDistribution *torch.Tensor) *torch.Tensor {
	return logDistribution.Exp().Mul(logDistribution).SumDim([]int{-1}, false).Neg()
}

// ReverseKL is the full-vocabulary KL(student || teacher) = sum over v of
// p_s(v) (log p_s(v) - log p_t(v)) of each action, from log distributions (A, V)
// to (A). The teacher's gets no gradient. This is the teacher term of MemOPD; the
// order of its arguments makes it the reverse, mode-seeking one.
func ReverseKL(student, teacher *torch.Tensor) *torch.Tensor {
	difference := student.Sub(teacher.Detach())
	return student.Exp().Mul(difference).SumDim([]int{-1}, false)
}
