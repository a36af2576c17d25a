package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	log, whole := free("y"), free("x")
	log.Log, whole.Whole = true, true
	for name, c := range map[string]struct {
		axis      Axis
		low, high float64
		want      string
	}{
		"unit":      {free("F1").bounded(0, 1), .3, .8, "0.0 0.2 0.4 0.6 0.8 1.0 | 0 1"},
		"free":      {free("y"), 3, 47, "0 10 20 30 40 50 | 0 50"},
		"negative":  {free("y"), -90, 420, "-200 0 200 400 600 | -200 600"},
		"whole":     {whole, 0, 3, "0 1 2 3 | 0 3"},
		"one place": {free("y"), 62, 62, "62 | 55.8 68.2"},
		"log":       {log, 2e-7, 3, "1e-7 1e-5 0.001 0.1 10 | 1e-07 10"},
		"decade":    {log, .3, .4, "0.1 1 | 0.1 1"},
		"thousands": {free("y"), 0, 23000, "0 5000 10\u2009000 15\u2009000 20\u2009000 25\u2009000 | 0 25000"},
		"names":     {Axis{Names: []string{"Q2", "Q8"}}, 0, 1, "Q2 Q8 | -0.5 1.5"},
	} {
		list, from, to := c.axis.ticks(c.low, c.high, 5)
		var got []string
		for _, x := range list {
			got = append(got, x.label)
		}
		if s := fmt.Sprintf("%s | %.6g %.6g", strings.Join(got, " "), from, to); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	list := []label{{end: xy{0, 100}}, {end: xy{0, 101}}, {end: xy{0, 20}}, {end: xy{0, 102}}, {end: xy{0, 238}}, {end: xy{0, 239}}}
	spread(list, 50, 238)
	for i, l := range list {
		if l.y < 50 || l.y > 238 || i > 0 && l.y-list[i-1].y < labelGap-.2 {
			t.Errorf("label %d at %g after %g", i, l.y, list[max(i-1, 0)].y)
		}
	}
}

// relative is a colour's relative luminance by WCAG.
func relative(c color.NRGBA) float64 {
	l := linear(c)
	return .2126*l[0] + .7152*l[1] + .0722*l[2]
}

func linear(c color.NRGBA) [3]float64 {
	var out [3]float64
	for i, v := range []uint8{c.R, c.G, c.B} {
		s := float64(v) / 255
		if out[i] = s / 12.92; s > .04045 {
			out[i] = math.Pow((s+.055)/1.055, 2.4)
		}
	}
	return out
}

// Every ink of text can be read on the card, light and dark.
func TestContrast(t *testing.T) {
	for name, s := range map[string]scheme{"light": light, "dark": dark} {
		if len(s) != len(light) {
			t.Fatalf("%s has %d inks", name, len(s))
		}
		card := relative(s.color(inkCard))
		for _, ink := range s.names() {
			l := relative(s.color(Ink(ink)))
			ratio := (max(l, card) + .05) / (min(l, card) + .05)
			if ratio < 4.5 && Ink(ink) != inkCard && Ink(ink) != inkGrid {
				t.Errorf("%s: %s has a contrast of %.2f", name, ink, ratio)
			}
		}
	}
}

// deficiency are Machado, Oliveira and Fernandes' matrices (2009) at full severity, on
// linear RGB.
var deficiency = map[string][9]float64{
	"full colour":  {1, 0, 0, 0, 1, 0, 0, 0, 1},
	"protanopia":   {.152286, 1.052583, -.204868, .114503, .786281, .099216, -.003882, -.048116, 1.051998},
	"deuteranopia": {.367322, .860646, -.227968, .280085, .672501, .047413, -.011820, .042940, .968881},
	"tritanopia":   {1.255528, -.076749, -.178779, -.078411, .930809, .147602, .004733, .691367, .303900},
}

// lab is a linear RGB colour in CIE L*a*b* (D65).
func lab(l [3]float64) [3]float64 {
	x := (.4124564*l[0] + .3575761*l[1] + .1804375*l[2]) / .95047
	y := .2126729*l[0] + .7151522*l[1] + .0721750*l[2]
	z := (.0193339*l[0] + .1191920*l[1] + .9503041*l[2]) / 1.08883
	f := func(v float64) float64 {
		if v > 216./24389 {
			return math.Cbrt(v)
		}
		return (24389./27*v + 16) / 116
	}
	return [3]float64{116*f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))}
}

