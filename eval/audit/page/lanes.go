package page

import (
	"fmt"
	"html/template"
)

const laneHeight = 64

// lanes plots the error of each sampled token, a lane a layout, all over the same
// axis: the sampled tokens in the order of the rollout.
func lanes(t *Trajectory, id string, tolerance float64) template.HTML {
	n := 0
	for _, l := range t.Layouts {
		n = max(n, len(l.Tokens))
	}
	tr := &tracks{v: &view{n: n}, id: id}
	for i, l := range t.Layouts {
		tr.lane(l, i, n, tolerance)
	}
	tr.laneCalls(t)
	var d drawing
	d.put(`<svg class="tracks lanes" width="100%%" height="%d" role="img" aria-labelledby="%s-title %[2]s-desc">`, tr.y+4, id)
	d.put(`<title id="%s-title">Error of each sampled token, by layout</title><desc id="%[1]s-desc">%s</desc>`, id, template.HTMLEscapeString(lanesWords(t, tolerance)))
	d.WriteString(tr.String())
	d.put(`</svg>`)
	return d.html()
}

func (t *tracks) lane(l LayoutView, number, n int, tolerance float64) {
	t.put(`<g class="lane lane%d">`, number)
	t.label(l.Name)
	t.put(`<rect class="plot" x="0" y="%d" width="100%%" height="%d"/>`, t.y, laneHeight)
	t.put(`<line class="tolerance" x1="0" x2="100%%" y1="%s" y2="%[1]s"/>`, short(float64(t.y)+dot(tolerance, laneHeight)))
	var dots, flips drawing
	for i, e := range l.Tokens {
		if i > 0 && e.Call != l.Tokens[i-1].Call {
			t.put(`<line class="boundary" x1="%s" x2="%[1]s" y1="%[2]d" y2="%[3]d"/>`, percent(float64(i), n), t.y, t.y+laneHeight)
		}
		dots.put("M%s %sh.001", short(float64(i)+.5), short(dot(e.Error, laneHeight)))
		if e.Flip {
			flips.put(`<use href="#flip" x="%s" y="%d"/>`, percent(float64(i)+.5, n), t.y+2)
		}
	}
	t.stretched(laneHeight)
	t.put(`<path class="dots" d="%s"/></svg>`, dots.String())
	t.WriteString(flips.String())
	t.put(`</g>`)
	t.y += laneHeight + 6
}

// laneCalls names the calls below the lanes.
func (t *tracks) laneCalls(tr *Trajectory) {
	if len(tr.Layouts) == 0 {
		return
	}
	tokens := tr.Layouts[0].Tokens
	for start := 0; start < len(tokens); {
		end := start
		for end < len(tokens) && tokens[end].Call == tokens[start].Call {
			end++
		}
		if share := float64(end-start) / float64(t.v.n); share > .03 {
			text := fmt.Sprint(tokens[start].Call)
			if share > .16 {
				text = "call " + text
			}
			t.put(`<text class="call" x="%s" y="%d">%s</text>`, percent(float64(start+end)/2, t.v.n), t.y+10, text)
		}
		start = end
	}
	t.y += callsHeight
}

// lanesWords says of each layout how many tokens are beyond the tolerance.
func lanesWords(t *Trajectory, tolerance float64) string {
	words := ""
	for _, l := range t.Layouts {
		beyond, flips, worst := tally(l.Tokens, tolerance)
		words += fmt.Sprintf("%s: %s of %s beyond %s, %s, largest error %s. ", l.Name, count(beyond), plural(len(l.Tokens), "token"), number(tolerance), plural(flips, "flip"), number(worst))
	}
	return words
}

// tally counts the tokens whose error is beyond the tolerance, and the flips.
func tally(tokens []TokenError, tolerance float64) (beyond, flips int, worst float64) {
	for _, e := range tokens {
		if !(e.Error <= tolerance) {
			beyond++
		}
		if e.Flip {
			flips++
		}
		if !(e.Error <= worst) {
			worst = e.Error
		}
	}
	return beyond, flips, worst
}

// spread draws p50, p99 and the largest error of a row on the axis of errors.
func spread(f Figures, tolerance float64) template.HTML {
	var d drawing
	at := func(v float64) string { return short(100*decade(v)) + "%" }
	d.put(`<svg class="spread" width="100%%" height="22" role="img"><title>p50 %s, p99 %s, largest %s; tolerance %s</title>`, number(f.P50), number(f.P99), number(f.Max), number(tolerance))
	for e := lowest; e <= highest; e += 3 {
		d.put(`<line class="grid" x1="%s" x2="%[1]s" y1="0" y2="22"/>`, short(100*(e-lowest)/(highest-lowest))+"%")
	}
	d.put(`<line class="tolerance" x1="%s" x2="%[1]s" y1="0" y2="22"/>`, at(tolerance))
	if f.Tokens > 0 {
		d.put(`<line class="whisker" x1="%s" x2="%s" y1="11" y2="11"/>`, at(f.P50), at(f.Max))
		d.put(`<circle class="p50" cx="%s" cy="11" r="3"/><rect class="p99" x="%s" y="4" width="4" height="14" transform="translate(-2)"/>`, at(f.P50), at(f.P99))
		d.put(`<line class="max" x1="%s" x2="%[1]s" y1="7" y2="15"/>`, at(f.Max))
	}
	d.put(`</svg>`)
	return d.html()
}
