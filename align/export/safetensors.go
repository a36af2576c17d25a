package export

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/torch/safetensors"
)

// The keys of a file's metadata that this package owns.
const (
	schemaKey       = "memopd.packed.schema"
	layoutKey       = "layout"
	trajectoriesKey = "trajectories" // a JSON list of ids
	tasksKey        = "tasks"        // likewise
)

// columnPrefix begins the names of the tensors with one value an action.
const columnPrefix = "action_"

// table is a batch as the flat lists of a safetensors file.
type table struct {
	ids, positions, blockIDs                 []int32 // N: tokens
	actionMask, teacherMask                  []bool  // N
	sequenceOffsets, blockOffsets            []int64 // S+1
	actionOffsets                            []int64 // S+1
	prefixLengths                            []int32 // S
	blockStart, blockEnd, blockCall          []int32 // B
	rangeOffsets                             []int64 // B+1
	rangeStart, rangeEnd                     []int32 // R
	trajectory, call, token, id, at, predict []int32 // A
	teacher                                  []bool  // A
	rewards                                  []float64
	columns                                  map[string][]float32 // A
}

// tensors names the lists; only the columns are missing.
func (t *table) tensors() []safetensors.Tensor {
	return []safetensors.Tensor{
		safetensors.Of("ids", t.ids), safetensors.Of("positions", t.positions), safetensors.Of("block_ids", t.blockIDs),
		safetensors.Of("action_mask", t.actionMask), safetensors.Of("teacher_mask", t.teacherMask),
		safetensors.Of("sequence_offsets", t.sequenceOffsets), safetensors.Of("prefix_lengths", t.prefixLengths),
		safetensors.Of("block_offsets", t.blockOffsets), safetensors.Of("block_start", t.blockStart),
		safetensors.Of("block_end", t.blockEnd), safetensors.Of("block_call", t.blockCall),
		safetensors.Of("range_offsets", t.rangeOffsets), safetensors.Of("range_start", t.rangeStart), safetensors.Of("range_end", t.rangeEnd),
		safetensors.Of("action_offsets", t.actionOffsets), safetensors.Of("action_trajectory", t.trajectory),
		safetensors.Of("action_call", t.call), safetensors.Of("action_token", t.token), safetensors.Of("action_id", t.id),
		safetensors.Of("action_index", t.at), safetensors.Of("action_predict", t.predict), safetensors.Of("action_teacher", t.teacher),
		safetensors.Of("trajectory_reward", t.rewards),
	}
}

// flatten makes the lists of a batch.
func flatten(b *Batch) *table {
	t := &table{columns: map[string][]float32{}, sequenceOffsets: []int64{0}, blockOffsets: []int64{0}, actionOffsets: []int64{0}, rangeOffsets: []int64{0}}
	for _, x := range b.Trajectories {
		t.rewards = append(t.rewards, x.Reward)
	}
	for i := range b.Sequences {
		s := &b.Sequences[i]
		t.ids, t.positions = append(t.ids, s.IDs...), append(t.positions, s.Positions...)
		t.actionMask, t.teacherMask = append(t.actionMask, s.ActionMask()...), append(t.teacherMask, s.TeacherMask()...)
		t.prefixLengths = append(t.prefixLengths, int32(s.PrefixLength))
		for _, block := range s.blocks() {
			t.block(block)
		}
		t.actions(s, b.Columns)
		t.sequenceOffsets = append(t.sequenceOffsets, int64(len(t.ids)))
		t.blockOffsets = append(t.blockOffsets, int64(len(t.blockStart)))
		t.actionOffsets = append(t.actionOffsets, int64(len(t.id)))
	}
	return t
}

func (t *table) block(b align.Block) {
	for range b.End - b.Start {
		t.blockIDs = append(t.blockIDs, int32(len(t.blockStart)))
	}
	t.blockStart, t.blockEnd = append(t.blockStart, int32(b.Start)), append(t.blockEnd, int32(b.End))
	t.blockCall = append(t.blockCall, int32(b.Call))
	for _, r := range b.Sees {
		t.rangeStart, t.rangeEnd = append(t.rangeStart, int32(r.Start)), append(t.rangeEnd, int32(r.End))
	}
	t.rangeOffsets = append(t.rangeOffsets, int64(len(t.rangeStart)))
}

func (t *table) actions(s *Sequence, columns []string) {
	for _, a := range s.Packed.Actions {
		t.trajectory = append(t.trajectory, int32(s.Trajectories[a.Trajectory]))
		t.call, t.token = append(t.call, int32(a.Call)), append(t.token, int32(a.Token))
		t.id, t.at = append(t.id, a.ID), append(t.at, int32(a.Index))
		t.predict, t.teacher = append(t.predict, int32(a.Predict)), append(t.teacher, a.Teacher)
	}
	for _, name := range columns {
		column := s.Columns[name]
		if column == nil {
			column = slices.Repeat([]float32{float32(math.NaN())}, len(s.Packed.Actions))
		}
		t.columns[name] = append(t.columns[name], column...)
	}
}

