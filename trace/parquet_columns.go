package trace

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// column binds one field of T to an Arrow column. A row of nested columns is a
// struct, so one table a type says how it is written and how it is read.
type column[T any] struct {
	name     string
	typ      arrow.DataType
	nullable bool // only a list, null for nil
	optional bool // files from before it was added lack it
	put      func(array.Builder, *T)
	get      func(arrow.Array, int, *T) error
}

func textColumn[T any, S ~string](name string, at func(*T) *S) column[T] {
	return column[T]{name: name, typ: arrow.BinaryTypes.String,
		put: func(b array.Builder, t *T) { b.(*array.StringBuilder).Append(string(*at(t))) },
		get: func(a arrow.Array, row int, t *T) error {
			return read(a, row, func(a *array.String) { *at(t) = S(a.Value(row)) })
		}}
}

func intColumn[T any](name string, at func(*T) *int) column[T] {
	return column[T]{name: name, typ: arrow.PrimitiveTypes.Int64,
		put: func(b array.Builder, t *T) { b.(*array.Int64Builder).Append(int64(*at(t))) },
		get: func(a arrow.Array, row int, t *T) error {
			return read(a, row, func(a *array.Int64) { *at(t) = int(a.Value(row)) })
		}}
}

func seedColumn[T any](name string, at func(*T) *uint64) column[T] {
	return column[T]{name: name, typ: arrow.PrimitiveTypes.Uint64,
		put: func(b array.Builder, t *T) { b.(*array.Uint64Builder).Append(*at(t)) },
		get: func(a arrow.Array, row int, t *T) error {
			return read(a, row, func(a *array.Uint64) { *at(t) = a.Value(row) })
		}}
}

func floatColumn[T any](name string, at func(*T) *float64) column[T] {
	return column[T]{name: name, typ: arrow.PrimitiveTypes.Float64,
		put: func(b array.Builder, t *T) { b.(*array.Float64Builder).Append(*at(t)) },
		get: func(a arrow.Array, row int, t *T) error {
			return read(a, row, func(a *array.Float64) { *at(t) = a.Value(row) })
		}}
}

func boolColumn[T any](name string, at func(*T) *bool) column[T] {
	return column[T]{name: name, typ: arrow.FixedWidthTypes.Boolean,
		put: func(b array.Builder, t *T) { b.(*array.BooleanBuilder).Append(*at(t)) },
		get: func(a arrow.Array, row int, t *T) error {
			return read(a, row, func(a *array.Boolean) { *at(t) = a.Value(row) })
		}}
}

// structColumn nests the columns of a field of T.
func structColumn[T, E any](name string, columns []column[E], at func(*T) *E) column[T] {
	return column[T]{name: name, typ: structOf(columns),
		put: func(b array.Builder, t *T) { putStruct(b, columns, at(t)) },
		get: func(a arrow.Array, row int, t *T) error { return getStruct(a, row, columns, at(t)) }}
}

// listColumn holds a list whose elements have the type and accessors of one column.
func listColumn[T, E any](name string, element column[E], at func(*T) *[]E) column[T] {
	field := arrow.Field{Name: "element", Type: element.typ}
	return column[T]{name: name, typ: arrow.ListOfField(field),
		put: func(b array.Builder, t *T) {
			list := b.(*array.ListBuilder)
			list.Append(true)
			items := *at(t)
			for i := range items {
				element.put(list.ValueBuilder(), &items[i])
			}
		},
		get: func(a arrow.Array, row int, t *T) error {
			list, ok := a.(*array.List)
			if !ok || list.IsNull(row) {
				return fmt.Errorf("a %s where a list belongs", describe(a, row))
			}
			start, end := list.ValueOffsets(row)
			items := make([]E, end-start)
			for i := range items {
				if err := element.get(list.ListValues(), int(start)+i, &items[i]); err != nil {
					return fmt.Errorf("[%d]: %w", i, err)
				}
			}
			*at(t) = orNil(items)
			return nil
		}}
}

// orNull makes a list column nullable: null for nil.
func orNull[T, E any](c column[T], at func(*T) *[]E) column[T] {
	put, get := c.put, c.get
	c.nullable = true
	c.put = func(b array.Builder, t *T) {
		if *at(t) == nil {
			b.AppendNull()
			return
		}
		put(b, t)
	}
	c.get = func(a arrow.Array, row int, t *T) error {
		if a.IsNull(row) {
			*at(t) = nil
			return nil
		}
		return get(a, row, t)
	}
	return c
}

// orAbsent makes a column optional.
func orAbsent[T any](c column[T]) column[T] {
	c.optional = true
	return c
}

func structOf[T any](columns []column[T]) *arrow.StructType {
	return arrow.StructOf(fields(columns)...)
}

func fields[T any](columns []column[T]) []arrow.Field {
	out := make([]arrow.Field, len(columns))
	for i, c := range columns {
		out[i] = arrow.Field{Name: c.name, Type: c.typ, Nullable: c.nullable}
	}
	return out
}

// structElement is a column of list elements that are structs.
func structElement[T any](columns []column[T]) column[T] {
	return structColumn("", columns, func(t *T) *T { return t })
}

func putStruct[T any](b array.Builder, columns []column[T], t *T) {
	s := b.(*array.StructBuilder)
	s.Append(true)
	for i, c := range columns {
		c.put(s.FieldBuilder(i), t)
	}
}

func getStruct[T any](a arrow.Array, row int, columns []column[T], t *T) error {
	s, ok := a.(*array.Struct)
	if !ok || s.IsNull(row) {
		return fmt.Errorf("a %s where a struct belongs", describe(a, row))
	}
	typ := s.DataType().(*arrow.StructType)
	for _, c := range columns {
		at, ok := typ.FieldIdx(c.name)
		if !ok && c.optional {
			continue
		}
		if !ok {
			return fmt.Errorf("no field %s", c.name)
		}
		if err := c.get(s.Field(at), row, t); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// read calls take with the array as the type A, unless it is another or null there.
func read[A arrow.Array](a arrow.Array, row int, take func(A)) error {
	typed, ok := a.(A)
	if !ok || a.IsNull(row) {
		return fmt.Errorf("a %s where a %T belongs", describe(a, row), typed)
	}
	take(typed)
	return nil
}

func describe(a arrow.Array, row int) string {
	if a.IsNull(row) {
		return "null"
	}
	return a.DataType().String()
}
