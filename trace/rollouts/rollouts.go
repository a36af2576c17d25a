package rollouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/memopd/memopd-bench/trace"
)

// Format is a layout of recorded rollouts.
type Format struct {
	Name        string
	Description string

	detect func(keys map[string]json.RawMessage) bool
	// read hands out the runs of one record, or why it has none.
	read func(record []byte, yield func(*run, error))
}

// Formats lists the layouts, in the order in which they are tried.
func Formats() []Format {
	return []Format{nemoGym, vllm, nemoRL, verl, primeRL, tinker, mem1}
}

// FormatNames lists the names that [Named] takes.
func FormatNames() []string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}

// Named returns the format of a name.
func Named(name string) (Format, error) {
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, fmt.Errorf("unknown rollout format %q (known: %s)", name, strings.Join(FormatNames(), ", "))
}

// Refused is the error of one record; the others are read on. Lacks is what the
// record would need to be a trajectory, "" where it is malformed.
type Refused struct {
	File   string
	Line   int // where the record begins, from 1
	Field  string
	Lacks  string
	Reason string
}

// Error names file, line, field and reason.
func (r *Refused) Error() string {
	text := fmt.Sprintf("%s:%d: ", r.File, r.Line)
	if r.Field != "" {
		text += r.Field + ": "
	}
	if r.Lacks != "" {
		text += "no " + r.Lacks + ": "
	}
	return text + r.Reason
}

// malformed is the error of a field that cannot be read.
func malformed(field, reason string, args ...any) error {
	return &Refused{Field: field, Reason: fmt.Sprintf(reason, args...)}
}

// lacking is the error of a record without something that cannot be done without.
func lacking(lacks, field, reason string, args ...any) error {
	return &Refused{Field: field, Lacks: lacks, Reason: fmt.Sprintf(reason, args...)}
}

// decode reads a record's JSON; its error names the field.
func decode(record []byte, into any) error {
	err := json.Unmarshal(record, into)
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		return malformed(typ.Field, "a %s where %s belongs", typ.Value, typ.Type)
	}
	var list *listError
	if errors.As(err, &list) {
		return malformed(locate(record, list.raw), "%s", list.problem)
	}
	if err != nil {
		return malformed("", "%v", err)
	}
	return nil
}

// Detect finds the format of a file by its first record.
func Detect(path string) (Format, error) {
	f, err := os.Open(path)
	if err != nil {
		return Format{}, fmt.Errorf("rollouts: %w", err)
	}
	defer f.Close()
	record, _, err := newValues(f).next()
	if err == io.EOF {
		return Format{}, fmt.Errorf("rollouts %s: no records", path)
	}
	if err != nil {
		return Format{}, fmt.Errorf("rollouts %s: %w", path, err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(record, &keys); err != nil {
		return Format{}, fmt.Errorf("rollouts %s: the first record is no JSON object", path)
	}
	for _, format := range Formats() {
		if format.detect(keys) {
			return format, nil
		}
	}
	return Format{}, fmt.Errorf("rollouts %s: the first record is of no known format (known: %s)", path, strings.Join(FormatNames(), ", "))
}

// Read iterates over the trajectories of a file of JSON lines, of one JSON list or
// of one JSON object. Errors that are *[Refused] are of one record; any other
// comes last. One record is in memory at a time.
func (f Format) Read(path string) iter.Seq2[*trace.Trajectory, error] {
	return func(yield func(*trace.Trajectory, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(nil, fmt.Errorf("rollouts: %w", err))
			return
		}
		defer file.Close()
		values := newValues(file)
		for more := true; more; {
			record, line, err := values.next()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("rollouts %s:%d: %w", path, line, err))
				return
			}
			more = f.record(record, path, line, yield)
		}
	}
}

// record hands out the trajectories of one record, and whether to go on.
func (f Format) record(record []byte, path string, line int, yield func(*trace.Trajectory, error) bool) (more bool) {
	more = true
	n := 0
	f.read(record, func(r *run, err error) {
		if !more {
			return
		}
		if err == nil {
			err = r.check()
		}
		if err != nil {
			var refused *Refused
			if errors.As(err, &refused) {
				refused.File, refused.Line = path, line
			}
			more = yield(nil, err)
			return
		}
		r.name(fmt.Sprintf("%s:%d", filepath.Base(path), line), n, f.Name)
		n++
		for _, t := range r.trajectories() {
			if more = yield(t, nil); !more {
				return
			}
		}
	})
	return more
}
