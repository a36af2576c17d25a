package page

import (
	"fmt"
	"html/template"
	"math"

	"github.com/memopd/memopd-bench/align"
)

// The tracks of a layout's picture from top to bottom, in pixels. All share the
// horizontal axis, which is the place in the sequence.
const (
	labelHeight    = 16
	copiesHeight   = 46
	tokensHeight   = 28
	callsHeight    = 18
	jumpsHeight    = 18
	positionHeight = 72
	maskHeight     = 10
	errorHeight    = 96
	trackGap       = 10
)

// tracks is a picture of a layout under way; y is where the next track begins.
type tracks struct {
	drawing
	v  *view
	id string // prefix of ids
	y  int
}

// layout draws the layout along the sequence: copies joined to their originals, the
// tokens, calls, positions, masks and errors.
func (v *view) layout(id, name string, errors map[[2]int]TokenError, tolerance float64, at cursor) template.HTML {
	t := &tracks{v: v, id: id}
	t.copies()
	t.tokens()
	t.calls()
	t.jumps()
	t.positions()
	t.masks()
	t.errors(errors, tolerance)
	t.cursor(at)
	var d drawing
	d.put(`<svg class="tracks" width="100%%" height="%d" role="img" aria-labelledby="%s-title %[2]s-desc" data-n="%[3]d">`, t.y, id, v.n)
	d.put(`<title id="%s-title">Layout %s along the sequence</title>`, id, template.HTMLEscapeString(name))
	d.put(`<desc id="%s-desc">%s</desc>`, id, template.HTMLEscapeString(v.layoutWords()))
	d.WriteString(t.String())
	d.put(`</svg>`)
	return d.html()
}

// label heads a track.
func (t *tracks) label(text string) {
	t.put(`<text class="label" x="0" y="%d">%s</text>`, t.y+11, template.HTMLEscapeString(text))
	t.y += labelHeight
}

// bar is a rectangle over the places [start, end).
func (t *tracks) bar(class string, start, end, height int, title string) {
	t.put(`<rect class="%s" x="%s" y="%d" width="%s" height="%d">`, class, percent(float64(start), t.v.n), t.y, percent(float64(end-start), t.v.n), height)
	t.title(title)
	t.put(`</rect>`)
}

// stretched opens a drawing with a token as its unit across and a pixel down.
func (t *tracks) stretched(height int) {
	t.put(`<svg x="0" y="%d" width="100%%" height="%d" viewBox="0 0 %d %[2]d" preserveAspectRatio="none">`, t.y, height, max(t.v.n, 1))
}

// copies joins each copy to its original with a band.
func (t *tracks) copies() {
	links := t.v.copies()
	t.label(fmt.Sprintf("copies, joined to their originals (%d)", len(links)))
	if len(links) == 0 {
		t.put(`<text class="none" x="0" y="%d">no token is stored twice</text>`, t.y+11)
		t.y += labelHeight + trackGap
		return
	}
	t.stretched(copiesHeight)
	for _, l := range links {
		n, h, low := l.end-l.start, copiesHeight, 4
		top := low - copiesHeight/3
		t.put(`<path class="band k%d" d="M%d %dC%[2]d %[4]d %[5]d %[4]d %[5]d %[3]dH%[6]dC%[6]d %[4]d %[7]d %[4]d %[7]d %[3]dz">`,
			l.kind, l.original, h, top, l.start, l.end, l.original+n)
		t.title(fmt.Sprintf("places %d to %d are copies of %d to %d: %s", l.start, l.end-1, l.original, l.original+n-1, l.words))
		t.put(`</path>`)
	}
	t.put(`</svg>`)
	t.y += copiesHeight
}

// tokens draws each segment as a bar.
func (t *tracks) tokens() {
	if len(t.v.copies()) == 0 {
		t.label("tokens")
	}
	for _, s := range t.v.segments {
		title := fmt.Sprintf("places %d to %d, positions %d to %d: %s and on", s.Start, s.End-1, s.Position, s.Position+s.End-s.Start-1, s.what(s.Start))
		t.bar(fmt.Sprintf("tok k%d", s.Kind), s.Start, s.End, tokensHeight, title)
	}
	for _, b := range t.v.base[min(1, len(t.v.base)):] {
		t.put(`<line class="row" x1="%s" x2="%[1]s" y1="%[2]d" y2="%[3]d"/>`, percent(float64(b), t.v.n), t.y-4, t.y+tokensHeight+4)
	}
	t.y += tokensHeight
}

// callRun is a run of places in the state of one call.
type callRun struct{ call, start, end int }

func (v *view) callRuns() []callRun {
	var list []callRun
	for _, s := range v.segments {
		if n := len(list); n > 0 && list[n-1].call == s.Owner && list[n-1].end == s.Start && s.Owner >= 0 {
			list[n-1].end = s.End
		} else if s.Owner >= 0 {
			list = append(list, callRun{s.Owner, s.Start, s.End})
		}
	}
	return list
}

// calls brackets the places of each call.
func (t *tracks) calls() {
	for _, c := range t.v.callRuns() {
		x, end := percent(float64(c.start)+.5, t.v.n), percent(float64(c.end)-.5, t.v.n)
		t.put(`<line class="bracket" x1="%s" x2="%s" y1="%d" y2="%[3]d"/>`, x, end, t.y+4)
		if share := float64(c.end-c.start) / float64(t.v.n); share > .03 {
			text := fmt.Sprint(c.call)
			if share > .16 {
				text = "call " + text
			}
			t.put(`<text class="call" x="%s" y="%d">%s</text>`, percent(float64(c.start+c.end)/2, t.v.n), t.y+16, text)
		}
	}
	t.y += callsHeight
}