// The variants of the paper differ to eyes of any kind, and no two looks are alike but
// for colour.
func TestLooksDiffer(t *testing.T) {
	names := []string{"sft", "ppo", "persistent", "memopd", "teacher"}
	for schemeName, s := range map[string]scheme{"light": light, "dark": dark} {
		for eyes, m := range deficiency {
			seen := func(name string) [3]float64 {
				l := linear(s.color(looks[name].Ink))
				var out [3]float64
				for i := range out {
					out[i] = min(max(m[3*i]*l[0]+m[3*i+1]*l[1]+m[3*i+2]*l[2], 0), 1)
				}
				return lab(out)
			}
			for i, a := range names {
				for _, b := range names[:i] {
					x, y := seen(a), seen(b)
					if d := math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2])); d < 18 {
						t.Errorf("%s, %s: %s and %s are %.1f apart", schemeName, eyes, a, b, d)
					}
				}
			}
		}
	}
	for i, a := range order {
		for _, b := range order[:i] {
			if x, y := looks[a], looks[b]; x.Ink == y.Ink || x.Mark == y.Mark && slices.Equal(x.Dash, y.Dash) {
				t.Errorf("%s and %s look alike: %v, %v", a, b, x, y)
			}
		}
	}
}

// drawing is a figure with every kind of mark in it.
func drawing() Figure {
	y := free("F1 & more").bounded(0, 1)
	f := Figure{Name: "all", Title: "All <marks>", Panels: []Panel{{Title: "A <title> & \"quotes\"", X: free("step"), Y: y, Rules: []Rule{{.5, "half"}}}}}
	for i, name := range order {
		s := Series{Name: name, Look: looks[name], Dots: i%2 == 0, Hollow: i == 2}
		for x := range 4 {
			v := .1 + .1*float64(i) + .02*float64(x)
			s.Points = append(s.Points, Point{X: float64(x), Y: v, Low: v - .03, High: v + .03})
		}
		f.Panels[0].Series = append(f.Panels[0].Series, s)
	}
	return f
}

func TestSVG(t *testing.T) {
	f := drawing()
	svg := string(f.SVG())
	var texts []string
	for d, in := xml.NewDecoder(strings.NewReader(svg)), ""; ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			in = e.Name.Local
		case xml.CharData:
			if s := strings.TrimSpace(string(e)); s != "" && in != "style" {
				texts = append(texts, s)
			}
		}
	}
	for _, want := range append([]string{"All <marks>", `A <title> & "quotes"`, "F1 & more", "half", "step", "memopd, step 2: 0.540 [0.510, 0.570]"}, order...) {
		if !slices.Contains(texts, want) {
			t.Errorf("no text %q", want)
		}
	}
	if !slices.ContainsFunc(texts, func(s string) bool {
		return strings.Contains(s, "memopd: 0.500 [0.470, 0.530] at step 0, 0.560 [0.530, 0.590] at step 3.") && strings.Contains(s, "A line at 0.500: half.")
	}) {
		t.Errorf("the description is not of the data: %q", texts[:3])
	}
	for _, role := range []string{light["c1"], dark["c1"], "prefers-color-scheme:dark"} {
		if !strings.Contains(svg, role) {
			t.Errorf("no %s in the style", role)
		}
	}
}

func TestPNG(t *testing.T) {
	f := drawing()
	for onDark, s := range map[bool]scheme{false: light, true: dark} {
		data, err := f.PNG(onDark)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		width, height := f.size()
		if got := img.Bounds().Size(); got.X != int(2*width) || got.Y != int(2*height) {
			t.Errorf("%v, want twice %g x %g", got, width, height)
		}
		counts := map[color.NRGBA]int{}
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				counts[color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)]++
			}
		}
		for _, ink := range s.names() {
			if counts[s.color(Ink(ink))] < 30 {
				t.Errorf("dark %v: %d pixels of %s", onDark, counts[s.color(Ink(ink))], ink)
			}
		}
		if all := img.Bounds().Dx() * img.Bounds().Dy(); counts[s.color(inkCard)] < all/2 {
			t.Errorf("dark %v: the ground is %d of %d pixels", onDark, counts[s.color(inkCard)], all)
		}
	}
}

func TestWriteFigures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	names, err := WriteFigures(dir, []Figure{drawing(), {Name: "empty", Missing: []Missing{{"all", "bench"}}}})
	if err != nil || !slices.Equal(names, []string{"all.svg", "all.png", "all.dark.png"}) {
		t.Fatal(names, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
}
