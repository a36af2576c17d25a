package trace

import (
	"maps"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// schemaKey is the key of the schema version in a Parquet ledger's metadata.
const schemaKey = "memopd.ledger.schema"

// self is the accessor of a list's plain elements.
func self[T any](t *T) *T { return t }

var (
	spanColumns = []column[Span]{
		textColumn("origin", func(s *Span) *Origin { return &s.Origin }),
		intColumn("from_call", func(s *Span) *int { return &s.FromCall }),
		intColumn("offset", func(s *Span) *int { return &s.Offset }),
		intColumn("start", func(s *Span) *int { return &s.Start }),
		intColumn("end", func(s *Span) *int { return &s.End }),
	}
	samplerColumns = []column[Sampler]{
		boolColumn("greedy", func(s *Sampler) *bool { return &s.Greedy }),
		floatColumn("temperature", func(s *Sampler) *float64 { return &s.Temperature }),
		intColumn("top_k", func(s *Sampler) *int { return &s.TopK }),
		floatColumn("top_p", func(s *Sampler) *float64 { return &s.TopP }),
		seedColumn("seed", func(s *Sampler) *uint64 { return &s.Seed }),
		orAbsent(textColumn("meaning", func(s *Sampler) *Meaning { return &s.Meaning })),
	}
	callColumns = []column[Call]{
		intColumn("index", func(c *Call) *int { return &c.Index }),
		idsColumn("context", func(c *Call) *[]int32 { return &c.Context }),
		listColumn("spans", structElement(spanColumns), func(c *Call) *[]Span { return &c.Spans }),
		idsColumn("output", func(c *Call) *[]int32 { return &c.Output }),
		orNull(logProbsColumn("log_probs", callLogProbs), callLogProbs),
		textColumn("stop", func(c *Call) *StopReason { return &c.Stop }),
		textColumn("outcome", func(c *Call) *Outcome { return &c.Outcome }),
		textColumn("reason", func(c *Call) *string { return &c.Reason }),
		textColumn("query", func(c *Call) *string { return &c.Query }),
		idsColumn("observation", func(c *Call) *[]int32 { return &c.Observation }),
		listColumn("documents", textColumn("", self[string]), func(c *Call) *[]string { return &c.Documents }),
		seedColumn("seed", func(c *Call) *uint64 { return &c.Seed }),
		intColumn("max_new_tokens", func(c *Call) *int { return &c.MaxNewTokens }),
		floatColumn("seconds", func(c *Call) *float64 { return &c.Seconds }),
		floatColumn("retrieval_seconds", func(c *Call) *float64 { return &c.RetrievalSeconds }),
		orAbsent(textColumn("retrieval_error", func(c *Call) *string { return &c.RetrievalError })),
	}
	trajectoryColumns = []column[Trajectory]{
		intColumn("schema", func(t *Trajectory) *int { return &t.Schema }),
		textColumn("id", func(t *Trajectory) *string { return &t.ID }),
		textColumn("task_id", func(t *Trajectory) *string { return &t.TaskID }),
		textColumn("agent", func(t *Trajectory) *string { return &t.Agent }),
		textColumn("model", func(t *Trajectory) *string { return &t.Model }),
		idsColumn("prefix", func(t *Trajectory) *[]int32 { return &t.Prefix }),
		listColumn("calls", structElement(callColumns), func(t *Trajectory) *[]Call { return &t.Calls }),
		structColumn("sampler", samplerColumns, func(t *Trajectory) *Sampler { return &t.Sampler }),
		textColumn("end", func(t *Trajectory) *End { return &t.End }),
		textColumn("error", func(t *Trajectory) *string { return &t.Error }),
		listColumn("answers", textColumn("", self[string]), func(t *Trajectory) *[]string { return &t.Answers }),
		floatColumn("reward", func(t *Trajectory) *float64 { return &t.Reward }),
		scoresColumn(),
		orAbsent(listColumn("lacks", textColumn("", self[string]), func(t *Trajectory) *[]string { return &t.Lacks })),
	}
)

func callLogProbs(c *Call) *[]float32 { return &c.LogProbs }

func idsColumn[T any](name string, at func(*T) *[]int32) column[T] {
	element := column[int32]{typ: arrow.PrimitiveTypes.Int32,
		put: func(b array.Builder, id *int32) { b.(*array.Int32Builder).Append(*id) },
		get: func(a arrow.Array, row int, id *int32) error {
			return read(a, row, func(a *array.Int32) { *id = a.Value(row) })
		}}
	return listColumn(name, element, at)
}

func logProbsColumn[T any](name string, at func(*T) *[]float32) column[T] {
	element := column[float32]{typ: arrow.PrimitiveTypes.Float32,
		put: func(b array.Builder, p *float32) { b.(*array.Float32Builder).Append(*p) },
		get: func(a arrow.Array, row int, p *float32) error {
			return read(a, row, func(a *array.Float32) { *p = a.Value(row) })
		}}
	return listColumn(name, element, at)
}

// score is an entry of Trajectory.Scores.
type score struct {
	name  string
	value float64
}

// scoresColumn holds the map as a list of names and values, sorted by name.
func scoresColumn() column[Trajectory] {
	entries := listColumn("scores", structElement([]column[score]{
		textColumn("name", func(s *score) *string { return &s.name }),
		floatColumn("value", func(s *score) *float64 { return &s.value }),
	}), self[[]score])
	return column[Trajectory]{name: entries.name, typ: entries.typ,
		put: func(b array.Builder, t *Trajectory) {
			var list []score
			for _, name := range slices.Sorted(maps.Keys(t.Scores)) {
				list = append(list, score{name, t.Scores[name]})
			}
			entries.put(b, &list)
		},
		get: func(a arrow.Array, row int, t *Trajectory) error {
			var list []score
			if err := entries.get(a, row, &list); err != nil || len(list) == 0 {
				return err
			}
			t.Scores = make(map[string]float64, len(list))
			for _, s := range list {
				t.Scores[s.name] = s.value
			}
			return nil
		}}
}

// ledgerSchema is the Arrow schema of a Parquet ledger: one row a trajectory.
func ledgerSchema() *arrow.Schema {
	meta := arrow.NewMetadata([]string{schemaKey}, []string{strconv.Itoa(SchemaVersion)})
	return arrow.NewSchema(fields(trajectoryColumns), &meta)
}
