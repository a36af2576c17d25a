package torch

import "math"

// Element by element. A number v counts as an integer where it is whole and t holds integers, so that ids stay int64.
var (
	opAdd        = op("aten::add.Tensor")
	opSub        = op("aten::sub.Tensor")
	opMul        = op("aten::mul.Tensor")
	opDiv        = op("aten::div.Tensor")
	opDivMode    = op("aten::div.Tensor_mode")
	opAddScalar  = op("aten::add.Scalar")
	opMulScalar  = op("aten::mul.Scalar")
	opDivScalar  = op("aten::div.Scalar")
	opRsubScalar = op("aten::rsub.Scalar")
	opPowScalar  = op("aten::pow.Tensor_Scalar")
	opRemainder  = op("aten::remainder.Scalar")
	opNeg        = op("aten::neg")
	opExp        = op("aten::exp")
	opLog        = op("aten::log")
	opLog1p      = op("aten::log1p")
	opSqrt       = op("aten::sqrt")
	opRsqrt      = op("aten::rsqrt")
	opAbs        = op("aten::abs")
	opSquare     = op("aten::square")
	opReciprocal = op("aten::reciprocal")
	opSin        = op("aten::sin")
	opCos        = op("aten::cos")
	opTanh       = op("aten::tanh")
	opSigmoid    = op("aten::sigmoid")
	opSiLU       = op("aten::silu")
	opGELU       = op("aten::gelu")
	opReLU       = op("aten::relu")
	opClamp      = op("aten::clamp")
	opClampMin   = op("aten::clamp_min")
	opClampMax   = op("aten::clamp_max")
	opMinimum    = op("aten::minimum")
	opMaximum    = op("aten::maximum")
	opWhere      = op("aten::where.self")
	opMaskedFill = op("aten::masked_fill.Scalar")
	opIsFinite   = op("aten::isfinite")
	opIsNaN      = op("aten::isnan")
)

// Add is t + o, broadcast.
func (t *Tensor) Add(o *Tensor) *Tensor { return opAdd.one(tn(t), tn(o)) }

// AddAlpha is t + alpha*o, broadcast.
func (t *Tensor) AddAlpha(o *Tensor, alpha float64) *Tensor {
	return opAdd.one(tn(t), tn(o), sc(alpha))
}

// Sub is t - o, broadcast.
func (t *Tensor) Sub(o *Tensor) *Tensor { return opSub.one(tn(t), tn(o)) }

// Mul is t * o, broadcast.
func (t *Tensor) Mul(o *Tensor) *Tensor { return opMul.one(tn(t), tn(o)) }

// Div is t / o, broadcast; integers give float32.
func (t *Tensor) Div(o *Tensor) *Tensor { return opDiv.one(tn(t), tn(o)) }

// FloorDivide is t / v rounded toward minus infinity, in t's type.
func (t *Tensor) FloorDivide(o *Tensor) *Tensor { return opDivMode.one(tn(t), tn(o), str("floor")) }

// AddScalar is t + v.
func (t *Tensor) AddScalar(v float64) *Tensor { return opAddScalar.one(tn(t), sc(v)) }

// MulScalar is t * v.
func (t *Tensor) MulScalar(v float64) *Tensor { return opMulScalar.one(tn(t), sc(v)) }

// DivScalar is t / v.
func (t *Tensor) DivScalar(v float64) *Tensor { return opDivScalar.one(tn(t), sc(v)) }

// RsubScalar is v - t.
func (t *Tensor) RsubScalar(v float64) *Tensor { return opRsubScalar.one(tn(t), sc(v)) }

// PowScalar is t to the power v.
func (t *Tensor) PowScalar(v float64) *Tensor { return opPowScalar.one(tn(t), sc(v)) }

// Remainder is t modulo v with the sign of v.
func (t *Tensor) Remainder(v float64) *Tensor { return opRemainder.one(tn(t), sc(v)) }

// Neg is -t.
func (t *Tensor) Neg() *Tensor { return opNeg.one(tn(t)) }

// Exp is e to the power t.
func (t *Tensor) Exp() *Tensor { return opExp.one(tn(t)) }

// Log is the natural logarithm.
func (t *Tensor) Log() *Tensor { return opLog.one(tn(t)) }

// Log1p is log(1 + t), exact near 0.
func (t *Tensor) Log1p() *Tensor { return opLog1p.one(tn(t)) }

// Sqrt is the square root.
func (t *Tensor) Sqrt() *Tensor { return opSqrt.one(tn(t)) }

// Rsqrt is 1 / sqrt(t).
func (t *Tensor) Rsqrt() *Tensor { return opRsqrt.one(tn(t)) }

// Abs is the absolute value.
func (t *Tensor) Abs() *Tensor { return opAbs.one(tn(t)) }

// Square is t * t.
func (t *Tensor) Square() *Tensor { return opSquare.one(tn(t)) }

// Reciprocal is 1 / t.
func (t *Tensor) Reciprocal() *Tensor { return opReciprocal.one(tn(t)) }

// Sin is the sine.
func (t *Tensor) Sin() *Tensor { return opSin.one(tn(t)) }

// Cos is the cosine.
func (t *Tensor) Cos() *Tensor { return opCos.one(tn(t)) }

// Tanh is the hyperbolic tangent.
func (t *Tensor) Tanh() *Tensor { return opTanh.one(tn(t)) }

// Sigmoid is 1 / (1 + exp(-t)).
func (t *Tensor) Sigmoid() *Tensor { return opSigmoid.one(tn(t)) }

// SiLU is t * sigmoid(t).
func (t *Tensor) SiLU() *Tensor { return opSiLU.one(tn(t)) }

// GELU is the exact Gaussian error linear unit.
func (t *Tensor) GELU() *Tensor { return opGELU.one(tn(t)) }

// ReLU is max(t, 0).
func (t *Tensor) ReLU() *Tensor { return opReLU.one(tn(t)) }

// Clamp is t limited to [low, high]; an infinite limit is none.
func (t *Tensor) Clamp(low, high float64) *Tensor {
	if math.IsInf(low, 0) && math.IsInf(high, 0) {
		return t.Alias()
	}
	return opClamp.one(tn(t), bound(low), bound(high))
}

// ClampMin is max(t, v).
func (t *Tensor) ClampMin(v float64) *Tensor { return opClampMin.one(tn(t), sc(v)) }

// ClampMax is min(t, v).
func (t *Tensor) ClampMax(v float64) *Tensor { return opClampMax.one(tn(t), sc(v)) }

// Minimum is the smaller of t and o, broadcast.
func (t *Tensor) Minimum(o *Tensor) *Tensor { return opMinimum.one(tn(t), tn(o)) }

// Maximum is the larger of t and o, broadcast.
func (t *Tensor) Maximum(o *Tensor) *Tensor { return opMaximum.one(tn(t), tn(o)) }

// Where is a where cond (bool) holds, else b, broadcast.
func Where(cond, a, b *Tensor) *Tensor { return opWhere.one(tn(cond), tn(a), tn(b)) }

// MaskedFill is t with v where mask (bool, broadcast) holds.
func (t *Tensor) MaskedFill(mask *Tensor, v float64) *Tensor {
	return opMaskedFill.one(tn(t), tn(mask), sc(v))
}

// IsFinite is true where t is neither infinite nor NaN.
func (t *Tensor) IsFinite() *Tensor { return opIsFinite.one(tn(t)) }

// IsNaN is true where t is NaN.
func (t *Tensor) IsNaN() *Tensor { return opIsNaN.one(tn(t)) }
