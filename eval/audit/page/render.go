package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "count": count, "spread": spread, "tallied": tallied, "part": part, "cell": cell, "at": at, "join": strings.Join,
}).Parse(pageHTML))

// Write writes the page.
func Write(w io.Writer, a *Audit) error {
	m, err := newModel(a)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, m); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// pageModel is what the template shows.
type pageModel struct {
	*Audit
	Style, Switches template.CSS
	Script          template.JS
	ScriptHash      string
	Symbols         []template.HTML
	Shown           []shownTrajectory
	Calls           []int // the call indices that the table by call has
	Texts           map[string]string
	Kinds           []Kind
}

type shownTrajectory struct {
	Number               int
	ID, TaskID, Agent    string
	Calls, Tokens, Store int
	Worst                float64
	Lanes                template.HTML
	Views                []shownView
}

type shownView struct {
	Key                 string // of its ids
	Number              int
	Name, Description   string
	Symbol              string // of its matrix
	Size                int    // places
	P99, Worst          float64
	Flips, Beyond, Clip int
	Difference          string
	Words               string
	Layout, Matrix      template.HTML
	Data                viewData
	At                  readout
	Top                 []readout
}

// readout is a token in words.
type readout struct {
	Place, ID                                  int
	Text, What, Where, Position, Sees, Predict string
	Error                                      string
	Flip                                       bool
}

func newModel(a *Audit) (*pageModel, error) {
	sum := sha256.Sum256([]byte(pageJS))
	m := &pageModel{Audit: a, Style: template.CSS(pageCSS), Script: template.JS(pageJS), Texts: map[string]string{},
		ScriptHash: base64.StdEncoding.EncodeToString(sum[:]), Kinds: []Kind{KindPrefix, KindCopy, KindObservation, KindSampled}}
	for i := range a.Trajectories {
		t, err := m.trajectory(i)
		if err != nil {
			return nil, err
		}
		m.Shown = append(m.Shown, t)
	}
	m.Switches = template.CSS(switches(m.Shown))
	for _, r := range a.Rows {
		for _, c := range r.ByCall {
			if !slices.Contains(m.Calls, c.Call) {
				m.Calls = append(m.Calls, c.Call)
			}
		}
	}
	slices.Sort(m.Calls)
	return m, nil
}

func (m *pageModel) trajectory(i int) (shownTrajectory, error) {
	t := &m.Trajectories[i]
	if t.Record == nil || len(t.Layouts) == 0 {
		return shownTrajectory{}, fmt.Errorf("trajectory %d has no record or no layouts", i)
	}
	s := shownTrajectory{Number: i, ID: t.Record.ID, TaskID: t.Record.TaskID, Agent: t.Record.Agent, Calls: len(t.Record.Calls),
		Tokens: t.Record.SampledTokens(), Lanes: lanes(t, fmt.Sprintf("lanes-%d", i), m.Tolerance)}
	for j := range t.Layouts {
		v, err := m.view(t, i, j)
		if err != nil {
			return s, fmt.Errorf("trajectory %q, layout %s: %w", s.ID, t.Layouts[j].Name, err)
		}
		s.Views = append(s.Views, v)
		s.Worst = math.Max(s.Worst, v.Worst)
	}
	return s, nil
}

func (m *pageModel) view(t *Trajectory, i, j int) (shownView, error) {
	l := &t.Layouts[j]
	if err := fits(t.Record, l.Rows); err != nil {
		return shownView{}, err
	}
	key := fmt.Sprintf("%d-%d", i, j)
	v, errors := newView(t.Record, l.Rows), map[[2]int]TokenError{}
	for _, e := range l.Tokens {
		errors[[2]int{e.Call, e.Token}] = e
	}
	symbol, at := "mx-"+key, v.start(errors)
	m.Symbols = append(m.Symbols, v.matrixSymbol(symbol))
	s := shownView{Key: key, Number: j, Name: l.Name, Description: l.Description, Symbol: symbol, Size: v.n, Difference: v.difference(),
		Words: v.matrixWords(), Layout: v.layout("lay-"+key, l.Name, errors, m.Tolerance, at), Matrix: v.matrix("mat-"+key, symbol, l.Name, at),
		Data: v.data(errors), At: m.readout(v, at, errors)}
	s.Beyond, s.Flips, s.Worst = tally(l.Tokens, m.Tolerance)
	s.P99 = p99(l.Tokens)
	for _, e := range l.Tokens {
		if e.Clip {
			s.Clip++
		}
	}
	s.Top = m.top(v, l.Tokens, errors)
	for _, id := range s.Data.IDs {
		m.text(id)
	}
	return s, nil
}

