package events

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Point is a scalar's value at a step.
type Point struct {
	Step  int64
	Value float64
}

// Read gives the scalars of a run's event files, by tag, as TensorBoard shows
// them: a session log START drops what stands at its step and after it. A last
// record that is unfinished ends its file.
func Read(dir string) (map[string][]Point, error) {
	files, err := Files(dir)
	if err != nil {
		return nil, fmt.Errorf("event files: %w", err)
	}
	series := map[string][]Point{}
	for _, path := range files {
		stream, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("event files: %w", err)
		}
		for n := 1; len(stream) > 0; n++ {
			var payload []byte
			payload, stream, err = cutRecord(stream)
			if errors.Is(err, errUnfinished) {
				break
			}
			if err == nil {
				err = readEvent(payload, series)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: record %d: %w", path, n, err)
			}
		}
	}
	return series, nil
}

// readEvent adds an event to the series, or drops what it says.
func readEvent(event []byte, series map[string][]Point) error {
	var step int64
	var summary, session []byte
	err := eachField(event, func(number protowire.Number, value []byte, plain uint64) {
		switch number {
		case eventStep:
			step = int64(plain)
		case eventSummary:
			summary = value
		case eventSessionLog:
			session = value
		}
	})
	if err != nil {
		return err
	}
	start := false
	if err := eachField(session, func(number protowire.Number, _ []byte, plain uint64) {
		start = start || number == sessionStatus && plain == sessionStart
	}); err != nil {
		return err
	}
	if start {
		for tag, points := range series {
			series[tag] = slices.DeleteFunc(points, func(p Point) bool { return p.Step >= step })
		}
	}
	var values [][]byte
	if err := eachField(summary, func(number protowire.Number, value []byte, _ uint64) {
		if number == summaryValue {
			values = append(values, value)
		}
	}); err != nil {
		return err
	}
	for _, value := range values {
		tag, simple := "", math.NaN()
		if err := eachField(value, func(number protowire.Number, text []byte, plain uint64) {
			switch number {
			case valueTag:
				tag = string(text)
			case valueSimple:
				simple = float64(math.Float32frombits(uint32(plain)))
			}
		}); err != nil {
			return err
		}
		if !math.IsNaN(simple) {
			series[tag] = append(series[tag], Point{step, simple})
		}
	}
	return nil
}

// eachField hands out a message's fields: the bytes of those that have a length,
// the number of the others.
func eachField(message []byte, f func(number protowire.Number, value []byte, plain uint64)) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		var value []byte
		var plain uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			plain, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			plain, n = protowire.ConsumeFixed64(message)
		case protowire.Fixed32Type:
			var short uint32
			short, n = protowire.ConsumeFixed32(message)
			plain = uint64(short)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		f(number, value, plain)
		message = message[n:]
	}
	return nil
}