// metadata is what a file says of the batch.
func (b *Batch) metadata() (map[string]string, error) {
	m := maps.Clone(b.Metadata)
	if m == nil {
		m = map[string]string{}
	}
	ids, tasks := make([]string, len(b.Trajectories)), make([]string, len(b.Trajectories))
	for i, t := range b.Trajectories {
		ids[i], tasks[i] = t.ID, t.TaskID
	}
	for key, list := range map[string][]string{trajectoriesKey: ids, tasksKey: tasks} {
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		m[key] = string(text)
	}
	m[schemaKey], m[layoutKey] = strconv.Itoa(SchemaVersion), b.Layout
	return m, nil
}

// WriteSafetensors writes a batch to a file, which takes its name when it is whole.
func WriteSafetensors(path string, b *Batch) error {
	metadata, err := b.metadata()
	if err != nil {
		return fmt.Errorf("export %s: %w", path, err)
	}
	t := flatten(b)
	tensors := t.tensors()
	for _, name := range b.Columns {
		tensors = append(tensors, safetensors.Of(columnPrefix+name, t.columns[name]))
	}
	if err := safetensors.WriteFile(path, tensors, metadata); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// known tells the tensors that are no column.
func known(name string) bool {
	return slices.ContainsFunc((&table{}).tensors(), func(t safetensors.Tensor) bool { return t.Name == name })
}

// ReadSafetensors reads what WriteSafetensors wrote. A first block without a call that
// is the prefix becomes the sequence's prefix again.
func ReadSafetensors(path string) (*Batch, error) {
	tensors, metadata, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	b, err := parse(tensors, metadata)
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", path, err)
	}
	return b, nil
}

func parse(tensors map[string]safetensors.Tensor, metadata map[string]string) (*Batch, error) {
	if v := metadata[schemaKey]; v != strconv.Itoa(SchemaVersion) {
		return nil, fmt.Errorf("%s is %q, this program reads %d", schemaKey, v, SchemaVersion)
	}
	t, err := readTable(tensors)
	if err != nil {
		return nil, err
	}
	b := &Batch{Layout: metadata[layoutKey], Metadata: maps.Clone(metadata)}
	var ids, tasks []string
	for key, list := range map[string]*[]string{trajectoriesKey: &ids, tasksKey: &tasks} {
		if err := json.Unmarshal([]byte(metadata[key]), list); err != nil {
			return nil, fmt.Errorf("metadata %s: %w", key, err)
		}
	}
	for _, key := range []string{schemaKey, layoutKey, trajectoriesKey, tasksKey} {
		delete(b.Metadata, key)
	}
	if len(ids) != len(t.rewards) || len(tasks) != len(t.rewards) {
		return nil, fmt.Errorf("%d rewards of %d trajectories, %d tasks", len(t.rewards), len(ids), len(tasks))
	}
	for i, reward := range t.rewards {
		b.Trajectories = append(b.Trajectories, Trajectory{ids[i], tasks[i], reward})
	}
	b.Columns = slices.Sorted(maps.Keys(t.columns))
	for s := range t.prefixLengths {
		b.Sequences = append(b.Sequences, t.sequence(s, ids))
	}
	return b, nil
}

// sequence is row s of the lists.
func (t *table) sequence(s int, ids []string) Sequence {
	from, to := t.sequenceOffsets[s], t.sequenceOffsets[s+1]
	x := Sequence{Packed: &align.Packed{IDs: t.ids[from:to], Positions: t.positions[from:to], PrefixLength: int(t.prefixLengths[s])}}
	for b := t.blockOffsets[s]; b < t.blockOffsets[s+1]; b++ {
		block := align.Block{Call: int(t.blockCall[b]), Start: int(t.blockStart[b]), End: int(t.blockEnd[b]), Sees: []align.Range{}}
		for r := t.rangeOffsets[b]; r < t.rangeOffsets[b+1]; r++ {
			block.Sees = append(block.Sees, align.Range{Start: int(t.rangeStart[r]), End: int(t.rangeEnd[r])})
		}
		if block.Start > 0 || x.PrefixLength == 0 { // the first block of a sequence with a prefix is the prefix
			x.Blocks = append(x.Blocks, block)
		}
	}
	first, last := t.actionOffsets[s], t.actionOffsets[s+1]
	for a := first; a < last; a++ {
		at := slices.Index(x.Trajectories, int(t.trajectory[a]))
		if at < 0 {
			at = len(x.Trajectories)
			x.Trajectories = append(x.Trajectories, int(t.trajectory[a]))
		}
		x.Packed.Actions = append(x.Packed.Actions, align.Action{
			Trajectory: at, Call: int(t.call[a]), Token: int(t.token[a]), ID: t.id[a],
			Index: int(t.at[a]), Predict: int(t.predict[a]), Teacher: t.teacher[a],
		})
	}
	if n := len(x.Trajectories); n > 0 {
		x.TrajectoryID = ids[x.Trajectories[0]]
		if n > 1 { // as align names a group
			x.TrajectoryID = fmt.Sprintf("%s and %d more", x.TrajectoryID, n-1)
		}
	}
	x.Columns = map[string][]float32{}
	for name, column := range t.columns {
		x.Columns[name] = column[first:last]
	}
	return x
}

// isColumn returns the name of the column that a tensor holds.
func isColumn(name string) (string, bool) {
	column, ok := strings.CutPrefix(name, columnPrefix)
	return column, ok && !known(name)
}
