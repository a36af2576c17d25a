package rollouts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// values reads JSON values that follow each other, or the elements of one list.
// Python's NaN and Infinity, which are no JSON, become null.
type values struct {
	in    *bufio.Reader
	line  int
	list  bool // inside the outer list
	begun bool
}

func newValues(r io.Reader) *values { return &values{in: bufio.NewReaderSize(r, 1<<18), line: 1} }

// next returns the next value and the line that it begins in, io.EOF after the last.
func (v *values) next() ([]byte, int, error) {
	for {
		c, err := v.skip()
		if err != nil {
			if err == io.EOF && v.list {
				err = errors.New("the list has no end")
			}
			return nil, v.line, err
		}
		switch {
		case c == '[' && !v.begun:
			v.begun, v.list = true, true
		case c == ',' && v.list:
		case c == ']' && v.list:
			v.list = false
		case c == '{':
			v.begun = true
			line := v.line
			value, err := v.object()
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return value, line, err
		default:
			return nil, v.line, fmt.Errorf("%q where a JSON object belongs", c)
		}
	}
}

// skip reads to the next byte that is no white space.
func (v *values) skip() (byte, error) {
	for {
		c, err := v.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			v.line++
		case ' ', '\t', '\r':
		default:
			return c, nil
		}
	}
}

// object reads on from behind an opening brace to the one that closes it.
func (v *values) object() ([]byte, error) {
	out := []byte{'{'}
	for depth := 1; depth > 0; {
		c, err := v.in.ReadByte()
		if err != nil {
			return nil, err
		}
		switch c {
		case '"':
			if out, err = v.text(append(out, c)); err != nil {
				return nil, err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '\n':
			v.line++
		case 'N', 'I':
			if err := v.word(c); err != nil {
				return nil, err
			}
			if n := len(out); out[n-1] == '-' {
				out = out[:n-1]
			}
			out = append(out, "null"...)
			continue
		}
		out = append(out, c)
	}
	return out, nil
}

// text reads on to the quote that ends a string.
func (v *values) text(out []byte) ([]byte, error) {
	for {
		c, err := v.in.ReadByte()
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		switch c {
		case '"':
			return out, nil
		case '\n':
			v.line++
		case '\\':
			if c, err = v.in.ReadByte(); err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
}

// word reads the rest of NaN or Infinity.
func (v *values) word(first byte) error {
	want := map[byte]string{'N': "aN", 'I': "nfinity"}[first]
	got := make([]byte, len(want))
	if _, err := io.ReadFull(v.in, got); err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("%q is no JSON", string(first)+string(got))
	}
	return nil
}

// ids is a list of token ids; nil where the source has none or null.
type ids []int32

// UnmarshalJSON implements json.Unmarshaler. An id that is no whole number from 0
// to 2^31-1 is an error.
func (l *ids) UnmarshalJSON(data []byte) error {
	var numbers []*json.Number
	if err := json.Unmarshal(data, &numbers); err != nil {
		return &listError{data, "no list of token ids"}
	}
	if numbers == nil {
		return nil
	}
	out := make(ids, len(numbers))
	for i, number := range numbers {
		if number == nil {
			return &listError{data, fmt.Sprintf("token id %d is null", i)}
		}
		id, err := strconv.ParseInt(strings.TrimSuffix(number.String(), ".0"), 10, 32)
		if err != nil || id < 0 {
			return &listError{data, fmt.Sprintf("token id %d is %s", i, *number)}
		}
		out[i] = int32(id)
	}
	*l = out
	return nil
}

// floats is a list of log-probs; null among them is NaN.
type floats []float32

// UnmarshalJSON implements json.Unmarshaler.
func (l *floats) UnmarshalJSON(data []byte) error {
	var numbers []*float64
	if err := json.Unmarshal(data, &numbers); err != nil {
		return &listError{data, "no list of log-probs"}
	}
	if numbers == nil {
		return nil
	}
	out := make(floats, len(numbers))
	for i, x := range numbers {
		out[i] = float32(math.NaN())
		if x != nil {
			out[i] = float32(*x)
		}
	}
	*l = out
	return nil
}

// listError is what is wrong with a list, whose field encoding/json does not tell.
type listError struct {
	raw     []byte
	problem string
}

// Error implements error.
func (e *listError) Error() string { return e.problem }

// locate finds the path of a value in a record by its text; "" if it is not found.
func locate(record, value []byte) string {
	var keys map[string]json.RawMessage
	if json.Unmarshal(record, &keys) == nil {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if bytes.Equal(keys[key], value) {
				return key
			}
			if path := locate(keys[key], value); path != "" {
				return key + "." + path
			}
		}
		return ""
	}
	var list []json.RawMessage
	if len(record) == 0 || record[0] != '[' || json.Unmarshal(record, &list) != nil {
		return ""
	}
	for i, item := range list {
		if len(item) == 0 || item[0] != '{' && item[0] != '[' {
			continue
		}
		if path := locate(item, value); path != "" {
			return fmt.Sprintf("[%d].%s", i, path)
		}
	}
	return ""
}

// label is an identifier that sources write as a string or as a number.
type label string

// UnmarshalJSON implements json.Unmarshaler.
func (l *label) UnmarshalJSON(data []byte) error {
	var s string
	switch err := json.Unmarshal(data, &s); {
	case string(data) == "null":
	case err == nil:
		*l = label(s)
	default:
		*l = label(strings.TrimSpace(string(data)))
	}
	return nil
}

// has says whether all keys are there and not null.
func has(keys map[string]json.RawMessage, names ...string) bool {
	for _, name := range names {
		if raw, ok := keys[name]; !ok || string(raw) == "null" {
			return false
		}
	}
	return true
}

// starts says whether a key's value begins with the byte: a list, an object, a string.
func starts(keys map[string]json.RawMessage, name string, first byte) bool {
	raw := strings.TrimSpace(string(keys[name]))
	return raw != "" && raw[0] == first
}
