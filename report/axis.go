package report

import (
	"math"
	"strconv"
	"strings"
)

// scale maps values to a stretch of the picture.
type scale struct {
	log       bool
	low, high float64 // values
	from, to  float64 // units of the picture
}

// of is where a value stands, within the stretch whatever it is.
func (s scale) of(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log10(max(v, s.low)), math.Log10(low), math.Log10(high)
	}
	part := min(max((v-low)/(high-low), 0), 1)
	return s.from + part*(s.to-s.from)
}

// tick is a value with its label.
type tick struct {
	value float64
	label string
}

// ticks chooses some n ticks on an axis, and the ends that they suggest for data
// between low and high.
func (a Axis) ticks(low, high float64, n int) (list []tick, from, to float64) {
	switch {
	case a.Names != nil:
		for i, name := range a.Names {
			list = append(list, tick{float64(i), name})
		}
		return list, -.5, float64(len(a.Names)) - .5
	case a.Log:
		return a.decades(low, high, n)
	}
	if !math.IsNaN(a.Low) {
		low = a.Low
	}
	if !math.IsNaN(a.High) {
		high = a.High
	}
	if high <= low { // one place: a tick there, and room on both sides
		room := max(math.Abs(low)*.1, 1)
		return []tick{{low, tickLabel(low, low)}}, low - room, low + room
	}
	step := niceStep((high-low)/float64(n), a.Whole)
	from, to = math.Floor(low/step+1e-9)*step, math.Ceil(high/step-1e-9)*step
	if !math.IsNaN(a.Low) {
		from = a.Low
	}
	if !math.IsNaN(a.High) {
		to = a.High
	}
	for k := math.Ceil(from/step - 1e-9); k*step <= to+step*1e-9; k++ {
		list = append(list, tick{k * step, tickLabel(k*step, step)})
	}
	return list, from, to
}

// decades are ticks at powers of ten.
func (a Axis) decades(low, high float64, n int) (list []tick, from, to float64) {
	first, last := int(math.Floor(math.Log10(low)+1e-9)), int(math.Ceil(math.Log10(high)-1e-9))
	if last <= first {
		last = first + 1
	}
	every := (last - first + n) / n
	for e := first; e <= last; e++ {
		if (e-first)%every == 0 {
			list = append(list, tick{math.Pow(10, float64(e)), power(e)})
		}
	}
	return list, math.Pow(10, float64(first)), math.Pow(10, float64(last))
}

// power writes a power of ten.
func power(e int) string {
	if e >= -3 && e <= 4 {
		return strconv.FormatFloat(math.Pow(10, float64(e)), 'f', -1, 64)
	}
	return "1e" + strconv.Itoa(e)
}

// niceStep is 1, 2, 2.5 or 5 times a power of ten, at least the size asked for.
func niceStep(least float64, whole bool) float64 {
	if whole && least <= 1 {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if step := m * base; step >= least*(1-1e-9) && (!whole || step == math.Trunc(step)) {
			return step
		}
	}
	return 10 * base
}

// tickLabel writes a tick with the decimals that its step needs.
func tickLabel(v, step float64) string {
	decimals := 0
	for s := step; decimals < 6 && math.Abs(s-math.Round(s)) > 1e-9; s *= 10 {
		decimals++
	}
	if v == 0 {
		v = 0 // no minus
	}
	return thousands(strconv.FormatFloat(v, 'f', decimals, 64))
}

// thousands puts a thin gap between a number's thousands.
func thousands(s string) string {
	whole, rest, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-' && len(whole) > 4; i -= 3 {
		whole = whole[:i] + "\u2009" + whole[i:]
	}
	if rest != "" {
		return whole + "." + rest
	}
	return whole
}

// span is the ends of an axis's data: its series, bands, rules.
func span(values []float64, log bool) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0 {
			continue
		}
		low, high = min(low, v), max(high, v)
	}
	if low > high {
		return 1e-1, 1
	}
	return low, high
}
