package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/memopd/memopd-bench/train"
)

// metricsTail follows a metrics file that another process writes.
type metricsTail struct {
	path    string
	records []train.Record // in order; of steps that were done again, the later ones
	bad     string         // the first line that is no record, "" without one
	written time.Time      // when the file was last written; zero: it is not there

	file   os.FileInfo // that records are from
	offset int64       // of the first byte that is not in records
	lines  int
}

// read takes in what has been written since, and says whether that is anything. A
// last line without its end waits for the rest. A missing file has no records; one
// that was put in the place of another, as a resumed run does, is read anew.
func (t *metricsTail) read() (changed bool, err error) {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		changed = t.file != nil
		*t = metricsTail{path: t.path}
		return changed, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if t.file == nil || !os.SameFile(t.file, info) || info.Size() < t.offset {
		changed = t.file != nil
		*t = metricsTail{path: t.path}
	}
	t.file, t.written = info, info.ModTime()
	if _, err := f.Seek(t.offset, io.SeekStart); err != nil {
		return false, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return false, err
	}
	for {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			return changed, nil
		}
		t.offset += int64(len(line)) + 1
		t.lines++
		t.take(line)
		data, changed = rest, true
	}
}

// take adds a line's record, and drops those that it comes in the place of: a step's
// evaluation comes after its training, and before the next step.
func (t *metricsTail) take(line []byte) {
	var r train.Record
	if err := json.Unmarshal(line, &r); err != nil {
		if t.bad == "" {
			t.bad = fmt.Sprintf("%s:%d: %v", t.path, t.lines, err)
		}
		return
	}
	t.records = slices.DeleteFunc(t.records, func(earlier train.Record) bool { return order(earlier) >= order(r) })
	t.records = append(t.records, r)
}

func order(r train.Record) float64 {
	step, ok := r.Get(train.StepMetric)
	if !ok {
		return -1
	}
	if isEvaluation(r) {
		return 2*step + 1
	}
	return 2 * step
}
