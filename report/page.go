package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/memopd/memopd-bench/results"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"published": published, "seconds": seconds, "join": strings.Join, "tableName": tableName, "tableTitle": tableTitle,
}).Parse(pageHTML))

// Write writes the page.
func Write(w io.Writer, o *Outcome) error {
	m, err := newModel(o)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, m); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// pageModel is what the template shows.
type pageModel struct {
	*Outcome
	Style      template.CSS
	Script     template.JS
	ScriptHash string
	Title      string
	Facts      []fact
	Glance     []tile
	Over       string // what intervals are taken over
	Figures    []shownFigure
	Browser    *browserData
	Preset     string
	Source     string // of published numbers

	NoTrajectories, NoTables, NoManifest Missing
}

type fact struct{ Name, Value string }

type shownFigure struct {
	*Figure
	Shown []shownPanel
}

type shownPanel struct {
	Title string
	SVG   template.HTML
	Wide  template.HTML // for wide windows, "" where the same one serves
	Data  [][]string    // the head first
}

func newModel(o *Outcome) (*pageModel, error) {
	sum := sha256.Sum256([]byte(pageJS))
	m := &pageModel{Outcome: o, Style: template.CSS(drawingCSS() + pageCSS), Script: template.JS(pageJS),
		ScriptHash: base64.StdEncoding.EncodeToString(sum[:]), Preset: o.Manifest.Preset, Source: results.PublishedSource}
	m.Title = "MemOPD-bench: report"
	if m.Preset != "" {
		m.Title = "MemOPD-bench: outcome of preset " + m.Preset
	}
	m.NoTrajectories = o.noTrajectories()
	m.NoTables, m.NoManifest = Missing{"the records of evaluations that most tables are made of", o.reproduce()}, Missing{"the manifest with the commands", o.reproduce()}
	m.facts()
	m.Glance, m.Over = glance(o.summaries), overOf(o.summaries)
	figures := o.Figures()
	for i := range figures {
		f := &figures[i]
		shown := shownFigure{Figure: f}
		for j := range f.Panels {
			p := &f.Panels[j]
			id := fmt.Sprintf("%s-%d", f.Name, j)
			s := shownPanel{Title: p.Title, SVG: template.HTML(p.svg(id, narrowPanel)), Data: p.data()}
			if f.panelWidth() != narrowPanel {
				s.Wide = template.HTML(p.svg(id+"-wide", widePanel))
			}
			shown.Shown = append(shown.Shown, s)
		}
		m.Figures = append(m.Figures, shown)
	}
	m.Browser = newBrowserData(o.Trajectories)
	return m, nil
}

// facts say where the outcome comes from.
func (m *pageModel) facts() {
	add := func(name, value string) {
		if value != "" {
			m.Facts = append(m.Facts, fact{name, value})
		}
	}
	r := m.Manifest
	if r.Commit != "" {
		add("commit", r.Commit+map[bool]string{true: " with changes", false: ""}[r.Dirty])
	}
	var seeds []string
	for _, s := range r.Seeds {
		seeds = append(seeds, fmt.Sprint(s))
	}
	add("seeds", strings.Join(seeds, ", "))
	add("libtorch", r.Libtorch)
	if r.Machine.CPU != "" {
		add("machine", fmt.Sprintf("%s, %d cores, %s", r.Machine.CPU, r.Machine.Cores, r.Machine.OS))
	}
	total := 0.
	for _, p := range r.Parts {
		total += p.Seconds
	}
	if len(r.Parts) > 0 {
		add("parts", fmt.Sprintf("%d commands, %s of computing", len(r.Parts), seconds(total)))
	}
}

// seconds writes a duration for people.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d >= 100*time.Second:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%.1f s", s)
}

// published tells whether a row of a table is the paper's and not ours.
func published(row []results.Cell) bool {
	for _, c := range row {
		if strings.HasPrefix(c.Text, "published") {
			return true
		}
	}
	return false
}

// tableName writes a table's name as the paper has it.
func tableName(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// tableTitle is the title of a table's first part, without the table's name.
func tableTitle(t results.PaperTable) string {
	if len(t.Tables) == 0 {
		return ""
	}
	return strings.TrimPrefix(t.Tables[0].Title, tableName(t.Name)+": ")
}

// data is a panel's numbers as rows: a place, and each series' value there.
func (p *Panel) data() [][]string {
	head := []string{p.X.Label}
	var places []string
	cells := map[string]map[int]string{}
	for i, s := range p.Series {
		head = append(head, s.Name)
		for _, pt := range s.Points {
			place := p.X.place(pt.X)
			if cells[place] == nil {
				cells[place] = map[int]string{}
				places = append(places, place)
			}
			cells[place][i] = pt.String()
		}
	}
	places = p.X.sortPlaces(places)
	rows := [][]string{head}
	for _, place := range places {
		row := []string{place}
		for i := range p.Series {
			row = append(row, cells[place][i])
		}
		rows = append(rows, row)
	}
	return rows
}
