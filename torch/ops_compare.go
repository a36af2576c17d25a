package torch

var (
	opEq         = op("aten::eq.Tensor")
	opNe         = op("aten::ne.Tensor")
	opLt         = op("aten::lt.Tensor")
	opLe         = op("aten::le.Tensor")
	opGt         = op("aten::gt.Tensor")
	opGe         = op("aten::ge.Tensor")
	opEqScalar   = op("aten::eq.Scalar")
	opNeScalar   = op("aten::ne.Scalar")
	opLtScalar   = op("aten::lt.Scalar")
	opLeScalar   = op("aten::le.Scalar")
	opGtScalar   = op("aten::gt.Scalar")
	opGeScalar   = op("aten::ge.Scalar")
	opLogicalAnd = op("aten::logical_and")
	opLogicalOr  = op("aten::logical_or")
	opLogicalNot = op("aten::logical_not")
	opEqual      = op("aten::equal")
	opAny        = op("aten::any")
	opAll        = op("aten::all")
)

// Eq is t == o element by element, bool, broadcast; so are the others.
func (t *Tensor) Eq(o *Tensor) *Tensor { return opEq.one(tn(t), tn(o)) }

// Ne is t != o.
func (t *Tensor) Ne(o *Tensor) *Tensor { return opNe.one(tn(t), tn(o)) }

// Lt is t < o.
func (t *Tensor) Lt(o *Tensor) *Tensor { return opLt.one(tn(t), tn(o)) }

// Le is t <= o.
func (t *Tensor) Le(o *Tensor) *Tensor { return opLe.one(tn(t), tn(o)) }

// Gt is t > o.
func (t *Tensor) Gt(o *Tensor) *Tensor { return opGt.one(tn(t), tn(o)) }

// Ge is t >= o.
func (t *Tensor) Ge(o *Tensor) *Tensor { return opGe.one(tn(t), tn(o)) }

// EqScalar is t == v.
func (t *Tensor) EqScalar(v float64) *Tensor { return opEqScalar.one(tn(t), sc(v)) }

// NeScalar is t != v.
func (t *Tensor) NeScalar(v float64) *Tensor { return opNeScalar.one(tn(t), sc(v)) }

// LtScalar is t < v.
func (t *Tensor) LtScalar(v float64) *Tensor { return opLtScalar.one(tn(t), sc(v)) }

// LeScalar is t <= v.
func (t *Tensor) LeScalar(v float64) *Tensor { return opLeScalar.one(tn(t), sc(v)) }

// GtScalar is t > v.
func (t *Tensor) GtScalar(v float64) *Tensor { return opGtScalar.one(tn(t), sc(v)) }

// GeScalar is t >= v.
func (t *Tensor) GeScalar(v float64) *Tensor { return opGeScalar.one(tn(t), sc(v)) }

// LogicalAnd is true where both are not zero.
func (t *Tensor) LogicalAnd(o *Tensor) *Tensor { return opLogicalAnd.one(tn(t), tn(o)) }

// LogicalOr is true where one is not zero.
func (t *Tensor) LogicalOr(o *Tensor) *Tensor { return opLogicalOr.one(tn(t), tn(o)) }

// LogicalNot is true where t is zero.
func (t *Tensor) LogicalNot() *Tensor { return opLogicalNot.one(tn(t)) }

// Equal says whether shapes and all elements are the same.
func (t *Tensor) Equal(o *Tensor) bool { return opEqual.number(tn(t), tn(o)) != 0 }

// Any is a bool without dimensions: is an element not zero.
func (t *Tensor) Any() *Tensor { return opAny.one(tn(t)) }

// All is a bool without dimensions: are all elements not zero.
func (t *Tensor) All() *Tensor { return opAll.one(tn(t)) }
