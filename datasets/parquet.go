package datasets

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

const (
	parquetMagic     = "PAR1"
	parquetBatchRows = 512
)

// parquetRows gives the rows of a Parquet file as JSON objects, so that one
// decoder serves a layout in whichever file it stands.
type parquetRows struct {
	file   *file.Reader
	reader pqarrow.RecordReader
	batch  bytes.Buffer // rows of the current batch, one a line
	n      int
}

// openParquet reads the file's footer. The caller closes r after the rows.
func openParquet(r parquet.ReaderAtSeeker) (p *parquetRows, err error) {
	defer recoverParquet(&err)
	f, err := file.NewParquetReader(r)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	pr, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: parquetBatchRows}, memory.DefaultAllocator)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	records, err := pr.GetRecordReader(context.Background(), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	return &parquetRows{file: f, reader: records}, nil
}

// recoverParquet makes errors of the panics that arrow-go has for broken files.
func recoverParquet(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("parquet: broken file: %v", p)
	}
}

func (p *parquetRows) place() (string, int) { return "row", p.n }

func (p *parquetRows) next() (row []byte, err error) {
	defer recoverParquet(&err)
	for p.batch.Len() == 0 {
		if !p.reader.Next() {
			if err := p.reader.Err(); err != nil && err != io.EOF {
				return nil, fmt.Errorf("parquet: after row %d: %w", p.n, err)
			}
			return nil, io.EOF
		}
		p.batch.Reset()
		batch := p.reader.RecordBatch()
		for i, column := range batch.Columns() {
			if !validText(column) {
				return nil, fmt.Errorf("parquet: after row %d: column %s: invalid UTF-8", p.n, batch.ColumnName(i))
			}
		}
		if err := array.RecordToJSON(batch, &p.batch); err != nil {
			return nil, fmt.Errorf("parquet: after row %d: %w", p.n, err)
		}
	}
	row, err = p.batch.ReadBytes('\n')
	p.n++
	return row, err
}

// validText reports whether all strings in a column are UTF-8; the way through
// JSON would otherwise replace bad bytes without a word.
func validText(column arrow.Array) bool {
	switch c := column.(type) {
	case *array.String:
		for i := range c.Len() {
			if !utf8.ValidString(c.Value(i)) {
				return false
			}
		}
	case *array.List:
		return validText(c.ListValues())
	case *array.Struct:
		for i := range c.NumField() {
			if !validText(c.Field(i)) {
				return false
			}
		}
	}
	return true
}
