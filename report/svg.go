package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// svgPen draws SVG elements. Colours are classes, so that a page's or a file's
// rules decide on light and dark.
type svgPen struct {
	strings.Builder
	origin xy
}

// num writes a coordinate with one decimal.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func (p *svgPen) path(points []xy) string {
	var b strings.Builder
	for i, at := range points {
		b.WriteString(map[bool]string{true: "M", false: "L"}[i == 0])
		b.WriteString(num(at.x+p.origin.x) + " " + num(at.y+p.origin.y))
	}
	return b.String()
}

func (p *svgPen) line(points []xy, ink Ink, width float64, dash []float64) {
	fmt.Fprintf(p, `<path d="%s" fill="none" class="s-%s" stroke-width="%s" stroke-linejoin="round"`, p.path(points), ink, strconv.FormatFloat(width, 'f', -1, 64))
	if dash != nil {
		var parts []string
		for _, d := range dash {
			parts = append(parts, num(d))
		}
		fmt.Fprintf(p, ` stroke-dasharray="%s"`, strings.Join(parts, " "))
	}
	p.WriteString("/>")
}

func (p *svgPen) area(points []xy, ink Ink, opacity float64) {
	fmt.Fprintf(p, `<path d="%sz" class="f-%s" fill-opacity="%g"/>`, p.path(points), ink, opacity)
}

func (p *svgPen) mark(at xy, shape Mark, ink Ink, hollow bool, says string) {
	class := fmt.Sprintf("f-%s s-card", ink)
	if hollow {
		class = fmt.Sprintf("f-card s-%s", ink)
	}
	fmt.Fprintf(p, `<path d="%sz" class="%s" stroke-width="1.5"><title>%s</title></path>`, p.path(outline(at, shape)), class, html.EscapeString(says))
}

func (p *svgPen) text(at xy, s string, anchor, size float64, bold bool, ink Ink) {
	fmt.Fprintf(p, `<text x="%s" y="%s" font-size="%s" class="f-%s"`, num(at.x+p.origin.x), num(at.y+p.origin.y), num(size), ink)
	if anchor > 0 {
		fmt.Fprintf(p, ` text-anchor="%s"`, map[bool]string{true: "middle", false: "end"}[anchor < 1])
	}
	if bold {
		p.WriteString(` font-weight="600"`)
	}
	fmt.Fprintf(p, ">%s</text>", html.EscapeString(s))
}

// outline is a mark's shape around a place.
func outline(at xy, shape Mark) []xy {
	corners := func(n int, r, turn float64) (list []xy) {
		for i := range n {
			a := 2*math.Pi*float64(i)/float64(n) + turn
			list = append(list, xy{at.x + r*math.Cos(a), at.y + r*math.Sin(a)})
		}
		return list
	}
	switch shape {
	case markSquare:
		return corners(4, 5.4, math.Pi/4)
	case markDiamond:
		return corners(4, 5.4, 0)
	case markUp:
		return corners(3, 5.6, -math.Pi/2)
	case markDown:
		return corners(3, 5.6, math.Pi/2)
	case markCross:
		r, w := 5., 1.8
		return []xy{{at.x - w, at.y - r}, {at.x + w, at.y - r}, {at.x + w, at.y - w}, {at.x + r, at.y - w}, {at.x + r, at.y + w}, {at.x + w, at.y + w},
			{at.x + w, at.y + r}, {at.x - w, at.y + r}, {at.x - w, at.y + w}, {at.x - r, at.y + w}, {at.x - r, at.y - w}, {at.x - w, at.y - w}}
	}
	return corners(20, 4.4, 0)
}

// fontFamily are fonts of the widths that labels were placed by.
const fontFamily = `Arial, 'Liberation Sans', Arimo, Helvetica, sans-serif`

// svg is the panel as an element of a page; id makes its names unique there.
func (p *Panel) svg(id string, width float64) string {
	var pen svgPen
	p.draw(&pen, width)
	return fmt.Sprintf(`<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %[3]s-d" class="plot" font-family="%s"><title id="%[3]s-t">%[5]s</title><desc id="%[3]s-d">%[6]s</desc>%[7]s</svg>`,
		width, panelHeight, id, fontFamily, html.EscapeString(p.Title), html.EscapeString(p.words()), pen.String())
}

// words describes the panel.
func (p *Panel) words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s over %s.", p.Y.Label, p.X.Label)
	for _, s := range p.Series {
		n := len(s.Points)
		if n == 0 {
			continue
		}
		first, last := s.Points[0], s.Points[n-1]
		fmt.Fprintf(&b, " %s: %s at %s", s.Name, first, p.X.name(first.X))
		if n > 1 {
			fmt.Fprintf(&b, ", %s at %s", last, p.X.name(last.X))
		}
		b.WriteString(".")
	}
	for _, r := range p.Rules {
		fmt.Fprintf(&b, " A line at %s: %s.", figure3(r.Y), r.Label)
	}
	return b.String()
}
