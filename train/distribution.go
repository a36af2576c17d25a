package train

import (
	"math"

	"github.com/memopd/memopd-bench/torch"
)

// Everything that has the vocabulary's width is worked on here, a chunk of
// prediction positions at a time and in place: the logits of a chunk become log
// distributions and then the gradient of the losses on the logits. With a teacher
// two arrays of (chunk, V) float32 live, its and the student's; whatever else is
// needed is made for a block of rows.
//
// The gradients of softmax, entropy and KL are written out, since autograd would
// keep several such arrays more. For a row with probabilities p = softmax(u),
// u = logits / temperature:
//
//	d log p(id) / du = onehot(id) - p
//	d H / du         = -p (log p + H)
//	d KL / du        = p (log p - log q - KL)

// The sizes of what is made for a block of rows, in elements: a second-level
// cache's worth on a CPU, enough for all of a GPU. A test makes blocks small.
var (
	blockElementsCPU int64 = 1 << 18
	blockElementsGPU int64 = 1 << 24
)

// inBlocks calls f with the runs of rows [start, start+n) of t (C, V), each call in
// a scope of its own.
func inBlocks(t *torch.Tensor, f func(start, n int64)) {
	rows, elements := t.Dim(0), blockElementsGPU
	if t.Device() == "cpu" {
		elements = blockElementsCPU
	}
	size := max(1, elements/t.Dim(1))
	for start := int64(0); start < rows; start += size {
		s := torch.NewScope()
		f(start, min(size, rows-start))
		s.Close()
	}
}

// logSoftmax_ turns logits (C, V) into log softmax(logits / temperature), in place
// and outside autograd. Sampler, student, reference and teacher all use the same
// temperature. The logits are float32 or float64.
func logSoftmax_(logits *torch.Tensor, temperature float64) *torch.Tensor {
	torch.NoGrad(func() {
		all := logits.Detach()
		inBlocks(all, func(start, n int64) {
			x := all.Narrow(0, start, n)
			if temperature != 1 {
				x.MulScalar_(1 / temperature)
			}
			x.Sub_(x.Amax([]int{-1}, true))
			x.Sub_(x.Exp().SumDim([]int{-1}, true).Log())
		})
	})
	return logits
}

// picked gathers the log-probability of each action's id from log distributions
// (C, V): (C).
func picked(logDistribution, ids *torch.Tensor) *torch.Tensor {
	return logDistribution.Detach().Gather(-1, ids.Unsqueeze(-1)).Squeeze(-1)
}

// terms are the parts of a loss over a chunk of C actions that see the whole
// vocabulary. The loss is
//
//	sum of Picked log p(id) + EntropyWeight sum of H + KLWeight sum of KL(p || teacher)
type terms struct {
	IDs           *torch.Tensor // (C) int64
	Picked        *torch.Tensor // (C): the derivative of the loss by log p(id); nil: no such term
	EntropyWeight float64
	KLWeight      float64
	Teacher       *torch.Tensor // (T, V) log distributions, overwritten; nil without a teacher
	TeacherRows   []int64       // the T rows of the chunk that have one, rising

	// TopK is 0, or the number of ids that the KL tells apart: the student's most
	// probable ones. All others are one bucket, with the sum of their probabilities on
	// either side:
	//
	//	sum over v in S of p(v) (log p(v) - log q(v)) + P (log P - log Q)
	//
	// The student's, since the reverse KL is a mean under the student: what it holds
	// likely is where the sum is large, and what a teacher behind a server would be
	// asked for (TRL's DistillationTrainer takes the same support for the reverse KL). With
	// the rest as a bucket (TRL's loss_add_tail, veRL's tail) it stays a KL, of coarser
	// distributions: not negative, at most the full one, equal to it when S leaves out
	// one id or none. Renormalised over S it would not see the teacher's mass elsewhere.
	// Ids within the bucket keep their proportions: the gradient moves them alike.
	TopK int
}

