package page

import (
	"fmt"
	"html/template"
)

// matrixSymbol draws the visibility matrix of a view once, with a token as its unit:
// a row a query, a column a key. It is used by its id, as often as it is shown.
func (v *view) matrixSymbol(id string) template.HTML {
	var d drawing
	n := max(v.n, 1)
	step := max(float64(n)/70, .25) // of the patterns
	d.put(`<symbol id="%s" viewBox="%s"><defs>`, id, v.frame())
	d.put(`<pattern id="%s-x" width="%s" height="%[2]s" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="%[2]s" height="%[2]s" class="m-extra"/><rect width="%[3]s" height="%[2]s" class="m-stripe"/></pattern>`,
		id, short(step*2), short(step*.7))
	d.put(`<pattern id="%s-o" width="%s" height="%[2]s" patternUnits="userSpaceOnUse"><rect width="%[2]s" height="%[2]s" class="m-hole"/><circle cx="%[3]s" cy="%[3]s" r="%[4]s" class="m-dot"/></pattern></defs>`,
		id, short(step*2), short(step), short(step*.55))
	d.put(`<rect width="%d" height="%d" class="m-ground"/>`, n, n)
	d.put(`<path d="%s" class="m-right"/>`, areasPath(v.right))
	if len(v.extra) > 0 {
		d.put(`<path d="%s" fill="url(#%s-x)"/>`, areasPath(v.extra), id)
	}
	if len(v.missing) > 0 {
		d.put(`<path d="%s" fill="url(#%s-o)"/>`, areasPath(v.missing), id)
	}
	for _, b := range v.base[min(1, len(v.base)):] {
		d.put(`<path d="M0 %dH%d" class="m-row"/>`, b, n)
	}
	m := v.margin()
	for _, r := range v.kindRuns() {
		d.put(`<path class="ax%d" d="M%d %sH%dV%sH%[2]dzM%[6]s %[2]dV%[4]dH%[5]sV%[2]dz"/>`, r.kind, r.start, short(-m), r.end, short(-m*.35), short(-m))
	}
	d.put(`</symbol>`)
	return d.html()
}

// margin is the room for the kinds of queries and keys beside the matrix, in tokens.
func (v *view) margin() float64 { return float64(max(v.n, 1)) * .04 }

// frame is the matrix with its margin as a viewBox.
func (v *view) frame() string {
	m, n := v.margin(), float64(max(v.n, 1))
	return fmt.Sprintf("%s %[1]s %[2]s %[2]s", short(-m), short(n+m))
}

// kindRun is a run of places of one kind.
type kindRun struct {
	kind       Kind
	start, end int
}

func (v *view) kindRuns() []kindRun {
	var list []kindRun
	for _, s := range v.segments {
		if n := len(list); n > 0 && list[n-1].kind == s.Kind {
			list[n-1].end = s.End
		} else {
			list = append(list, kindRun{s.Kind, s.Start, s.End})
		}
	}
	return list
}

// matrix shows the symbol with its axes' calls and a cursor.
func (v *view) matrix(id, symbol, name string, at cursor) template.HTML {
	var d drawing
	n := max(v.n, 1)
	d.put(`<svg class="matrix" viewBox="%s" data-margin="%s" role="img" aria-labelledby="%s-title %[3]s-desc">`, v.frame(), short(v.margin()), id)
	d.put(`<title id="%s-title">Visibility matrix of layout %s</title>`, id, template.HTMLEscapeString(name))
	d.put(`<desc id="%s-desc">%s</desc>`, id, template.HTMLEscapeString(v.matrixWords()))
	m := v.margin()
	d.put(`<use href="#%s" x="%s" y="%[2]s" width="%[3]s" height="%[3]s"/>`, symbol, short(-m), short(float64(n)+m))
	x := float64(at.place) + .5
	y := x
	if at.predict >= 0 {
		y = float64(at.predict) + .5
	}
	d.put(`<path class="c-line" data-c="matrix" d="%s"/>`, cross(y, x, n))
	d.put(`</svg>`)
	return d.html()
}

// cross marks what the place at y sees, and which places see the one at x.
func cross(y, x float64, n int) string {
	return fmt.Sprintf("M0 %sH%[1]sM%[2]s %[2]sV%[3]d", short(y), short(x), n)
}

// matrixWords is the matrix in a sentence.
func (v *view) matrixWords() string {
	right, extra, missing := pairs(v.right), pairs(v.extra), pairs(v.missing)
	return fmt.Sprintf("%s tokens. Of %s pairs that a query sees, %s are as in the rollout and %s are not; %s that it saw in the rollout are hidden.",
		count(v.n), count(right+extra), count(right), count(extra), count(missing))
}
