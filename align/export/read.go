package export

import (
	"fmt"

	"github.com/memopd/memopd-bench/torch/safetensors"
)

// readTable takes the lists of a file and holds their lengths and offsets against
// each other, so that nothing after it reads out of bounds.
func readTable(tensors map[string]safetensors.Tensor) (*table, error) {
	t := &table{columns: map[string][]float32{}}
	r := reader{tensors: tensors}
	list(&r, "ids", &t.ids)
	n := len(t.ids)
	sized(&r, "positions", n, &t.positions)
	sized(&r, "block_ids", n, &t.blockIDs)
	sized(&r, "action_mask", n, &t.actionMask)
	sized(&r, "teacher_mask", n, &t.teacherMask)
	list(&r, "prefix_lengths", &t.prefixLengths)
	s := len(t.prefixLengths)
	list(&r, "block_start", &t.blockStart)
	blocks := len(t.blockStart)
	sized(&r, "block_end", blocks, &t.blockEnd)
	sized(&r, "block_call", blocks, &t.blockCall)
	list(&r, "range_start", &t.rangeStart)
	sized(&r, "range_end", len(t.rangeStart), &t.rangeEnd)
	list(&r, "action_id", &t.id)
	a := len(t.id)
	for name, into := range map[string]*[]int32{
		"action_trajectory": &t.trajectory, "action_call": &t.call, "action_token": &t.token,
		"action_index": &t.at, "action_predict": &t.predict,
	} {
		sized(&r, name, a, into)
	}
	sized(&r, "action_teacher", a, &t.teacher)
	list(&r, "trajectory_reward", &t.rewards)
	r.offsets("sequence_offsets", s, n, &t.sequenceOffsets)
	r.offsets("block_offsets", s, blocks, &t.blockOffsets)
	r.offsets("action_offsets", s, a, &t.actionOffsets)
	r.offsets("range_offsets", blocks, len(t.rangeStart), &t.rangeOffsets)
	for name := range tensors {
		if column, ok := isColumn(name); ok {
			var values []float32
			sized(&r, name, a, &values)
			t.columns[column] = values
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return t, t.inBounds()
}

// inBounds looks at places within sequences.
func (t *table) inBounds() error {
	for s, prefix := range t.prefixLengths {
		length := int32(t.sequenceOffsets[s+1] - t.sequenceOffsets[s])
		end := int32(0)
		for b := t.blockOffsets[s]; b < t.blockOffsets[s+1]; b++ {
			if t.blockStart[b] != end || t.blockEnd[b] <= end {
				return fmt.Errorf("sequence %d: a block is [%d, %d), want a start at %d", s, t.blockStart[b], t.blockEnd[b], end)
			}
			end = t.blockEnd[b]
			for r := t.rangeOffsets[b]; r < t.rangeOffsets[b+1]; r++ {
				if t.rangeStart[r] < 0 || t.rangeEnd[r] <= t.rangeStart[r] || t.rangeEnd[r] > t.blockStart[b] {
					return fmt.Errorf("sequence %d: the block at %d sees [%d, %d)", s, t.blockStart[b], t.rangeStart[r], t.rangeEnd[r])
				}
			}
		}
		if end != length || prefix < 0 || prefix > 0 && t.blockEnd[t.blockOffsets[s]] != prefix {
			return fmt.Errorf("sequence %d: blocks end at %d of %d tokens, the prefix at %d", s, end, length, prefix)
		}
		for a := t.actionOffsets[s]; a < t.actionOffsets[s+1]; a++ {
			if p, i := t.predict[a], t.at[a]; p < 0 || p >= length || i < 0 || i >= length || t.trajectory[a] < 0 || int(t.trajectory[a]) >= len(t.rewards) {
				return fmt.Errorf("sequence %d: action %d stands at %d, is predicted at %d and of trajectory %d", s, a-t.actionOffsets[s], i, p, t.trajectory[a])
			}
		}
	}
	return nil
}

// reader takes lists from tensors and keeps the first error.
type reader struct {
	tensors map[string]safetensors.Tensor
	err     error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func list[T safetensors.Element](r *reader, name string, into *[]T) {
	t, ok := r.tensors[name]
	if !ok {
		r.fail("no tensor %q", name)
		return
	}
	values, err := safetensors.Values[T](t)
	if err != nil {
		r.fail("%w", err)
		return
	}
	*into = values
}

// sized is list of a known length; a wrong one leaves zeros, so that indexing is safe.
func sized[T safetensors.Element](r *reader, name string, n int, into *[]T) {
	list(r, name, into)
	if len(*into) != n {
		r.fail("tensor %q has %d elements, want %d", name, len(*into), n)
		*into = make([]T, n)
	}
}

// offsets are n+1 rising numbers from 0 to end.
func (r *reader) offsets(name string, n, end int, into *[]int64) {
	sized(r, name, n+1, into)
	last := int64(0)
	for i, at := range *into {
		if at < last || i == 0 && at != 0 {
			r.fail("tensor %q falls from %d to %d at %d", name, last, at, i)
		}
		last = at
	}
	if last != int64(end) {
		r.fail("tensor %q ends at %d, want %d", name, last, end)
	}
}
