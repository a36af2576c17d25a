package page

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// drawing is SVG text under way. Numbers are its only unescaped arguments.
type drawing struct{ strings.Builder }

// put writes markup with numbers and names of classes in it.
func (d *drawing) put(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// title is the tooltip and the accessible name of the element that it stands in.
func (d *drawing) title(text string) { d.put("<title>%s</title>", html.EscapeString(text)) }

// html is what was drawn.
func (d *drawing) html() template.HTML { return template.HTML(d.String()) }

// short writes a number with at most three decimals.
func short(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// percent is the share of n in words of SVG.
func percent(v float64, n int) string { return short(100*v/float64(max(n, 1))) + "%" }

// The logarithmic axis of errors, in decades; what lies outside stands at its end.
const (
	lowest  = -8.
	highest = 2.
)

// decade is where an error stands on the axis, 0 at its lower end, 1 at its upper.
func decade(v float64) float64 {
	switch {
	case math.IsInf(v, 1):
		return 1
	case !(v > 0):
		return 0
	}
	return min(max((math.Log10(v)-lowest)/(highest-lowest), 0), 1)
}

// areasPath draws areas as one path with a token as its unit. The edge of a triangle runs half a
// token beside the diagonal, so that it covers the middle of each pair of its own
// and of no other.
func areasPath(areas []Area) string {
	var b strings.Builder
	for _, a := range merged(areas) {
		if a.Triangle {
			fmt.Fprintf(&b, "M%d %dh.5L%d %sV%dH%dz", a.K0, a.Q0, a.K1, short(float64(a.Q1)-.5), a.Q1, a.K0)
			continue
		}
		fmt.Fprintf(&b, "M%d %dH%dV%dH%dz", a.K0, a.Q0, a.K1, a.Q1, a.K0)
	}
	return b.String()
}

// merged joins rectangles that lie one upon the other.
func merged(areas []Area) []Area {
	var list []Area
	open := map[[3]int]int{} // columns and next row -> place in list
	for _, a := range areas {
		if i, ok := open[[3]int{a.K0, a.K1, a.Q0}]; ok && !a.Triangle {
			delete(open, [3]int{a.K0, a.K1, a.Q0})
			list[i].Q1 = a.Q1
			open[[3]int{a.K0, a.K1, a.Q1}] = i
			continue
		}
		if !a.Triangle {
			open[[3]int{a.K0, a.K1, a.Q1}] = len(list)
		}
		list = append(list, a)
	}
	return list
}

// number shows an error or another small figure; "–" where it was not measured.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return "∞"
	case v == 0:
		return "0"
	case v >= 1e-2 && v < 1e4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 1, 64), "e")
	n, _ := strconv.Atoi(exponent)
	return mantissa + "e" + strconv.Itoa(n)
}

// count writes an integer with thousands apart.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
