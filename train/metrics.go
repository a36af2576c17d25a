package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/train/events"
)

// Metric is one named number.
type Metric struct {
	Name  string
	Value float64
}

// Record is what one step reports: metrics in a fixed order, written as one
// flat JSON object a line. Names are those of veRL and CleanRL where they have
// the quantity; the package documentation lists them.
type Record []Metric

// Set appends a metric, or changes the one of that name.
func (r *Record) Set(name string, value float64) {
	for i := range *r {
		if (*r)[i].Name == name {
			(*r)[i].Value = value
			return
		}
	}
	*r = append(*r, Metric{name, value})
}

// Get returns the value of a name; NaN and false when it is absent.
func (r Record) Get(name string) (float64, bool) {
	for _, m := range r {
		if m.Name == name {
			return m.Value, true
		}
	}
	return math.NaN(), false
}

// MarshalJSON writes a flat object in the record's order. JSON has no NaN and
// no infinities: they are written as null.
func (r Record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			b.WriteString("null")
		} else {
			b.WriteString(strconv.FormatFloat(m.Value, 'g', -1, 64))
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON wrote, order included; null is NaN.
func (r *Record) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("metrics record: not a JSON object")
	}
	*r = nil
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("metrics record: %w", err)
		}
		value, err := d.Token()
		if err != nil {
			return fmt.Errorf("metrics record: %w", err)
		}
		m := Metric{Name: key.(string), Value: math.NaN()}
		switch v := value.(type) {
		case float64:
			m.Value = v
		case nil:
		default:
			return fmt.Errorf("metrics record: %q is not a number", m.Name)
		}
		*r = append(*r, m)
	}
	_, err := d.Token()
	return err
}

// Line renders the named metrics for a terminal, or all without names, those that are absent or NaN
// left out: the name without its group, unless that would be unclear, then the
// value in four significant digits.
func (r Record) Line(names ...string) string {
	if len(names) == 0 {
		for _, m := range r {
			names = append(names, m.Name)
		}
	}
	var b strings.Builder
	for _, name := range names {
		v, ok := r.Get(name)
		if !ok || math.IsNaN(v) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		short := name
		if group, last, ok := strings.Cut(name, "/"); ok && group != "rce" && group != "timing_s" {
			short = last
		}
		fmt.Fprintf(&b, "%s %s", short, strconv.FormatFloat(v, 'g', 4, 64))
	}
	return b.String()
}

// MetricsFile is the file in a run's folder that records are appended to.
const MetricsFile = "metrics.jsonl"

// StepMetric is the metric that every record starts with: the number of steps
// finished.
const StepMetric = "training/global_step"

// appendRecord adds one line to a metrics file.
func appendRecord(path string, r Record) (err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// newEvents is a writer of event files in a run's folder, nil where none are wanted.
// From step on, what earlier files say no longer holds.
func newEvents(wanted bool, dir string, step int) *events.Writer {
	if !wanted {
		return nil
	}
	return events.NewWriter(dir, step)
}

// appendEvents adds a record to the event files, unless w is nil. The step is an
// event's own.
func appendEvents(w *events.Writer, r Record) error {
	if w == nil {
		return nil
	}
	step, _ := r.Get(StepMetric)
	var scalars []events.Scalar
	for _, m := range r {
		if m.Name == StepMetric {
			continue
		}
		for _, tag := range events.TagsOf(m.Name) {
			scalars = append(scalars, events.Scalar{Tag: tag, Value: m.Value})
		}
	}
	return w.Add(int(step), scalars)
}

// ReadRecords reads a metrics file. A missing file has no records. An
// unfinished last line, as a killed process leaves it, is left out.
func ReadRecords(path string) ([]Record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
		data = data[:i+1]
	} else {
		data = nil
	}
	var records []Record
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, 1<<20)
	for line := 1; s.Scan(); line++ {
		var r Record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		records = append(records, r)
	}
	return records, s.Err()
}

// rewindRecords drops the records of steps after the given one, which a run
// that was killed after its last checkpoint leaves behind: they will be made again.
func rewindRecords(path string, step int) ([]Record, error) {
	records, err := ReadRecords(path)
	if err != nil || records == nil {
		return nil, err
	}
	var kept []Record
	var b bytes.Buffer
	for _, r := range records {
		if s, ok := r.Get(StepMetric); !ok || int(s) > step {
			continue
		}
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		b.Write(append(line, '\n'))
		kept = append(kept, r)
	}
	return kept, writeFileAtomic(path, b.Bytes())
}
