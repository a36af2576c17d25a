package results

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
)

// readRequired reads a JSON file of which only some fields are of interest. A
// field of the struct that the file lacks is an error, and so is null where the
// struct has no pointer; other fields of the file are passed over.
func readRequired(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := requireFields(data, reflect.TypeOf(into).Elem(), ""); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// requireFields walks a type and the JSON that was read into it; at is the path
// to it, for errors.
func requireFields(data json.RawMessage, t reflect.Type, at string) error {
	if null := string(data) == "null"; t.Kind() == reflect.Pointer || null {
		if null && t.Kind() != reflect.Pointer {
			return fmt.Errorf("%s is null", at)
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Slice:
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		for i, item := range list {
			if err := requireFields(item, t.Elem(), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		var object map[string]json.RawMessage
		if err := json.Unmarshal(data, &object); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return requireObject(data, object, t, at)
	}
	return nil
}

func requireObject(data json.RawMessage, object map[string]json.RawMessage, t reflect.Type, at string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("json")
		if f.Anonymous {
			if err := requireFields(data, f.Type, at); err != nil {
				return err
			}
			continue
		}
		if name == "-" {
			continue
		}
		path := strings.TrimPrefix(at+"."+name, ".")
		value, found := object[name]
		if !found {
			return fmt.Errorf("%s is missing", path)
		}
		if err := requireFields(value, f.Type, path); err != nil {
			return err
		}
	}
	return nil
}
