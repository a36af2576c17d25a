package report

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

// The distances of a figure's panels in its files.
const (
	figureMargin = 20.
	figureGap    = 30.
	figureHead   = 34.
)

// columns is how many panels stand side by side.
func (f *Figure) columns() int {
	switch n := len(f.Panels); n {
	case 0, 1:
		return 1
	case 2, 4:
		return 2
	}
	return 3
}

// panelWidth is the panels' in files.
func (f *Figure) panelWidth() float64 {
	if f.columns() < 3 {
		return widePanel
	}
	return narrowPanel
}

// size is the figure's in units.
func (f *Figure) size() (width, height float64) {
	columns := f.columns()
	rows := (len(f.Panels) + columns - 1) / columns
	width = 2*figureMargin + float64(columns)*f.panelWidth() + float64(columns-1)*figureGap
	return width, figureMargin + figureHead + float64(rows)*(panelHeight+figureGap) - figureGap + figureMargin
}

// draw draws all panels; place moves the pen's origin.
func (f *Figure) draw(to pen, place func(xy)) {
	place(xy{figureMargin, figureMargin})
	to.text(xy{0, 14}, f.Title, 0, 16, true, inkText)
	for i := range f.Panels {
		column, row := float64(i%f.columns()), float64(i/f.columns())
		place(xy{figureMargin + column*(f.panelWidth()+figureGap), figureMargin + figureHead + row*(panelHeight+figureGap)})
		f.Panels[i].draw(to, f.panelWidth())
	}
}

// SVG is the figure as a file, which follows its viewer's light or dark.
func (f *Figure) SVG() []byte {
	var pen svgPen
	f.draw(&pen, func(at xy) { pen.origin = at })
	width, height := f.size()
	var words []string
	for i := range f.Panels {
		words = append(words, f.Panels[i].Title+": "+f.Panels[i].words())
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %[1]g %[2]g" role="img" aria-labelledby="t d" font-family="%[3]s">
<title id="t">%[4]s</title><desc id="d">%[5]s</desc>
<style>%[6]s</style>
<rect width="%[1]g" height="%[2]g" class="f-card"/>
%[7]s
</svg>
`, width, height, fontFamily, html.EscapeString(f.Title), html.EscapeString(strings.Join(words, " ")), drawingCSS(), pen.String())
}

// PNG is the figure as pixels, on the card of light or dark.
func (f *Figure) PNG(onDark bool) ([]byte, error) {
	colors := light
	if onDark {
		colors = dark
	}
	width, height := f.size()
	pen := newPNG(width, height, colors)
	f.draw(pen, func(at xy) { pen.origin = at })
	return pen.bytes()
}

// WriteFigures writes NAME.svg, NAME.png and NAME.dark.png of each figure that has
// panels, and returns their names.
func WriteFigures(dir string, figures []Figure) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var names []string
	for i := range figures {
		f := &figures[i]
		if len(f.Panels) == 0 {
			continue
		}
		onLight, err1 := f.PNG(false)
		onDark, err2 := f.PNG(true)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("figure %s: %w", f.Name, err)
		}
		for _, file := range []struct {
			suffix string
			data   []byte
		}{{".svg", f.SVG()}, {".png", onLight}, {".dark.png", onDark}} {
			if err := results.WriteFile(filepath.Join(dir, f.Name+file.suffix), file.data); err != nil {
				return nil, err
			}
			names = append(names, f.Name+file.suffix)
		}
	}
	return names, nil
}
