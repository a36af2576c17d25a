package report

import "math"

// Figure is one picture: panels side by side, each with axes of its own.
type Figure struct {
	Name    string // of its files: letters and dashes
	Title   string
	Short   string // in the list of sections
	Caption string // what points, bands and whiskers are
	Panels  []Panel
	Missing []Missing // what would have been drawn too
}

// Missing is evidence that is not there.
type Missing struct {
	What    string // that is lacking
	Command string // that makes it
}

// Panel is one pair of axes.
type Panel struct {
	Title  string
	X, Y   Axis
	Series []Series
	Rules  []Rule
}

// Axis is one axis of a panel.
type Axis struct {
	Label     string
	Log       bool
	Names     []string // of the places 0, 1, ..., in place of numbers
	Whole     bool     // ticks at whole numbers alone
	Low, High float64  // the ends; NaN: by the data
}

// free is an axis whose ends the data give.
func free(label string) Axis { return Axis{Label: label, Low: math.NaN(), High: math.NaN()} }

// Rule is a horizontal line with a label, such as a tolerance.
type Rule struct {
	Y     float64
	Label string
}

// Series is a line, or points.
type Series struct {
	Name   string
	Look   Look
	Points []Point // by X, ascending
	Dots   bool    // a mark at each point
	Hollow bool    // marks are empty inside: not measured by us
	Loose  bool    // points are not joined
	Quiet  bool    // without a name at its end
}

// Point is a value with its interval; Low and High are NaN where there is none.
type Point struct {
	X, Y, Low, High float64
	N               int  // what it is a mean of; 0: none
	Gap             bool // not joined with the point before
}

// at is a point without an interval.
func at(x, y float64) Point { return Point{X: x, Y: y, Low: math.NaN(), High: math.NaN()} }

// banded tells whether the point has an interval.
func (p Point) banded() bool { return !math.IsNaN(p.Low) && !math.IsNaN(p.High) }

// bounded gives the axis fixed ends.
func (a Axis) bounded(low, high float64) Axis {
	a.Low, a.High = low, high
	return a
}
