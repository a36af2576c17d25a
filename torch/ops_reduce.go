package torch

var (
	opSum         = op("aten::sum")
	opSumDim      = op("aten::sum.dim_IntList")
	opMean        = op("aten::mean")
	opMeanDim     = op("aten::mean.dim")
	opMax         = op("aten::max")
	opMin         = op("aten::min")
	opMaxDim      = op("aten::max.dim")
	opArgmax      = op("aten::argmax")
	opAmax        = op("aten::amax")
	opAmin        = op("aten::amin")
	opStd         = op("aten::std")
	opVar         = op("aten::var")
	opNorm        = op("aten::linalg_vector_norm")
	opCumsum      = op("aten::cumsum")
	opTopk        = op("aten::topk")
	opSort        = op("aten::sort")
	opSoftmax     = op("aten::softmax.int")
	opLogSoftmax  = op("aten::log_softmax.int")
	opLogsumexp   = op("aten::logsumexp")
	opMultinomial = op("aten::multinomial")
	opItem        = op("aten::item")
)

// Item is the one element, as a number; true is 1.
func (t *Tensor) Item() float64 { return opItem.number(tn(t)) }

// Sum is the sum of all elements.
func (t *Tensor) Sum() *Tensor { return opSum.one(tn(t)) }

// SumDim sums over dimensions.
func (t *Tensor) SumDim(d []int, keepdim bool) *Tensor {
	return opSumDim.one(tn(t), dims(d), bl(keepdim))
}

// Mean is the mean of all elements.
func (t *Tensor) Mean() *Tensor { return opMean.one(tn(t)) }

// MeanDim takes the mean over dimensions.
func (t *Tensor) MeanDim(d []int, keepdim bool) *Tensor {
	return opMeanDim.one(tn(t), dims(d), bl(keepdim))
}

// Max is the largest element.
func (t *Tensor) Max() *Tensor { return opMax.one(tn(t)) }

// Min is the smallest element.
func (t *Tensor) Min() *Tensor { return opMin.one(tn(t)) }

// MaxDim is the largest element along dim, and its index; dim goes away.
func (t *Tensor) MaxDim(dim int) (values, indices *Tensor) { return opMaxDim.two(tn(t), in(dim)) }

// Argmax is the index of the largest element along dim; among equal ones libtorch chooses.
func (t *Tensor) Argmax(dim int, keepdim bool) *Tensor {
	return opArgmax.one(tn(t), in(dim), bl(keepdim))
}

// Amax is the largest element over dimensions; equal ones share the gradient.
func (t *Tensor) Amax(d []int, keepdim bool) *Tensor { return opAmax.one(tn(t), dims(d), bl(keepdim)) }

// Amin is the smallest element over dimensions.
func (t *Tensor) Amin(d []int, keepdim bool) *Tensor { return opAmin.one(tn(t), dims(d), bl(keepdim)) }

// Std is the standard deviation of all elements; unbiased divides by n-1.
func (t *Tensor) Std(unbiased bool) *Tensor { return opStd.one(tn(t), bl(unbiased)) }

// Var is the variance of all elements; unbiased divides by n-1.
func (t *Tensor) Var(unbiased bool) *Tensor { return opVar.one(tn(t), bl(unbiased)) }

// Norm is the Euclidean norm of all elements.
func (t *Tensor) Norm() *Tensor { return opNorm.one(tn(t), sc(2)) }

// Cumsum sums along dim up to each index.
func (t *Tensor) Cumsum(dim int) *Tensor { return opCumsum.one(tn(t), in(dim)) }

// Topk is the k largest elements along dim, largest first, and their indices.
func (t *Tensor) Topk(k int64, dim int) (values, indices *Tensor) {
	return opTopk.two(tn(t), i64(k), in(dim))
}

// Sort sorts along dim, and gives the indices.
func (t *Tensor) Sort(dim int, descending bool) (values, indices *Tensor) {
	return opSort.two(tn(t), in(dim), bl(descending))
}

// Softmax is exp(t) over its sum along dim.
func (t *Tensor) Softmax(dim int) *Tensor { return opSoftmax.one(tn(t), in(dim)) }

// LogSoftmax is the logarithm of Softmax.
func (t *Tensor) LogSoftmax(dim int) *Tensor { return opLogSoftmax.one(tn(t), in(dim)) }

// Logsumexp is log(sum(exp(t))) over dimensions.
func (t *Tensor) Logsumexp(d []int, keepdim bool) *Tensor {
	return opLogsumexp.one(tn(t), dims(d), bl(keepdim))
}

// Multinomial draws n indices from each row of weights (rows, k) -> (rows, n), without replacement.
func (t *Tensor) Multinomial(n int64) *Tensor { return opMultinomial.one(tn(t), i64(n)) }
