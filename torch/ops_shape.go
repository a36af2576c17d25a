package torch

import "math"

// Shape, type and place. Views share memory with t.
var (
	opCat        = op("aten::cat")
	opStack      = op("aten::stack")
	opSplit      = op("aten::split.Tensor")
	opSplitSizes = op("aten::split_with_sizes")
	opChunk      = op("aten::chunk")
	opUnbind     = op("aten::unbind.int")
	opNarrow     = op("aten::narrow")
	opSlice      = op("aten::slice.Tensor")
	opSelect     = op("aten::select.int")
	opView       = op("aten::view")
	opReshape    = op("aten::reshape")
	opFlatten    = op("aten::flatten.using_ints")
	opTranspose  = op("aten::transpose.int")
	opPermute    = op("aten::permute")
	opContiguous = op("aten::contiguous")
	opExpand     = op("aten::expand")
	opUnsqueeze  = op("aten::unsqueeze")
	opSqueeze    = op("aten::squeeze.dim")
	opRepeatEach = op("aten::repeat_interleave.self_int")
	opRepeat     = op("aten::repeat")
	opFlip       = op("aten::flip")
	opTril       = op("aten::tril")
	opTriu       = op("aten::triu")
	opTo         = op("aten::to.dtype")
	opToDevice   = op("aten::to.dtype_layout")
	opClone      = op("aten::clone")
	opDetach     = op("aten::detach")
	opAlias      = op("aten::alias")
)

// End is Slice's "to the end".
const End = int64(math.MaxInt64)

// Cat joins tensors along an existing dimension.
func Cat(ts []*Tensor, dim int) *Tensor { return opCat.one(tl(ts), in(dim)) }

// Stack joins tensors of one shape along a new dimension.
func Stack(ts []*Tensor, dim int) *Tensor { return opStack.one(tl(ts), in(dim)) }

// Split cuts dim into views of size each, the last one shorter.
func (t *Tensor) Split(size int64, dim int) []*Tensor {
	n := 1
	if size > 0 {
		n = int((t.Dim(dim) + size - 1) / size)
	}
	return opSplit.many(max(n, 1), tn(t), i64(size), in(dim))
}

// SplitSizes cuts dim into views of the given sizes.
func (t *Tensor) SplitSizes(sizes []int64, dim int) []*Tensor {
	return opSplitSizes.many(len(sizes), tn(t), li(sizes), in(dim))
}

// Chunk cuts dim into at most n views of one size, the last one shorter.
func (t *Tensor) Chunk(n, dim int) []*Tensor { return opChunk.many(max(n, 1), tn(t), in(n), in(dim)) }

// Unbind is a view for each index of dim.
func (t *Tensor) Unbind(dim int) []*Tensor {
	return opUnbind.many(int(t.Dim(dim)), tn(t), in(dim))
}

// Narrow is the view start .. start+length-1 of dim.
func (t *Tensor) Narrow(dim int, start, length int64) *Tensor {
	return opNarrow.one(tn(t), in(dim), i64(start), i64(length))
}

// Slice is the view start, start+step, ... below end of dim; negative limits count from the end, End is the end.
func (t *Tensor) Slice(dim int, start, end, step int64) *Tensor {
	return opSlice.one(tn(t), in(dim), i64(start), i64(end), i64(step))
}

// Select is the view at one index of dim, which goes away.
func (t *Tensor) Select(dim int, index int64) *Tensor {
	return opSelect.one(tn(t), in(dim), i64(index))
}

// View is the same memory under another shape; one size may be -1.
func (t *Tensor) View(shape ...int64) *Tensor { return opView.one(tn(t), li(shape)) }

// Reshape is View where that is possible, else a copy.
func (t *Tensor) Reshape(shape ...int64) *Tensor { return opReshape.one(tn(t), li(shape)) }

// Flatten joins the dimensions start to end, inclusive.
func (t *Tensor) Flatten(start, end int) *Tensor { return opFlatten.one(tn(t), in(start), in(end)) }

// Transpose swaps two dimensions.
func (t *Tensor) Transpose(a, b int) *Tensor { return opTranspose.one(tn(t), in(a), in(b)) }

// Permute orders the dimensions anew.
func (t *Tensor) Permute(order ...int) *Tensor { return opPermute.one(tn(t), dims(order)) }

// Contiguous is t itself, or a copy with its elements in row-major order.
func (t *Tensor) Contiguous() *Tensor { return opContiguous.one(tn(t)) }

// Expand repeats dimensions of size 1 without copying; -1 leaves a size.
func (t *Tensor) Expand(shape ...int64) *Tensor { return opExpand.one(tn(t), li(shape)) }

// Unsqueeze adds a dimension of size 1.
func (t *Tensor) Unsqueeze(dim int) *Tensor { return opUnsqueeze.one(tn(t), in(dim)) }

// Squeeze drops dim if its size is 1.
func (t *Tensor) Squeeze(dim int) *Tensor { return opSqueeze.one(tn(t), in(dim)) }

// RepeatInterleave repeats each index of dim n times in place: 0 0 1 1 2 2.
func (t *Tensor) RepeatInterleave(n int64, dim int) *Tensor {
	return opRepeatEach.one(tn(t), i64(n), in(dim))
}

// Repeat tiles t: 0 1 2 0 1 2.
func (t *Tensor) Repeat(times ...int64) *Tensor { return opRepeat.one(tn(t), li(times)) }

// Flip reverses dimensions.
func (t *Tensor) Flip(d ...int) *Tensor { return opFlip.one(tn(t), dims(d)) }

// Tril is t with zeros above the given diagonal of the last two dimensions.
func (t *Tensor) Tril(diagonal int) *Tensor { return opTril.one(tn(t), in(diagonal)) }

// Triu is t with zeros below the given diagonal of the last two dimensions.
func (t *Tensor) Triu(diagonal int) *Tensor { return opTriu.one(tn(t), in(diagonal)) }

// To converts the element type; t's own type gives another handle on t.
func (t *Tensor) To(d DType) *Tensor { return opTo.one(tn(t), dt(d)) }

// ToDevice moves t to "cpu", "cuda" or "cuda:N"; where it is already there, another handle on t.
func (t *Tensor) ToDevice(device string) *Tensor {
	return opToDevice.one(tn(t), none(), none(), place("to", device, t))
}

// Clone is a copy, which autograd records.
func (t *Tensor) Clone() *Tensor { return opClone.one(tn(t)) }

// Detach shares memory with t, outside autograd.
func (t *Tensor) Detach() *Tensor { return opDetach.one(tn(t)) }

// Alias is a view of all of t.
func (t *Tensor) Alias() *Tensor { return opAlias.one(tn(t)) }
