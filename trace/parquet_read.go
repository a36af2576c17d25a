package trace

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// parquetReader reads one row a trajectory, a few rows at a time.
type parquetReader struct {
	path  string
	file  *file.Reader
	rows  pqarrow.RecordReader
	batch arrow.RecordBatch // owned by rows
	next  int               // row of batch
	row   int               // of the file

	check bool // trajectories must Validate
}

// rowsPerRead is how many trajectories are decoded at a time.
const rowsPerRead = 64

func newParquetReader(path string, check bool) (_ Reader, err error) {
	defer catch(&err, "ledger "+path)
	f, err := file.OpenParquetFile(path, false)
	if err != nil {
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	r := &parquetReader{path: path, file: f, check: check}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	return r, nil
}

func (r *parquetReader) open() error {
	if err := checkVersion(r.file.MetaData().KeyValueMetadata().FindValue(schemaKey)); err != nil {
		return err
	}
	props := pqarrow.ArrowReadProperties{BatchSize: rowsPerRead}
	reader, err := pqarrow.NewFileReader(r.file, props, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	schema, err := reader.Schema()
	if err != nil {
		return err
	}
	absent := 0
	for _, c := range trajectoryColumns {
		switch {
		case schema.HasField(c.name):
		case c.optional:
			absent++
		default:
			return fmt.Errorf("no column %s", c.name)
		}
	}
	if n := schema.NumFields(); n != len(trajectoryColumns)-absent {
		return fmt.Errorf("%d columns, a ledger has %d", n, len(trajectoryColumns)-absent)
	}
	r.rows, err = reader.GetRecordReader(context.Background(), nil, nil)
	return err
}

func checkVersion(stated *string) error {
	if stated == nil {
		return fmt.Errorf("%w: no %s in the metadata", ErrSchema, schemaKey)
	}
	if *stated != strconv.Itoa(SchemaVersion) {
		return fmt.Errorf("%w %q (this program reads %d)", ErrSchema, *stated, SchemaVersion)
	}
	return nil
}

func (r *parquetReader) Next() (_ *Trajectory, err error) {
	defer catch(&err, fmt.Sprintf("ledger %s: row %d", r.path, r.row))
	for r.batch == nil || r.next >= int(r.batch.NumRows()) {
		if !r.rows.Next() {
			if err := r.rows.Err(); err != nil && err != io.EOF {
				return nil, fmt.Errorf("ledger %s: row %d: %w", r.path, r.row, err)
			}
			return nil, io.EOF
		}
		r.batch, r.next = r.rows.RecordBatch(), 0
	}
	t, err := r.decode()
	if err != nil {
		return nil, fmt.Errorf("ledger %s: row %d: %w", r.path, r.row, err)
	}
	r.next++
	r.row++
	return t, nil
}

// decode reads the row that is next in the batch.
func (r *parquetReader) decode() (*Trajectory, error) {
	t := &Trajectory{}
	for _, c := range trajectoryColumns {
		at := r.batch.Schema().FieldIndices(c.name)
		if len(at) == 0 && c.optional {
			continue
		}
		if len(at) != 1 {
			return nil, fmt.Errorf("%d columns %s", len(at), c.name)
		}
		if err := c.get(r.batch.Column(at[0]), r.next, t); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	t.normalise()
	if !r.check {
		return t, nil
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return t, nil
}

func (r *parquetReader) Close() error {
	if r.rows != nil {
		r.rows.Release()
	}
	return r.file.Close()
}

// catch makes an error of a panic: the Parquet decoder may panic on a broken file.
func catch(err *error, what string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: broken Parquet: %v", what, p)
	}
}
