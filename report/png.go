package report

import (
	"bytes"
	"fmt"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// faces are the fonts of pictures, which SVG's system fonts are near in width.
var faces = sync.OnceValue(func() *font.Cache {
	var list font.Collection
	for _, f := range []struct {
		weight stdfont.Weight
		data   []byte
	}{{stdfont.WeightNormal, liberationsansregular.TTF}, {stdfont.WeightBold, liberationsansbold.TTF}} {
		parsed, err := opentype.Parse(f.data)
		if err != nil {
			panic(fmt.Sprintf("an embedded font: %v", err)) // a fault of this program
		}
		list = append(list, font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: f.weight}, Face: parsed})
	}
	return font.NewCache(list)
})

// face is a font of a size in units of the picture.
func face(size float64, bold bool) font.Face {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if bold {
		f.Weight = stdfont.WeightBold
	}
	return faces().Lookup(f, font.Length(size))
}

// textWidth is a text's width in units of the picture.
func textWidth(s string, size float64, bold bool) float64 {
	f := face(size, bold)
	return float64(f.Width(s))
}

// pngScale is pixels a unit of the picture.
const pngScale = 2

// pngPen draws pixels by gonum's plot.
type pngPen struct {
	*vgimg.Canvas
	colors scheme
	height float64
	origin xy
}

// newPNG is an empty picture of a size in units.
func newPNG(width, height float64, colors scheme) *pngPen {
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(width), vg.Length(height)), vgimg.UseDPI(72*pngScale), vgimg.UseBackgroundColor(colors.color(inkCard)))
	return &pngPen{Canvas: c, colors: colors, height: height}
}

func (p *pngPen) bytes() ([]byte, error) {
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: p.Canvas}.WriteTo(&b)
	return b.Bytes(), err
}

// point turns a place into gonum's, whose y goes upwards.
func (p *pngPen) point(at xy) vg.Point {
	return vg.Point{X: vg.Length(at.x + p.origin.x), Y: vg.Length(p.height - at.y - p.origin.y)}
}

func (p *pngPen) path(points []xy, closed bool) vg.Path {
	var path vg.Path
	for i, at := range points {
		if i == 0 {
			path.Move(p.point(at))
			continue
		}
		path.Line(p.point(at))
	}
	if closed {
		path.Close()
	}
	return path
}

func (p *pngPen) stroke(path vg.Path, ink Ink, width float64, dash []float64) {
	p.SetColor(p.colors.color(ink))
	p.SetLineWidth(vg.Length(width))
	var lengths []vg.Length
	for _, d := range dash {
		lengths = append(lengths, vg.Length(d))
	}
	p.SetLineDash(lengths, 0)
	p.Stroke(path)
}

func (p *pngPen) line(points []xy, ink Ink, width float64, dash []float64) {
	p.stroke(p.path(points, false), ink, width, dash)
}

func (p *pngPen) area(points []xy, ink Ink, opacity float64) {
	c := p.colors.color(ink)
	c.A = uint8(255 * opacity)
	p.SetColor(c)
	p.Fill(p.path(points, true))
}

func (p *pngPen) mark(at xy, shape Mark, ink Ink, hollow bool, _ string) {
	fill, rim := ink, inkCard
	if hollow {
		fill, rim = inkCard, ink
	}
	path := p.path(outline(at, shape), true)
	p.SetColor(p.colors.color(fill))
	p.Fill(path)
	p.stroke(path, rim, 1.5, nil)
}

func (p *pngPen) text(at xy, s string, anchor, size float64, bold bool, ink Ink) {
	p.SetColor(p.colors.color(ink))
	at.x -= anchor * textWidth(s, size, bold)
	p.FillString(face(size, bold), p.point(at), s)
}
