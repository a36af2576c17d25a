package main

import (
	"math"
	"strings"
)

// bars are the heights of a sparkline.
var bars = []rune("▁▂▃▄▅▆▇█")

// sparkline draws values, oldest first, as at most width bars between their least and
// their greatest. Of more values each bar is the mean of a part; one that has none
// that is finite is blank.
func sparkline(values []float64, width int) string {
	values = condense(values, width)
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finiteNumber(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case !finiteNumber(v):
			b.WriteByte(' ')
		case high == low:
			b.WriteRune(bars[len(bars)/2-1]) // level, in the middle
		default:
			part := (v/2 - low/2) / (high/2 - low/2) // halves, as a difference could overflow
			b.WriteRune(bars[int(part*float64(len(bars)-1)+0.5)])
		}
	}
	return b.String()
}

// condense makes at most n values of a list: means of parts of nearly equal length.
func condense(values []float64, n int) []float64 {
	if len(values) <= n || n < 1 {
		return values[:min(len(values), max(n, 0))]
	}
	out := make([]float64, n)
	for i := range out {
		sum, count := 0.0, 0
		for _, v := range values[i*len(values)/n : (i+1)*len(values)/n] {
			if finiteNumber(v) {
				sum, count = sum+v, count+1
			}
		}
		out[i] = sum / float64(count) // NaN of none
	}
	return out
}

func finiteNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
