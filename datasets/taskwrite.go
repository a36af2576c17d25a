package datasets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// TaskSchemaVersion stands in the metadata of each task file under
// "memopd.task_schema". It changes when a column changes its meaning.
const TaskSchemaVersion = "1"

// tasksPerRowGroup bounds what a writer holds in memory.
const tasksPerRowGroup = 1024

// TaskSchema returns the columns of a task file: MEM1's first (data_source,
// prompt, ability, reward_model, extra_info), then what they leave out. The last,
// evidence, is there where a task of the file has any: for each question the
// titles of the passages that its answer rests on, an empty list where they are
// not known.
func TaskSchema(evidence bool) *arrow.Schema {
	text, texts := arrow.BinaryTypes.String, arrow.ListOf(arrow.BinaryTypes.String)
	field := func(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }
	meta := arrow.NewMetadata([]string{"memopd.task_schema"}, []string{TaskSchemaVersion})
	fields := []arrow.Field{
		field("data_source", text),
		field("prompt", arrow.ListOf(arrow.StructOf(field("role", text), field("content", text)))),
		field("ability", text),
		field("reward_model", arrow.StructOf(field("style", text),
			field("ground_truth", arrow.StructOf(field("target", arrow.ListOf(texts)))))),
		field("extra_info", arrow.StructOf(field("split", text), field("index", arrow.PrimitiveTypes.Int64))),
		field("task_id", text),
		field("world", text),
		field("question_ids", texts),
		field("questions", texts),
		field("golds", arrow.ListOf(texts)),
		field("sources", texts),
		field("hops", arrow.ListOf(arrow.PrimitiveTypes.Int32)),
	}
	if evidence {
		fields = append(fields, field("evidence", arrow.ListOf(texts)))
	}
	return arrow.NewSchema(fields, &meta)
}

// DefaultPrompt is the prompt column's text unless another is given: MEM1's last
// line, the questions joined by "; ". Agents here render their own prompts from
// the questions and do not read it.
func DefaultPrompt(t Task) string {
	texts := make([]string, len(t.Questions))
	for i, q := range t.Questions {
		texts[i] = q.Question
	}
	return mem1Marker + strings.Join(texts, Separator+" ") + "\n"
}

// TaskWriter streams tasks into a Parquet file. It is not safe for several
// goroutines.
type TaskWriter struct {
	out     *atomicFile
	parquet *pqarrow.FileWriter
	rows    *array.RecordBuilder
	split   Split
	prompt  func(Task) string
	held    int // tasks in rows
	n       int

	evidence bool // the column is there
}

// NewTaskWriter starts a file of tasks of one split; prompt may be nil for
// [DefaultPrompt], and evidence says whether the file has that column. The file
// is in its place only after Close.
func NewTaskWriter(path string, split Split, prompt func(Task) string, evidence bool) (*TaskWriter, error) {
	out, err := createAtomic(path)
	if err != nil {
		return nil, err
	}
	schema := TaskSchema(evidence)
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))
	pw, err := pqarrow.NewFileWriter(schema, out, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		out.abort()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if prompt == nil {
		prompt = DefaultPrompt
	}
	return &TaskWriter{out: out, parquet: pw, split: split, prompt: prompt, evidence: evidence,
		rows: array.NewRecordBuilder(memory.DefaultAllocator, schema)}, nil
}

// Write adds a task; its index in extra_info is its place in the file, from 0.
func (w *TaskWriter) Write(t Task) error {
	if t.ID == "" || len(t.Questions) == 0 {
		return fmt.Errorf("%s: task %d (%q) has no id or no questions", w.out.path, w.n, t.ID)
	}
	w.append(t)
	w.n++
	if w.held++; w.held < tasksPerRowGroup {
		return nil
	}
	return w.flush()
}

