package torch

import (
	"fmt"
	"math"

	"github.com/memopd/memopd-bench/torch/internal/ctorch"
)

var (
	opMatmul       = op("aten::matmul")
	opBmm          = op("aten::bmm")
	opLinear       = op("aten::linear")
	opSDPA         = op("aten::scaled_dot_product_attention")
	opCrossEntropy = op("aten::cross_entropy_loss")
	opNLLLoss      = op("aten::nll_loss_nd")
	opDropout      = op("aten::dropout")
)

// Reduction says what a loss does with its terms.
type Reduction int

// The reductions, numbered as libtorch's.
const (
	ReduceNone Reduction = 0
	ReduceMean Reduction = 1
	ReduceSum  Reduction = 2
)

// Matmul is the matrix product with numpy's rules for vectors and batches.
func (t *Tensor) Matmul(o *Tensor) *Tensor { return opMatmul.one(tn(t), tn(o)) }

// Bmm is the batched matrix product (B, n, m) x (B, m, p).
func (t *Tensor) Bmm(o *Tensor) *Tensor { return opBmm.one(tn(t), tn(o)) }

// Linear is t (..., in) times weight (out, in) transposed, plus bias (out) unless nil.
func (t *Tensor) Linear(weight, bias *Tensor) *Tensor {
	return opLinear.one(tn(t), tn(weight), tn(bias))
}

// LinearRows is Linear of t (rows, in) without gradients, on the CPU faster for up to 256 rows (on AMD's processors for any number), and
// then with results for a row that do not depend on the other rows. Where it has nothing better it is Linear itself.
func (t *Tensor) LinearRows(weight, bias *Tensor) *Tensor {
	if y := t.linearRows(weight, bias, 0); y != nil {
		return y
	}
	return t.Linear(weight, bias)
}

func (t *Tensor) linearRows(weight, bias *Tensor, lanes int) *Tensor {
	h, msg := ctorch.Linear(t.must("linear_rows"), weight.handle(), bias.handle(), lanes)
	raise("linear_rows", msg, t, weight, bias)
	if h == 0 {
		return nil
	}
	return wrap(h)
}

// AttendsRows says whether AttendRows works for heads of so many floats on this processor.
func AttendsRows(headDim int) bool { return ctorch.Attends(int64(headDim), 0) }

// AttendRows is the attention of one query a row without gradients, t (rows, H, E) in float32 on the CPU: row r sees the first lengths[r]
// places, one or more, of its keys and values, both (rows or more, places, K*E) and contiguous. Each of the K key-value heads serves H/K query heads in
// a row. It returns (rows, H, E). Keys and values are read once and only so far.
func (t *Tensor) AttendRows(keys, values *Tensor, lengths []int64) *Tensor {
	return t.attendRows(keys, values, lengths, 0)
}

func (t *Tensor) attendRows(keys, values *Tensor, lengths []int64, lanes int) *Tensor {
	if n := t.Dim(0); n != int64(len(lengths)) {
		panic(&Error{Op: "attend_rows", Message: fmt.Sprintf("%d lengths for %d rows", len(lengths), n)})
	}
	h, msg := ctorch.Attend(t.must("attend_rows"), keys.must("attend_rows"), values.must("attend_rows"), lengths, lanes)
	raise("attend_rows", msg, t, keys, values)
	return wrap(h)
}

// Dropout zeroes elements with probability p and scales the others by 1/(1-p).
func (t *Tensor) Dropout(p float64) *Tensor { return opDropout.one(tn(t), fl(p), bl(true)) }

// RMSNorm is weight * t / sqrt(mean(t², last dimension) + eps), reckoned in float32 for shorter floats, as Llama's.
func (t *Tensor) RMSNorm(weight *Tensor, eps float64) *Tensor {
	d := t.DType()
	x := t
	if d == BFloat16 || d == Float16 {
		x = t.To(Float32)
	}
	y := x.Mul(x.Square().MeanDim([]int{-1}, true).AddScalar(eps).Rsqrt())
	if x != t {
		y = y.To(d)
	}
	return weight.Mul(y)
}

// CrossEntropy is the loss of logits (N, V) for targets (N, int64); targets of -100 do not count.
func (t *Tensor) CrossEntropy(targets *Tensor, r Reduction) *Tensor {
	return opCrossEntropy.one(tn(t), tn(targets), none(), in(int(r)))
}

// NLLLoss is the loss of log-probabilities (N, V) for targets (N, int64); targets of -100 do not count.
func (t *Tensor) NLLLoss(targets *Tensor, r Reduction) *Tensor {
	return opNLLLoss.one(tn(t), tn(targets), none(), in(int(r)))
}

// ScaledDotProductAttention is softmax(q k' / sqrt(D) + mask) v over (..., L, D), (..., S, D), (..., S, Dv). mask is nil, bool (true may be
// seen) or float (added); causal, without a mask, lets query i see keys 0 to i. libtorch before 2.0 lacks it: there it is composed.
func ScaledDotProductAttention(q, k, v, mask *Tensor, causal bool) *Tensor {
	if opSDPA.Exists() {
		return opSDPA.one(tn(q), tn(k), tn(v), tn(mask), fl(0), bl(causal))
	}
	return composedAttention(q, k, v, mask, causal)
}

// GroupedAttention is ScaledDotProductAttention over (B, heads, L, D) where k and v may have fewer heads, each of which serves
// as many query heads in a row. libtorch has that of its own from 2.5; before, k and v are repeated.
func GroupedAttention(q, k, v, mask *Tensor, causal bool) *Tensor {
	repeat := q.Dim(1) / k.Dim(1)
	if repeat == 1 {
		return ScaledDotProductAttention(q, k, v, mask, causal)
	}
	if opSDPA.Exists() && atLeast(2, 5) {
		return opSDPA.one(tn(q), tn(k), tn(v), tn(mask), fl(0), bl(causal), none(), bl(true))
	}
	return ScaledDotProductAttention(q, k.RepeatInterleave(repeat, 1), v.RepeatInterleave(repeat, 1), mask, causal)
}

func composedAttention(q, k, v, mask *Tensor, causal bool) *Tensor {
	if mask != nil && causal {
		panic(&Error{Op: "scaled_dot_product_attention", Args: describe([]ctorch.Arg{tn(q), tn(k), tn(v), tn(mask)}),
			Message: "either a mask or causal, not both"})
	}
	scores := q.MulScalar(1 / math.Sqrt(float64(q.Dim(-1)))).Matmul(k.Transpose(-2, -1))
	if causal {
		mask = Ones(Bool, q.Dim(-2), k.Dim(-2)).Tril(0).ToDevice(q.Device())
	}
	switch {
	case mask == nil:
	case mask.DType() == Bool:
		scores = scores.MaskedFill(mask.LogicalNot(), math.Inf(-1))
	default:
		scores = scores.Add(mask)
	}
	return scores.Softmax(-1).Matmul(v)
}
