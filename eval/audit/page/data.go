package page

import "math"

// viewData is what the script knows of a view: runs and numbers, no markup.
type viewData struct {
	N        int       `json:"n"`
	Rows     []int     `json:"rows"` // place of each row's first token
	IDs      []int32   `json:"ids"`
	Segments [][9]int  `json:"segs"` // start, kind, from, offset, position, index, seen before, too many, missing
	Actions  [][5]int  `json:"acts"` // place, predicting place, call, token, how many go on so
	Errors   []float64 `json:"errs"` // of the actions in order; -1: not compared
	Flips    []int     `json:"flips"`
	Spurious []int     `json:"spurious"` // places
}

func (v *view) data(errors map[[2]int]TokenError) viewData {
	d := viewData{N: v.n, Rows: v.base, Flips: []int{}, Spurious: []int{}, Errors: []float64{}}
	for _, p := range v.rows {
		d.IDs = append(d.IDs, p.IDs...)
	}
	for _, s := range v.segments {
		d.Segments = append(d.Segments, [9]int{s.Start, int(s.Kind), s.From, s.Offset, s.Position, s.Index, size(s.Right) + size(s.Extra), size(s.Extra), size(s.Missing)})
	}
	for _, a := range v.actions {
		if a.Spurious() {
			d.Spurious = append(d.Spurious, a.Index)
			continue
		}
		if n := len(d.Actions); n > 0 && goesOn(d.Actions[n-1], a.Index, a.Predict, a.Call, a.Token) {
			d.Actions[n-1][4]++
		} else {
			d.Actions = append(d.Actions, [5]int{a.Index, a.Predict, a.Call, a.Token, 1})
		}
		e, ok := errors[[2]int{a.Call, a.Token}]
		d.Errors = append(d.Errors, rounded(e.Error, ok))
		if e.Flip {
			d.Flips = append(d.Flips, len(d.Errors)-1)
		}
	}
	return d
}

// goesOn tells whether an action follows a run.
func goesOn(run [5]int, place, predict, call, token int) bool {
	n := run[4]
	return place == run[0]+n && predict == run[1]+n && call == run[2] && token == run[3]+n
}

// rounded keeps three digits of an error; what JSON has no number for is large.
func rounded(v float64, known bool) float64 {
	switch {
	case !known:
		return -1
	case math.IsInf(v, 0), math.IsNaN(v):
		return 1e9
	case v == 0:
		return 0
	}
	scale := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Round(v/scale) * scale
}