func (w *TaskWriter) append(t Task) {
	b := w.rows
	text := func(i int, s string) { b.Field(i).(*array.StringBuilder).Append(s) }
	text(0, dataSource(t))
	prompt := b.Field(1).(*array.ListBuilder)
	prompt.Append(true)
	message := prompt.ValueBuilder().(*array.StructBuilder)
	message.Append(true)
	message.FieldBuilder(0).(*array.StringBuilder).Append("user")
	message.FieldBuilder(1).(*array.StringBuilder).Append(w.prompt(t))
	text(2, "fact-reasoning")
	reward := b.Field(3).(*array.StructBuilder)
	reward.Append(true)
	reward.FieldBuilder(0).(*array.StringBuilder).Append("rule")
	truth := reward.FieldBuilder(1).(*array.StructBuilder)
	truth.Append(true)
	appendLists(truth.FieldBuilder(0), t, goldsOf)
	extra := b.Field(4).(*array.StructBuilder)
	extra.Append(true)
	extra.FieldBuilder(0).(*array.StringBuilder).Append(string(w.split))
	extra.FieldBuilder(1).(*array.Int64Builder).Append(int64(w.n))
	text(5, t.ID)
	text(6, t.World)
	appendTexts(b.Field(7), t, func(q Question) string { return q.ID })
	appendTexts(b.Field(8), t, func(q Question) string { return q.Question })
	appendLists(b.Field(9), t, goldsOf)
	appendTexts(b.Field(10), t, func(q Question) string { return q.Source })
	hops := b.Field(11).(*array.ListBuilder)
	hops.Append(true)
	for _, q := range t.Questions {
		hops.ValueBuilder().(*array.Int32Builder).Append(int32(q.Hops))
	}
	if w.evidence {
		appendLists(b.Field(12), t, func(q Question) []string { return q.Evidence })
	}
}

func appendTexts(b array.Builder, t Task, of func(Question) string) {
	list := b.(*array.ListBuilder)
	list.Append(true)
	for _, q := range t.Questions {
		list.ValueBuilder().(*array.StringBuilder).Append(of(q))
	}
}

func goldsOf(q Question) []string { return q.Golds }

func appendLists(b array.Builder, t Task, of func(Question) []string) {
	list := b.(*array.ListBuilder)
	list.Append(true)
	for _, q := range t.Questions {
		texts := list.ValueBuilder().(*array.ListBuilder)
		texts.Append(true)
		for _, s := range of(q) {
			texts.ValueBuilder().(*array.StringBuilder).Append(s)
		}
	}
}

// dataSource names the sources of a task's questions, such as "hotpotqa+nq".
func dataSource(t Task) string {
	var names []string
	for _, q := range t.Questions {
		if !slices.Contains(names, q.Source) {
			names = append(names, q.Source)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}

func (w *TaskWriter) flush() error {
	if w.held == 0 {
		return nil
	}
	batch := w.rows.NewRecordBatch()
	defer batch.Release()
	w.held = 0
	if err := w.parquet.Write(batch); err != nil {
		return fmt.Errorf("%s: %w", w.out.path, err)
	}
	return nil
}

// Close completes the file and says what was written.
func (w *TaskWriter) Close() (FileSum, error) {
	defer w.rows.Release()
	err := w.flush()
	// The Parquet writer closes what it writes to if it can; it cannot here, so
	// the file stays open until it is moved.
	if closeErr := w.parquet.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("%s: %w", w.out.path, closeErr)
	}
	if err != nil {
		w.out.abort()
		return FileSum{}, err
	}
	return w.out.commit(w.n)
}

// Abort removes the unfinished file. It must not follow Close.
func (w *TaskWriter) Abort() {
	w.rows.Release()
	w.out.abort()
}

// WriteTasks writes a whole file of tasks, with the evidence column if one of them
// has evidence.
func WriteTasks(path string, split Split, tasks []Task, prompt func(Task) string) (FileSum, error) {
	hasEvidence := func(q Question) bool { return len(q.Evidence) > 0 }
	evidence := slices.ContainsFunc(tasks, func(t Task) bool { return slices.ContainsFunc(t.Questions, hasEvidence) })
	w, err := NewTaskWriter(path, split, prompt, evidence)
	if err != nil {
		return FileSum{}, err
	}
	for _, t := range tasks {
		if err := w.Write(t); err != nil {
			w.Abort()
			return FileSum{}, err
		}
	}
	return w.Close()
}