// jumps draws where an action is not predicted by the token before it.
func (t *tracks) jumps() {
	var far []align.Action
	for _, a := range t.v.actions {
		if a.Predict != a.Index-1 && !a.Spurious() {
			far = append(far, a)
		}
	}
	if len(far) == 0 {
		t.y += trackGap
		return
	}
	t.label("predicted from afar, not by the token before")
	t.stretched(jumpsHeight)
	for _, a := range far {
		t.put(`<path class="jump" d="M%s 0Q%s %d %[4]s 0">`, short(float64(a.Predict)+.5), short(float64(a.Predict+a.Index)/2+.5), 2*jumpsHeight-6, short(float64(a.Index)+.5))
		t.title(fmt.Sprintf("call %d, token %d at place %d is predicted by place %d", a.Call, a.Token, a.Index, a.Predict))
		t.put(`</path>`)
	}
	t.put(`</svg>`)
	t.y += jumpsHeight + trackGap
}

// positions plots the positions, and dashed those of the rollout where they differ.
func (t *tracks) positions() {
	top := 1
	for _, s := range t.v.segments {
		top = max(top, s.Position+s.End-s.Start, s.Index+s.End-s.Start)
	}
	t.label(fmt.Sprintf("positions, 0 to %s", count(top-1)))
	t.put(`<rect class="plot" x="0" y="%d" width="100%%" height="%d"/>`, t.y, positionHeight)
	t.stretched(positionHeight)
	y := func(position int) string {
		return short(positionHeight - 3 - float64(position)/float64(top)*(positionHeight-6))
	}
	var stored, was drawing
	for _, s := range t.v.segments {
		n := s.End - s.Start
		stored.put("M%d %sL%d %s", s.Start, y(s.Position), s.End, y(s.Position+n))
		if s.Index >= 0 && s.Index != s.Position {
			was.put("M%d %sL%d %s", s.Start, y(s.Index), s.End, y(s.Index+n))
		}
	}
	t.put(`<path class="was" d="%s"/><path class="step" d="%s"/></svg>`, was.String(), stored.String())
	t.y += positionHeight + trackGap
}

// masks draws the action mask and the teacher mask.
func (t *tracks) masks() {
	strip := func(name string, keep func(align.Action) string) {
		t.label(name)
		t.put(`<rect class="plot" x="0" y="%d" width="100%%" height="%d"/>`, t.y, maskHeight)
		for _, r := range t.v.maskRuns(keep) {
			t.bar(r.class, r.start, r.end, maskHeight, fmt.Sprintf("places %d to %d", r.start, r.end-1))
		}
		t.y += maskHeight + trackGap/2
	}
	strip(t.v.maskName(), func(a align.Action) string {
		if a.Spurious() {
			return "spurious"
		}
		return "masked"
	})
	strip("teacher mask", func(a align.Action) string {
		if a.Teacher {
			return "taught"
		}
		return ""
	})
	t.y += trackGap / 2
}

// errors plots each action's error where it stands.
func (t *tracks) errors(errors map[[2]int]TokenError, tolerance float64) {
	t.label("error of the log-prob, log scale; ▼ top prediction flips")
	t.put(`<rect class="plot" x="0" y="%d" width="100%%" height="%d"/>`, t.y, errorHeight)
	t.grid(errorHeight, tolerance)
	t.stretched(errorHeight)
	var dots, flips drawing
	for _, a := range t.v.actions {
		e, ok := errors[[2]int{a.Call, a.Token}]
		if a.Spurious() || !ok {
			continue
		}
		dots.put("M%s %sh.001", short(float64(a.Index)+.5), short(dot(e.Error, errorHeight)))
		if e.Flip {
			flips.put(`<use href="#flip" x="%s" y="%d"/>`, percent(float64(a.Index)+.5, t.v.n), t.y+2)
		}
	}
	t.put(`<path class="dots" d="%s"/></svg>`, dots.String())
	t.WriteString(flips.String())
	t.y += errorHeight + 2
}

// dot is how far down an error stands in a plot, below the room of the flips.
func dot(v float64, height int) float64 {
	return flipsRoom + (1-decade(v))*(float64(height)-flipsRoom-4)
}

const flipsRoom = 14.

// grid draws the decades of an error plot at y, and the tolerance.
func (t *tracks) grid(height int, tolerance float64) {
	for e := lowest + 2; e <= highest; e += 2 {
		y := float64(t.y) + dot(math.Pow(10, e), height)
		t.put(`<line class="grid" x1="0" x2="100%%" y1="%s" y2="%[1]s"/><text class="tick" x="2" y="%s">1e%g</text>`, short(y), short(y-2), e)
	}
	y := short(float64(t.y) + dot(tolerance, height))
	t.put(`<line class="tolerance" x1="0" x2="100%%" y1="%s" y2="%[1]s"/>`, y)
}

// cursor marks a token through all tracks, and what predicts it.
func (t *tracks) cursor(at cursor) {
	for _, c := range []struct {
		name  string
		place int
	}{{"predict", at.predict}, {"place", at.place}} {
		hidden := ""
		if c.place < 0 {
			hidden = ` visibility="hidden"`
		}
		t.put(`<line class="c-%s" data-c="%[1]s" x1="%[2]s" x2="%[2]s" y1="0" y2="100%%"%[3]s/>`, c.name, percent(float64(max(c.place, 0))+.5, t.v.n), hidden)
	}
}
