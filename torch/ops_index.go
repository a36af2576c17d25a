package torch

var (
	opGather      = op("aten::gather")
	opIndexSelect = op("aten::index_select")
	opIndex       = op("aten::index.Tensor")
	opIndexCopy_  = op("aten::index_copy_")
	opIndexAdd    = op("aten::index_add")
	opIndexAdd_   = op("aten::index_add_")
	opIndexPut_   = op("aten::index_put_")
	opScatter     = op("aten::scatter.src")
	opScatterVal  = op("aten::scatter.value")
	opScatterAdd  = op("aten::scatter_add")
	opScatter_    = op("aten::scatter_.src")
	opNonzero     = op("aten::nonzero")
	opEmbedding   = op("aten::embedding")
	opCopy_       = op("aten::copy_")
	opZero_       = op("aten::zero_")
	opFill_       = op("aten::fill_.Scalar")
	opAdd_        = op("aten::add_.Tensor")
	opSub_        = op("aten::sub_.Tensor")
	opMul_        = op("aten::mul_.Tensor")
	opDiv_        = op("aten::div_.Tensor")
	opMulScalar_  = op("aten::mul_.Scalar")
	opAddScalar_  = op("aten::add_.Scalar")
	opAddcmul_    = op("aten::addcmul_")
	opAddcdiv_    = op("aten::addcdiv_")
	opExp_        = op("aten::exp_")
	opNormal_     = op("aten::normal_")
	opUniform_    = op("aten::uniform_")
)

// Gather takes t at idx (int64, of t's rank) along dim: out[i][j] = t[i][idx[i][j]] for dim 1.
func (t *Tensor) Gather(dim int, idx *Tensor) *Tensor { return opGather.one(tn(t), in(dim), tn(idx)) }

// IndexSelect takes the indices idx (a vector) of dim, copied.
func (t *Tensor) IndexSelect(dim int, idx *Tensor) *Tensor {
	return opIndexSelect.one(tn(t), in(dim), tn(idx))
}

// Index takes t[idx] along dimension 0: int64 of any shape, or a bool mask over the leading dimensions.
func (t *Tensor) Index(idx *Tensor) *Tensor { return opIndex.one(tn(t), index(idx)) }

// IndexAt takes t[i0, i1, ...], indices broadcast together; a nil index is all of its dimension.
func (t *Tensor) IndexAt(idx ...*Tensor) *Tensor { return opIndex.one(tn(t), index(idx...)) }

// IndexCopy_ writes src into the indices idx of dim.
func (t *Tensor) IndexCopy_(dim int, idx, src *Tensor) *Tensor {
	return opIndexCopy_.in(t, tn(t), in(dim), tn(idx), tn(src))
}

// IndexAdd is t with src added at the indices idx of dim.
func (t *Tensor) IndexAdd(dim int, idx, src *Tensor) *Tensor {
	return opIndexAdd.one(tn(t), in(dim), tn(idx), tn(src))
}

// IndexAdd_ adds src at the indices idx of dim.
func (t *Tensor) IndexAdd_(dim int, idx, src *Tensor) *Tensor {
	return opIndexAdd_.in(t, tn(t), in(dim), tn(idx), tn(src))
}

// IndexPut_ writes values at t[idx[0], idx[1], ...]; accumulate adds instead. A nil index is all of its dimension.
func (t *Tensor) IndexPut_(idx []*Tensor, values *Tensor, accumulate bool) *Tensor {
	return opIndexPut_.in(t, tn(t), index(idx...), tn(values), bl(accumulate))
}

// Scatter is t with src at idx along dim, the reverse of Gather.
func (t *Tensor) Scatter(dim int, idx, src *Tensor) *Tensor {
	return opScatter.one(tn(t), in(dim), tn(idx), tn(src))
}

// Scatter_ is Scatter in place.
func (t *Tensor) Scatter_(dim int, idx, src *Tensor) *Tensor {
	return opScatter_.in(t, tn(t), in(dim), tn(idx), tn(src))
}

// ScatterScalar is t with v at idx along dim.
func (t *Tensor) ScatterScalar(dim int, idx *Tensor, v float64) *Tensor {
	return opScatterVal.one(tn(t), in(dim), tn(idx), sc(v))
}

// ScatterAdd is t with src added at idx along dim.
func (t *Tensor) ScatterAdd(dim int, idx, src *Tensor) *Tensor {
	return opScatterAdd.one(tn(t), in(dim), tn(idx), tn(src))
}

// Nonzero is the indices (n, rank) of the elements that are not zero.
func (t *Tensor) Nonzero() *Tensor { return opNonzero.one(tn(t)) }

// Embedding takes the rows ids (any shape) of weight (V, D) -> (ids..., D).
func Embedding(weight, ids *Tensor) *Tensor { return opEmbedding.one(tn(weight), tn(ids)) }

// Copy_ writes src, broadcast and converted, into t.
func (t *Tensor) Copy_(src *Tensor) *Tensor { return opCopy_.in(t, tn(t), tn(src)) }

// Zero_ writes zeros.
func (t *Tensor) Zero_() *Tensor { return opZero_.in(t, tn(t)) }

// Fill_ writes v.
func (t *Tensor) Fill_(v float64) *Tensor { return opFill_.in(t, tn(t), sc(v)) }

// Add_ adds alpha*o to t.
func (t *Tensor) Add_(o *Tensor, alpha float64) *Tensor { return opAdd_.in(t, tn(t), tn(o), sc(alpha)) }

// Sub_ takes o from t.
func (t *Tensor) Sub_(o *Tensor) *Tensor { return opSub_.in(t, tn(t), tn(o)) }

// Mul_ multiplies t by o.
func (t *Tensor) Mul_(o *Tensor) *Tensor { return opMul_.in(t, tn(t), tn(o)) }

// Div_ divides t by o.
func (t *Tensor) Div_(o *Tensor) *Tensor { return opDiv_.in(t, tn(t), tn(o)) }

// MulScalar_ multiplies t by v.
func (t *Tensor) MulScalar_(v float64) *Tensor { return opMulScalar_.in(t, tn(t), sc(v)) }

// AddScalar_ adds v to t.
func (t *Tensor) AddScalar_(v float64) *Tensor { return opAddScalar_.in(t, tn(t), sc(v)) }

// Exp_ raises e to t.
func (t *Tensor) Exp_() *Tensor { return opExp_.in(t, tn(t)) }

// Addcmul_ adds v*a*b to t.
func (t *Tensor) Addcmul_(a, b *Tensor, v float64) *Tensor {
	return opAddcmul_.in(t, tn(t), tn(a), tn(b), sc(v))
}

// Addcdiv_ adds v*a/b to t.
func (t *Tensor) Addcdiv_(a, b *Tensor, v float64) *Tensor {
	return opAddcdiv_.in(t, tn(t), tn(a), tn(b), sc(v))
}

// Normal_ draws t from a normal distribution with libtorch's generator (ManualSeed).
func (t *Tensor) Normal_(mean, std float64) *Tensor { return opNormal_.in(t, tn(t), fl(mean), fl(std)) }

// Uniform_ draws t uniformly from [low, high).
func (t *Tensor) Uniform_(low, high float64) *Tensor {
	return opUniform_.in(t, tn(t), fl(low), fl(high))
}
