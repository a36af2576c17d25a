package export

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memopd/memopd-bench/align"
)

// In Arrow a record is a sequence, and what belongs to it is a list in its columns. All
// fields are never null but the values of columns, where null says that there is none.

var (
	rangeType = arrow.StructOf(field("start", arrow.PrimitiveTypes.Int32), field("end", arrow.PrimitiveTypes.Int32))
	blockType = arrow.StructOf(field("call", arrow.PrimitiveTypes.Int32), field("start", arrow.PrimitiveTypes.Int32),
		field("end", arrow.PrimitiveTypes.Int32), field("sees", listOf(rangeType)))
	trajectoryType = arrow.StructOf(field("id", arrow.BinaryTypes.String), field("task_id", arrow.BinaryTypes.String),
		field("reward", arrow.PrimitiveTypes.Float64))
)

func field(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }

func listOf(t arrow.DataType) arrow.DataType { return arrow.ListOfNonNullable(t) }

func actionType(columns []string) *arrow.StructType {
	fields := []arrow.Field{
		field("trajectory", arrow.PrimitiveTypes.Int32), field("call", arrow.PrimitiveTypes.Int32), field("token", arrow.PrimitiveTypes.Int32),
		field("id", arrow.PrimitiveTypes.Int32), field("index", arrow.PrimitiveTypes.Int32), field("predict", arrow.PrimitiveTypes.Int32),
		field("teacher", arrow.FixedWidthTypes.Boolean),
	}
	for _, name := range columns {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float32, Nullable: true})
	}
	return arrow.StructOf(fields...)
}

// schema describes the records of a batch.
func schema(b *Batch) (*arrow.Schema, error) {
	metadata, err := b.metadata()
	if err != nil {
		return nil, err
	}
	m := arrow.MetadataFrom(metadata)
	return arrow.NewSchema([]arrow.Field{
		field("ids", listOf(arrow.PrimitiveTypes.Int32)), field("positions", listOf(arrow.PrimitiveTypes.Int32)),
		field("block_ids", listOf(arrow.PrimitiveTypes.Int32)),
		field("action_mask", listOf(arrow.FixedWidthTypes.Boolean)), field("teacher_mask", listOf(arrow.FixedWidthTypes.Boolean)),
		field("prefix_length", arrow.PrimitiveTypes.Int32), field("blocks", listOf(blockType)),
		field("actions", listOf(actionType(b.Columns))), field("trajectories", listOf(trajectoryType)),
	}, &m), nil
}

// WriteArrow writes a batch to an Arrow IPC file, a record batch a sequence. The file
// takes its name when it is whole.
func WriteArrow(path string, b *Batch) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("export %s: %w", path, err)
		}
	}()
	schema, err := schema(b)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing
	if err := errors.Join(writeRecords(f, schema, b), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func writeRecords(f *os.File, schema *arrow.Schema, b *Batch) error {
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema), ipc.WithZstd())
	if err != nil {
		return err
	}
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	for i := range b.Sequences {
		appendSequence(builder, b, &b.Sequences[i])
		record := builder.NewRecordBatch()
		err = errors.Join(err, w.Write(record))
		record.Release()
	}
	return errors.Join(err, w.Close())
}

func appendSequence(r *array.RecordBuilder, b *Batch, s *Sequence) {
	var blockIDs []int32
	blocks := s.blocks()
	for i, block := range blocks {
		for range block.End - block.Start {
			blockIDs = append(blockIDs, int32(i))
		}
	}
	for i, list := range [][]int32{s.IDs, s.Positions, blockIDs} {
		l := r.Field(i).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Int32Builder).AppendValues(list, nil)
	}
	for i, mask := range [][]bool{s.ActionMask(), s.TeacherMask()} {
		l := r.Field(3 + i).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.BooleanBuilder).AppendValues(mask, nil)
	}
	appendInts(r.Field(5), s.PrefixLength)
	appendBlocks(r.Field(6).(*array.ListBuilder), blocks)
	appendActions(r.Field(7).(*array.ListBuilder), b, s)
	l := r.Field(8).(*array.ListBuilder)
	l.Append(true)
	each := l.ValueBuilder().(*array.StructBuilder)
	for _, at := range s.Trajectories {
		t := b.Trajectories[at]
		each.Append(true)
		each.FieldBuilder(0).(*array.StringBuilder).Append(t.ID)
		each.FieldBuilder(1).(*array.StringBuilder).Append(t.TaskID)
		each.FieldBuilder(2).(*array.Float64Builder).Append(t.Reward)
	}
}

func appendInts(b array.Builder, values ...int) {
	for _, v := range values {
		b.(*array.Int32Builder).Append(int32(v))
	}
}

func appendBlocks(l *array.ListBuilder, blocks []align.Block) {
	l.Append(true)
	each := l.ValueBuilder().(*array.StructBuilder)
	for _, b := range blocks {
		each.Append(true)
		for i, v := range []int{b.Call, b.Start, b.End} {
			appendInts(each.FieldBuilder(i), v)
		}
		sees := each.FieldBuilder(3).(*array.ListBuilder)
		sees.Append(true)
		place := sees.ValueBuilder().(*array.StructBuilder)
		for _, r := range b.Sees {
			place.Append(true)
			appendInts(place.FieldBuilder(0), r.Start)
			appendInts(place.FieldBuilder(1), r.End)
		}
	}
}

func appendActions(l *array.ListBuilder, b *Batch, s *Sequence) {
	l.Append(true)
	each := l.ValueBuilder().(*array.StructBuilder)
	for n, a := range s.Packed.Actions {
		each.Append(true)
		for i, v := range []int{a.Trajectory, a.Call, a.Token, int(a.ID), a.Index, a.Predict} {
			appendInts(each.FieldBuilder(i), v)
		}
		each.FieldBuilder(6).(*array.BooleanBuilder).Append(a.Teacher)
		for i, name := range b.Columns {
			value := each.FieldBuilder(7 + i).(*array.Float32Builder)
			if column := s.Columns[name]; column == nil || column[n] != column[n] {
				value.AppendNull()
			} else {
				value.Append(column[n])
			}
		}
	}
}