// topTokens is how many of the worst tokens a view lists.
const topTokens = 6

// top describes the tokens with the largest errors.
func (m *pageModel) top(v *view, tokens []TokenError, errors map[[2]int]TokenError) []readout {
	places := map[[2]int]cursor{}
	for _, a := range v.actions {
		if !a.Spurious() {
			places[[2]int{a.Call, a.Token}] = cursor{a.Index, a.Predict}
		}
	}
	sorted := slices.Clone(tokens)
	slices.SortStableFunc(sorted, func(a, b TokenError) int {
		switch {
		case a.Error > b.Error:
			return -1
		case a.Error < b.Error:
			return 1
		}
		return 0
	})
	var list []readout
	for _, e := range sorted[:min(len(sorted), topTokens)] {
		if at, ok := places[[2]int{e.Call, e.Token}]; ok {
			list = append(list, m.readout(v, at, errors))
		}
	}
	return list
}

// readout describes the token at the cursor.
func (m *pageModel) readout(v *view, at cursor, errors map[[2]int]TokenError) readout {
	s := v.segmentAt(at.place)
	r := readout{Place: at.place, ID: int(v.id(at.place)), Text: m.text(v.id(at.place)), What: s.what(at.place), Sees: s.sees(at.place),
		Position: s.stands(at.place), Where: v.where(at.place), Predict: "no action", Error: "–"}
	if at.predict < 0 {
		return r
	}
	r.Predict = fmt.Sprintf("place %d, after %s", at.predict, m.text(v.id(at.predict)))
	if e, ok := errors[[2]int{s.From, s.Offset + at.place - s.Start}]; ok && s.Kind == KindSampled {
		r.Error, r.Flip = number(e.Error), e.Flip
	}
	return r
}

// where names a place, with its row where there are several.
func (v *view) where(at int) string {
	if row := v.rowAt(at); len(v.rows) > 1 {
		return fmt.Sprintf("%d of row %d", at-v.base[row], row)
	}
	return strconv.Itoa(at)
}

// text shows a token, and notes it for the script.
func (m *pageModel) text(id int32) string {
	key := strconv.Itoa(int(id))
	if text, ok := m.Texts[key]; ok {
		return text
	}
	if m.Text == nil {
		return "id " + key
	}
	m.Texts[key] = visible(m.Text(id))
	return m.Texts[key]
}

// p99 is the smallest error that 99 of 100 tokens are not above.
func p99(tokens []TokenError) float64 {
	var list []float64
	for _, t := range tokens {
		list = append(list, t.Error)
	}
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return list[max(0, int(math.Ceil(.99*float64(len(list))))-1)]
}

// tallied is a count, "–" where it was not made.
func tallied(n int) string {
	if n < 0 {
		return "–"
	}
	return count(n)
}

// part is a count's part of all in percent, "" where there is none.
func part(n, of int) string {
	if n <= 0 || of <= 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(n)/float64(of), 'f', 1, 64) + " %"
}

// heatCell is a cell of the table by call.
type heatCell struct {
	Figures
	Level int
}

func cell(f Figures, tolerance float64) heatCell { return heatCell{f, heat(f.P99, tolerance)} }

// at is a row's figures of a call, none if it has none.
func at(r Row, call int) Figures {
	for _, f := range r.ByCall {
		if f.Call == call {
			return f
		}
	}
	return Figures{P99: math.NaN()}
}

// heat is how far an error is beyond the tolerance: 0 within, then by its size.
func heat(v, tolerance float64) int {
	switch {
	case math.IsNaN(v), v <= tolerance:
		return 0
	case v <= 1e-2:
		return 1
	case v <= 1e-1:
		return 2
	case v <= 1:
		return 3
	}
	return 4
}

// switches are the rules that show what is chosen, without a script.
func switches(shown []shownTrajectory) string {
	var b strings.Builder
	for _, t := range shown {
		fmt.Fprintf(&b, "body:has(#t-%d:checked) .t-%[1]d{display:block}\n", t.Number)
		for _, v := range t.Views {
			fmt.Fprintf(&b, ".t-%d:has(#l-%s:checked) .v-%[2]s{display:grid}.t-%[1]d:has(#l-%[2]s:checked) .lane%[3]d .label{font-weight:650;fill:var(--act)}\n", t.Number, v.Key, v.Number)
		}
	}
	return b.String()
}
