package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A command's configuration is one plain struct. A field with a `flag:"name"`
// tag becomes a flag and, under the same name, a key of the JSON file that
// --config reads; `help` is its description. Numbers lie between `min`, 0 where
// there is none, and `max`. Structs within are flattened, so a
// name stands once.

// field is one flag's place in a configuration struct.
type field struct {
	name, help string
	min, max   string // of a number; "" for 0 and for no limit
	value      reflect.Value
	given      bool // Set was called
}

var _ pflag.Value = (*field)(nil)

// fields lists the flags of the struct that config points to.
func fields(config any) []*field {
	var out []*field
	walk(reflect.ValueOf(config).Elem(), &out)
	return out
}

func walk(v reflect.Value, out *[]*field) {
	for i := 0; i < v.NumField(); i++ {
		t := v.Type().Field(i)
		if !t.IsExported() && !t.Anonymous {
			continue
		}
		if name := t.Tag.Get("flag"); name != "" {
			*out = append(*out, &field{name: name, help: t.Tag.Get("help"), min: t.Tag.Get("min"), max: t.Tag.Get("max"), value: v.Field(i)})
			continue
		}
		if t.Type.Kind() == reflect.Struct {
			walk(v.Field(i), out)
		}
	}
}

// bind makes a flag of each field of config.
func bind(fs *pflag.FlagSet, config any) {
	for _, f := range fields(config) {
		flag := fs.VarPF(f, f.name, "", f.help)
		if f.value.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
	}
}

// String is the field's value as a flag takes it.
func (f *field) String() string {
	if !f.value.IsValid() {
		return ""
	}
	if d, ok := f.value.Interface().(time.Duration); ok {
		return d.String()
	}
	if f.value.Kind() == reflect.Slice {
		parts := make([]string, f.value.Len())
		for i := range parts {
			parts[i] = fmt.Sprint(f.value.Index(i).Interface())
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(f.value.Interface())
}

// Type is the name of the field's kind in a help text.
func (f *field) Type() string {
	switch f.value.Kind() {
	case reflect.Slice:
		return "list"
	case reflect.Float64, reflect.Float32:
		return "float"
	case reflect.Int64:
		if _, ok := f.value.Interface().(time.Duration); ok {
			return "duration"
		}
		return "int"
	case reflect.Uint64:
		return "int"
	}
	return f.value.Kind().String()
}

// Set parses text into the field; a list is separated by commas, and one that is
// given again grows.
func (f *field) Set(text string) error {
	if f.value.Kind() != reflect.Slice {
		return setScalar(f.value, text)
	}
	list := reflect.MakeSlice(f.value.Type(), 0, 0)
	if f.given {
		list = f.value
	}
	f.given = true
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		item := reflect.New(f.value.Type().Elem()).Elem()
		if err := setScalar(item, part); err != nil {
			return err
		}
		list = reflect.Append(list, item)
	}
	f.value.Set(list)
	return nil
}

func setScalar(v reflect.Value, text string) error {
	if _, ok := v.Interface().(time.Duration); ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number of 0 or more", text)
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		x, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%q is not a finite number", text)
		}
		v.SetFloat(x)
	default:
		return fmt.Errorf("a flag of kind %s is not known", v.Kind())
	}
	return nil
}

// resolve gives config its final values: defaults (already in it), then the
// JSON file at path if there is one, then the flags that were given.
func resolve(fs *pflag.FlagSet, config any, path string, defaults func() error) error {
	given := map[string]string{}
	fs.Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	if defaults != nil {
		if err := defaults(); err != nil {
			return err
		}
	}
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("config: %w", err)
		}
		if err := applyJSON(config, data); err != nil {
			return fmt.Errorf("config %s: %w", path, err)
		}
	}
	for _, f := range fields(config) {
		if text, ok := given[f.name]; ok {
			if err := f.Set(text); err != nil {
				return fmt.Errorf("flag --%s: %w", f.name, err)
			}
		}
	}
	return checkLimits(config)
}

// applyJSON sets fields from a JSON object whose keys are flag names.
func applyJSON(config any, data []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	known := map[string]*field{}
	for _, f := range fields(config) {
		known[f.name] = f
	}
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		f := known[key]
		if f == nil {
			return unknownName("key", key, names(known))
		}
		if err := json.Unmarshal(object[key], f.value.Addr().Interface()); err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
	}
	return nil
}

// configJSON writes config as an object of flag names, in the struct's order.
func configJSON(config any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{")
	for i, f := range fields(config) {
		value, err := json.Marshal(f.value.Interface())
		if err != nil {
			return nil, fmt.Errorf("config key %q: %w", f.name, err)
		}
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  %q: %s", f.name, value)
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// unknownName is the error for a name that is not among the known ones.
func unknownName(what, name string, known []string) error {
	return fmt.Errorf("unknown %s %q (known: %s)", what, name, strings.Join(known, ", "))
}

func names(m map[string]*field) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// seedsMax is the most seeds that a range may hold.
const seedsMax = 10_000

// parseSeeds reads "3", "0-4" or "1,5,7".
func parseSeeds(text string) ([]int, error) {
	var seeds []int
	for _, part := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(low)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(high)
		}
		if err != nil || a < 0 || b < a {
			return nil, fmt.Errorf("seeds %q: want a number, a range such as 0-4, or a list of them", text)
		}
		if b-a >= seedsMax {
			return nil, fmt.Errorf("seeds %q: more than %d", text, seedsMax)
		}
		for ; a <= b; a++ {
			seeds = append(seeds, a)
		}
	}
	if len(seeds) == 0 {
		return nil, errors.New("seeds: none given")
	}
	return seeds, nil
}
