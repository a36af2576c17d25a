package torch

// One call over a list of tensors; CUDA fuses it into few kernels.
var (
	opForeachMulScalar_ = op("aten::_foreach_mul_.Scalar")
	opForeachAdd_       = op("aten::_foreach_add_.List")
	opForeachAddScalar_ = op("aten::_foreach_add_.Scalar")
	opForeachAddcmul_   = op("aten::_foreach_addcmul_.Scalar")
	opForeachAddcdiv_   = op("aten::_foreach_addcdiv_.Scalar")
	opForeachDivScalar_ = op("aten::_foreach_div_.Scalar")
	opForeachSqrt       = op("aten::_foreach_sqrt")
	opForeachNorm       = op("aten::_foreach_norm.Scalar")
)
