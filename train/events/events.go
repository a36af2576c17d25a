// Package events writes a run's scalars as TensorBoard event files and reads them
// back: a TFRecord stream of Event messages, as TensorFlow's event.proto and
// summary.proto lay them out. Neither TensorFlow nor libtorch is needed.
//
// A run that is taken up again writes another file beside the first. It begins
// with a session log START at the step from which on earlier values no longer
// hold; TensorBoard drops those, so no step stands twice.
package events

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Scalar is one value of a step.
type Scalar struct {
	Tag   string
	Value float64 // stored in float32, as TensorBoard does
}

// Writer appends events to one file in a run's folder, which is made with the
// first of them. Each event is one write: what stands there survives the process.
type Writer struct {
	dir   string
	purge int64
	path  string // "" until the file is made

	now func() time.Time
}

// NewWriter writes into dir. Values of earlier files in dir hold for the steps
// before purge alone; 0: they hold no longer.
func NewWriter(dir string, purge int) *Writer {
	return &Writer{dir: dir, purge: int64(purge), now: time.Now}
}

// Add writes the scalars of a step as one event. Values that are not finite are
// left out; nothing is written where none is left.
func (w *Writer) Add(step int, scalars []Scalar) error {
	scalars = slices.DeleteFunc(slices.Clone(scalars), func(s Scalar) bool {
		return math.IsNaN(s.Value) || math.IsInf(s.Value, 0)
	})
	if len(scalars) == 0 {
		return nil
	}
	now := w.now()
	var stream []byte
	if w.path == "" {
		path, err := w.place(now)
		if err != nil {
			return fmt.Errorf("event file: %w", err)
		}
		w.path = path
		stream = appendRecord(stream, versionEvent(now))
		stream = appendRecord(stream, startEvent(now, w.purge))
	}
	stream = appendRecord(stream, summaryEvent(now, int64(step), scalars))
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("event file: %w", err)
	}
	if _, err := f.Write(stream); err != nil {
		return errors.Join(fmt.Errorf("event file: %w", err), f.Close())
	}
	return f.Close()
}

// filePrefix begins an event file's name; TensorBoard looks for it.
const filePrefix = "events.out.tfevents."

// place names a new file as TensorFlow does: seconds, host, process. TensorBoard
// reads a folder's files in the order of their names, so the seconds are later
// than those of any file that is there.
func (w *Writer) place(now time.Time) (string, error) {
	earlier, err := Files(w.dir)
	if err != nil {
		return "", err
	}
	seconds := now.Unix()
	for _, path := range earlier {
		if s, err := secondsOf(path); err == nil {
			seconds = max(seconds, s+1)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	name := fmt.Sprintf("%s%010d.%s.%d", filePrefix, seconds, cmp.Or(host, "localhost"), os.Getpid())
	return filepath.Join(w.dir, name), nil
}

func secondsOf(path string) (int64, error) {
	digits, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), filePrefix), ".")
	return strconv.ParseInt(digits, 10, 64)
}

// Files lists the event files of a folder in the order in which they are read.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filePrefix) && !e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// Field numbers of event.proto and summary.proto.
const (
	eventWallTime   = 1 // double, seconds
	eventStep       = 2 // int64
	eventVersion    = 3 // string
	eventSummary    = 5 // Summary
	eventSessionLog = 7 // SessionLog

	summaryValue = 1 // repeated Value
	valueTag     = 1 // string
	valueSimple  = 2 // float

	sessionStatus = 1 // enum
	sessionStart  = 1 // its value START
)

// fileVersion is what the first event of a file says.
const fileVersion = "brain.Event:2"

func newEvent(at time.Time, step int64) []byte {
	var b []byte
	b = protowire.AppendTag(b, eventWallTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(float64(at.UnixMicro())/1e6))
	if step != 0 { // as proto3 has it
		b = protowire.AppendTag(b, eventStep, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(step))
	}
	return b
}

func versionEvent(at time.Time) []byte {
	b := protowire.AppendTag(newEvent(at, 0), eventVersion, protowire.BytesType)
	return protowire.AppendString(b, fileVersion)
}

func startEvent(at time.Time, step int64) []byte {
	status := protowire.AppendTag(nil, sessionStatus, protowire.VarintType)
	status = protowire.AppendVarint(status, sessionStart)
	b := protowire.AppendTag(newEvent(at, step), eventSessionLog, protowire.BytesType)
	return protowire.AppendBytes(b, status)
}

func summaryEvent(at time.Time, step int64, scalars []Scalar) []byte {
	var summary []byte
	for _, s := range scalars {
		value := protowire.AppendTag(nil, valueTag, protowire.BytesType)
		value = protowire.AppendString(value, s.Tag)
		value = protowire.AppendTag(value, valueSimple, protowire.Fixed32Type)
		value = protowire.AppendFixed32(value, math.Float32bits(float32(s.Value)))
		summary = protowire.AppendTag(summary, summaryValue, protowire.BytesType)
		summary = protowire.AppendBytes(summary, value)
	}
	b := protowire.AppendTag(newEvent(at, step), eventSummary, protowire.BytesType)
	return protowire.AppendBytes(b, summary)
}
