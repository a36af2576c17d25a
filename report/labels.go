package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// label is a series's name at the end of its line.
type label struct {
	text   string
	look   Look
	hollow bool
	end    xy
	y      float64 // where it is written
}

// labelGap is the least distance of two labels.
const labelGap = 15.

// ends writes the names beside the lines' ends, apart from each other, with a thin
// line to the end where they had to move.
func (d *drawn) ends() {
	spread(d.labels, plotTop+4, plotFoot-2)
	for _, l := range d.labels {
		x := d.x.to + 16
		d.pen.line([]xy{{min(l.end.x+6, d.x.to), l.end.y}, {d.x.to + 5, l.end.y}, {x - 3, l.y}}, l.look.Ink, .75, nil)
		d.pen.text(xy{x, l.y + 4}, shortened(l.text), 0, labelSize, true, l.look.Ink)
	}
}

// shortened cuts a long name, which stands in full in the table.
func shortened(name string) string {
	if r := []rune(name); len(r) > 20 {
		return string(r[:19]) + "…"
	}
	return name
}

// spread moves labels apart, as little as it can, between two heights.
func spread(list []label, top, foot float64) {
	slices.SortStableFunc(list, func(a, b label) int {
		switch {
		case a.end.y < b.end.y:
			return -1
		case a.end.y > b.end.y:
			return 1
		}
		return 0
	})
	gap := labelGap
	if n := float64(len(list) - 1); n > 0 {
		gap = min(gap, (foot-top)/n)
	}
	for i := range list {
		list[i].y = min(max(list[i].end.y, top), foot)
	}
	for range 100 {
		moved := false
		for i := 1; i < len(list); i++ {
			if short := gap - (list[i].y - list[i-1].y); short > 1e-3 {
				list[i-1].y -= short / 2
				list[i].y += short / 2
				moved = true
			}
		}
		if n := len(list); n > 0 {
			list[0].y = max(list[0].y, top)
			list[n-1].y = min(list[n-1].y, foot)
		}
		if !moved {
			return
		}
	}
}

// String is a value with its interval.
func (p Point) String() string {
	s := figure3(p.Y)
	if p.banded() {
		s += " [" + figure3(p.Low) + ", " + figure3(p.High) + "]"
	}
	return s
}

// place is a place on the axis, by its name if it has one.
func (a Axis) place(v float64) string {
	if i := int(math.Round(v)); a.Names != nil {
		return a.Names[min(max(i, 0), len(a.Names)-1)]
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// name is a place in words.
func (a Axis) name(v float64) string {
	if a.Names != nil {
		return a.place(v)
	}
	return a.Label + " " + a.place(v)
}

// sortPlaces sorts what place gave by the axis.
func (a Axis) sortPlaces(places []string) []string {
	slices.SortStableFunc(places, func(x, y string) int {
		if a.Names != nil {
			return slices.Index(a.Names, x) - slices.Index(a.Names, y)
		}
		v, _ := strconv.ParseFloat(x, 64)
		w, _ := strconv.ParseFloat(y, 64)
		return cmp.Compare(v, w)
	})
	return places
}

// figure3 writes a value with three significant digits, whole numbers in full.
func figure3(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return "∞"
	case v != 0 && math.Abs(v) < 1e-3:
		return strconv.FormatFloat(v, 'e', 1, 64)
	case math.Abs(v) >= 100:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
