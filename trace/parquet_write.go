package trace

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// rowGroupTokens bounds the memory of a row group: so many token ids, or one
// trajectory if that is more.
const rowGroupTokens = 1 << 20

// parquetWriter writes one row a trajectory.
type parquetWriter struct {
	file   *atomicFile
	out    *pqarrow.FileWriter
	rows   *array.RecordBuilder
	tokens int // in rows
	limit  int // of tokens, rowGroupTokens
}

func newParquetWriter(path string) (Writer, error) {
	f, err := createAtomic(path)
	if err != nil {
		return nil, err
	}
	props := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCreatedBy("memopd-bench"),
	)
	schema := ledgerSchema()
	// The wrapper hides Close: the file stays open for commit.
	sink := struct{ io.Writer }{f}
	out, err := pqarrow.NewFileWriter(schema, sink, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		f.discard()
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	rows := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	return &parquetWriter{file: f, out: out, rows: rows, limit: rowGroupTokens}, nil
}

func (w *parquetWriter) Write(t *Trajectory) error {
	if err := t.Validate(); err != nil {
		return fmt.Errorf("ledger %s: %w", w.file.path, err)
	}
	for i, c := range trajectoryColumns {
		c.put(w.rows.Field(i), t)
	}
	w.tokens += len(t.Prefix)
	for i := range t.Calls {
		c := &t.Calls[i]
		w.tokens += len(c.Context) + len(c.Output) + len(c.Observation)
	}
	if w.tokens < w.limit {
		return nil
	}
	return w.flush()
}

// flush writes the gathered rows as one row group.
func (w *parquetWriter) flush() error {
	batch := w.rows.NewRecordBatch()
	defer batch.Release()
	w.tokens = 0
	if batch.NumRows() == 0 {
		return nil
	}
	if err := w.out.Write(batch); err != nil {
		return fmt.Errorf("ledger %s: %w", w.file.path, err)
	}
	return nil
}

func (w *parquetWriter) Close() error {
	if w.file.done {
		return fmt.Errorf("ledger %s: closed already", w.file.path)
	}
	err := w.flush()
	if err == nil {
		err = w.out.Close()
	}
	w.rows.Release()
	if err != nil {
		w.file.discard()
		return fmt.Errorf("ledger %s: %w", w.file.path, err)
	}
	return w.file.commit()
}

func (w *parquetWriter) Discard() error { return w.file.discard() }
