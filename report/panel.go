package report

import "math"

// The size of a panel in units of the picture, which are about pixels. Wide ones are
// for two side by side.
const (
	narrowPanel = 400.
	widePanel   = 580.
	panelHeight = 280.
)

// xy is a place in the picture, y downwards.
type xy struct{ x, y float64 }

// pen draws on a picture. Its two kinds are SVG and PNG.
type pen interface {
	line(points []xy, ink Ink, width float64, dash []float64)
	area(points []xy, ink Ink, opacity float64)
	// mark draws a point's shape around a place; says is its tooltip.
	mark(at xy, shape Mark, ink Ink, hollow bool, says string)
	// text writes from at on, or up to it (anchor 1), or around it (anchor .5).
	text(at xy, s string, anchor, size float64, bold bool, ink Ink)
}

// drawn is a panel under way.
type drawn struct {
	*Panel
	pen            pen
	width          float64
	x, y           scale
	xTicks, yTicks []tick
	labels         []label
}

const (
	tickSize  = 11.5
	labelSize = 12.
	titleSize = 13.5
	spare     = 1.13 // of a label's width, where another font stands in
	plotTop   = 46.
	plotFoot  = panelHeight - 40
)

// draw draws the panel so wide, with its upper left corner at the pen's origin.
func (p *Panel) draw(to pen, width float64) {
	d := &drawn{Panel: p, pen: to, width: width}
	d.scales()
	to.text(xy{0, 14}, p.Title, 0, titleSize, true, inkText)
	to.text(xy{0, 32}, p.Y.Label, 0, tickSize, false, inkMuted)
	d.axes()
	for _, s := range p.Series {
		d.band(s)
	}
	for _, s := range p.Series {
		d.series(s)
	}
	d.ends()
}

// scales chooses ends and ticks, and leaves room for the labels on both sides.
func (d *drawn) scales() {
	var xs, ys []float64
	for _, s := range d.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y, p.Low, p.High)
		}
	}
	for _, r := range d.Rules {
		ys = append(ys, r.Y)
	}
	xLow, xHigh := span(xs, d.X.Log)
	yLow, yHigh := span(ys, d.Y.Log)
	left, right := 0., 0.
	d.yTicks, d.y.low, d.y.high = d.Y.ticks(yLow, yHigh, 5)
	for _, t := range d.yTicks {
		left = max(left, textWidth(t.label, tickSize, false))
	}
	for _, s := range d.Series {
		if !s.Quiet {
			right = max(right, spare*textWidth(shortened(s.Name), labelSize, true))
		}
	}
	d.y.log, d.y.from, d.y.to = d.Y.Log, plotFoot, plotTop
	d.xTicks, d.x.low, d.x.high = d.X.ticks(xLow, xHigh, 5)
	if d.X.Names == nil && !d.X.Log && math.IsNaN(d.X.High) && xHigh > xLow && d.x.high-xHigh > .03*(xHigh-xLow) {
		d.x.high = xHigh // no empty stretch before the labels
	}
	d.x.log, d.x.from, d.x.to = d.X.Log, left+10, d.width-right-22
}

// axes draws grid, ticks, rules and the name of the x axis.
func (d *drawn) axes() {
	for _, t := range d.yTicks {
		y := d.y.of(t.value)
		d.pen.line([]xy{{d.x.from, y}, {d.x.to, y}}, inkGrid, 1, nil)
		d.pen.text(xy{d.x.from - 7, y + 4}, t.label, 1, tickSize, false, inkMuted)
	}
	for _, t := range d.xTicks {
		if t.value > d.x.high+1e-9 {
			continue
		}
		x := d.x.of(t.value)
		d.pen.line([]xy{{x, plotFoot}, {x, plotFoot + 4}}, inkMuted, 1, nil)
		d.pen.text(xy{x, plotFoot + 17}, t.label, .5, tickSize, false, inkMuted)
	}
	d.pen.line([]xy{{d.x.from, plotFoot}, {d.x.to, plotFoot}}, inkMuted, 1, nil)
	d.pen.text(xy{(d.x.from + d.x.to) / 2, plotFoot + 34}, d.X.Label, .5, tickSize, false, inkMuted)
	for _, r := range d.Rules {
		y := d.y.of(r.Y)
		d.pen.line([]xy{{d.x.from, y}, {d.x.to, y}}, inkText, 1, []float64{2, 2})
		d.pen.text(xy{d.x.from + 4, y - 5}, r.Label, 0, 11, false, inkText)
	}
}

// place is where a value pair stands.
func (d *drawn) place(x, y float64) xy { return xy{d.x.of(x), d.y.of(y)} }

// band draws the intervals of a line as an area.
func (d *drawn) band(s Series) {
	if s.Dots || s.Loose {
		return // whiskers
	}
	var upper, lower []xy
	for _, p := range s.Points {
		if p.banded() {
			upper, lower = append(upper, d.place(p.X, p.High)), append(lower, d.place(p.X, p.Low))
		}
	}
	if len(upper) < 2 {
		return
	}
	for i := len(lower) - 1; i >= 0; i-- {
		upper = append(upper, lower[i])
	}
	d.pen.area(upper, s.Look.Ink, .16)
}

// series draws a line with its marks and whiskers, and notes its label.
func (d *drawn) series(s Series) {
	var run []xy
	flush := func() {
		if len(run) > 1 && !s.Loose {
			d.pen.line(run, s.Look.Ink, 2, s.Look.Dash)
		}
		run = nil
	}
	for _, p := range s.Points {
		if p.Gap {
			flush()
		}
		run = append(run, d.place(p.X, p.Y))
	}
	flush()
	for _, p := range s.Points {
		at := d.place(p.X, p.Y)
		if (s.Dots || s.Loose) && p.banded() {
			d.pen.line([]xy{d.place(p.X, p.Low), d.place(p.X, p.High)}, s.Look.Ink, 1.5, nil)
		}
		if s.Dots || len(s.Points) == 1 {
			d.pen.mark(at, s.Look.Mark, s.Look.Ink, s.Hollow, s.says(p, d.X))
		}
	}
	if n := len(s.Points); n > 0 && !s.Quiet {
		at := d.place(s.Points[n-1].X, s.Points[n-1].Y)
		d.labels = append(d.labels, label{s.Name, s.Look, s.Hollow, at, at.y})
	}
}

// says is a point in words.
func (s Series) says(p Point, x Axis) string {
	return s.Name + ", " + x.name(p.X) + ": " + p.String()
}