// gradient turns log distributions (C, V), the result of logSoftmax_, into the
// gradient of the loss on the logits, in place and outside autograd. It returns
// the summed entropy in nats and the summed KL(student || teacher) =
// sum over v of p(v) (log p(v) - log q(v)), which is MemOPD's teacher term: the
// order of its arguments makes it the reverse, mode-seeking one.
func (t terms) gradient(logDistribution *torch.Tensor, temperature float64) (entropy, kl float64) {
	torch.NoGrad(func() {
		all := logDistribution.Detach()
		sums := torch.NewScope()
		defer sums.Close()
		var entropies, kls []*torch.Tensor
		inBlocks(all, func(start, n int64) {
			h, k := t.block(all.Narrow(0, start, n), start, n)
			entropies = append(entropies, h.Keep())
			if k != nil {
				kls = append(kls, k.Keep())
			}
		})
		if t.Picked != nil {
			all.IndexPut_([]*torch.Tensor{torch.Arange(all.Dim(0)).ToDevice(all.Device()), t.IDs}, t.Picked, true)
		}
		if temperature != 1 {
			all.MulScalar_(1 / temperature)
		}
		entropy, kl = total(entropies), total(kls)
	})
	return entropy, kl
}

// block is gradient on rows x (n, V) from start on, the onehot of the picked ids
// apart. It returns the sums of entropies and of KLs; the latter is nil without any.
func (t terms) block(x *torch.Tensor, start, n int64) (entropy, kl *torch.Tensor) {
	p := x.Exp()
	sum := func(y *torch.Tensor) *torch.Tensor { return y.SumDim([]int{-1}, true) }
	h := sum(p.Mul(x)).Neg() // (n, 1)
	toTeacher, rows, kl := t.teacherBlock(x, p, start, n)

	// p times (-EntropyWeight (log p + H) - Picked), row by row.
	if t.EntropyWeight != 0 {
		x.Add_(h, 1).MulScalar_(-t.EntropyWeight)
	} else {
		x.Zero_()
	}
	if t.Picked != nil {
		x.Sub_(t.Picked.Narrow(0, start, n).Unsqueeze(-1))
	}
	x.Mul_(p)
	if toTeacher != nil {
		x.IndexAdd_(0, rows, toTeacher)
	}
	return h.Sum(), kl
}

// teacherBlock is KLWeight times the gradient of the KL on those rows of the block
// that have a teacher, (m, V), the rows' places in the block, and the sum of KLs.
func (t terms) teacherBlock(x, p *torch.Tensor, start, n int64) (gradient, rows, kl *torch.Tensor) {
	first, places := 0, []int64(nil)
	for i, row := range t.TeacherRows {
		if row < start {
			first = i + 1
		} else if row < start+n {
			places = append(places, row-start)
		}
	}
	if len(places) == 0 {
		return nil, nil, nil
	}
	rows = torch.FromInt64(places).ToDevice(x.Device())
	if int64(len(places)) < n {
		x, p = x.IndexSelect(0, rows), p.IndexSelect(0, rows)
	}
	q := t.Teacher.Narrow(0, int64(first), int64(len(places)))
	var rest *torch.Tensor
	top := t.top(x)
	if top != nil {
		rest = outside(q, top).Sub(outside(x, top))
	}
	q.Sub_(x) // log q - log p
	if top != nil {
		inside := q.Gather(-1, top)
		q.Copy_(rest).Scatter_(-1, top, inside)
	}
	each := p.Mul(q).SumDim([]int{-1}, true).Neg()
	return q.Add_(each, 1).MulScalar_(-t.KLWeight).Mul_(p), rows, each.Sum()
}

// top are the student's TopK most probable ids, (n, TopK); nil where the KL takes all.
func (t terms) top(logDistribution *torch.Tensor) *torch.Tensor {
	if t.TopK == 0 || int64(t.TopK) >= logDistribution.Dim(1) {
		return nil
	}
	_, ids := logDistribution.Topk(int64(t.TopK), -1)
	return ids
}

// outside is the logarithm of the probability that the ids (n, k) leave to all others,
// (n, 1); summed over those, as 1 less the sum of the ids' would lose it to rounding.
func outside(logDistribution, ids *torch.Tensor) *torch.Tensor {
	return logDistribution.ScatterScalar(-1, ids, math.Inf(-1)).Logsumexp([]int{-1}, true)
}

// total is the sum of tensors of one element each, in float64.
func total(parts []*torch.Tensor) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Item()
	}
	return sum
}
