package gguf

import (
	"fmt"
	"maps"
	"slices"
)

// Keys lists the metadata's keys, sorted.
func (f *File) Keys() []string { return slices.Sorted(maps.Keys(f.metadata)) }

// Value is a metadata value: uint64, int64, float64, bool, string, or a slice of
// one of them; nil where the file lacks the key.
func (f *File) Value(key string) any { return f.metadata[key] }

// Uint reads a whole number that is not negative, whatever integer kind holds it.
// ok is false where the file lacks the key.
func (f *File) Uint(key string) (v uint64, ok bool, err error) {
	switch v := f.metadata[key].(type) {
	case nil:
		return 0, false, nil
	case uint64:
		return v, true, nil
	case int64:
		if v >= 0 {
			return uint64(v), true, nil
		}
	}
	return 0, false, f.wrong(key, "a whole number, 0 or more")
}

// Float reads a number. ok is false where the file lacks the key.
func (f *File) Float(key string) (v float64, ok bool, err error) {
	switch v := f.metadata[key].(type) {
	case nil:
		return 0, false, nil
	case float64:
		return v, true, nil
	case uint64:
		return float64(v), true, nil
	case int64:
		return float64(v), true, nil
	}
	return 0, false, f.wrong(key, "a number")
}

// String reads a text. ok is false where the file lacks the key.
func (f *File) String(key string) (v string, ok bool, err error) {
	return typed[string](f, key, "a text")
}

// Bool reads true or false. ok is false where the file lacks the key.
func (f *File) Bool(key string) (v, ok bool, err error) { return typed[bool](f, key, "true or false") }

// Strings reads a list of texts. ok is false where the file lacks the key.
func (f *File) Strings(key string) (v []string, ok bool, err error) {
	return typed[[]string](f, key, "a list of texts")
}

// Ints reads a list of whole numbers. ok is false where the file lacks the key.
func (f *File) Ints(key string) (v []int64, ok bool, err error) {
	if list, ok := f.metadata[key].([]uint64); ok {
		for _, n := range list {
			v = append(v, int64(n))
		}
		return v, true, nil
	}
	return typed[[]int64](f, key, "a list of whole numbers")
}

func typed[T any](f *File, key, want string) (v T, ok bool, err error) {
	value := f.metadata[key]
	if value == nil {
		return v, false, nil
	}
	v, ok = value.(T)
	if !ok {
		return v, false, f.wrong(key, want)
	}
	return v, true, nil
}

func (f *File) wrong(key, want string) error {
	return fmt.Errorf("metadata %q holds %T %.40s, want %s", key, f.metadata[key], fmt.Sprint(f.metadata[key]), want)
}
