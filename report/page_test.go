package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/results"
)

// written is an outcome's page.
func written(t *testing.T, o *Outcome) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A folder with nothing in it gives a page without pictures that names what to run.
func TestPageOfNothing(t *testing.T) {
	dir := t.TempDir()
	o, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	page := written(t, o)
	if strings.Contains(page, "<svg") || strings.Contains(page, `id="trajectory-data"`) {
		t.Error("a picture of nothing")
	}
	for _, want := range []string{"bench reproduce --preset mini", "bench audit rce --horizon q2 --controls --certificate " + dir + "/audit/rce.q2.json",
		"bench audit speed", "bench audit updates", "trajectories.jsonl.gz"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not name %q", want)
		}
	}
	if n := len(o.AllMissing()); n < 8 {
		t.Errorf("%d missing: %v", n, o.AllMissing())
	}
	if _, err := Load(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "bench reproduce") {
		t.Errorf("no folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, results.CurvesFile), []byte("{\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "curves.jsonl:1") {
		t.Errorf("a damaged file: %v", err)
	}
}

// A folder as a reproduction leaves it is read whole.
func TestLoad(t *testing.T) {
	o, err := Load("../results/testdata/evidence")
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Rows) == 0 || len(o.Curves) == 0 || len(o.Audits.RCE) != 1 || len(o.Tables) < 9 || len(o.summaries) == 0 {
		t.Errorf("%d rows, %d curves, %d certificates, %d tables", len(o.Rows), len(o.Curves), len(o.Audits.RCE), len(o.Tables))
	}
	page := written(t, o)
	for _, want := range []string{`<tr class="pub">`, "<b>T1</b>", "published: &#43;416.2 %"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}

// What stands in tables as published is set apart, and nothing else is.
func TestPublishedRows(t *testing.T) {
	cells := func(texts ...string) (row []results.Cell) {
		for _, s := range texts {
			row = append(row, results.Cell{Text: s})
		}
		return row
	}
	if !published(cells("q2", "memopd", "published T1", "14.3")) || published(cells("q2", "memopd", "measured", "14.3")) {
		t.Error("published rows")
	}
}

// A full run's page stays small: texts stand once, and what is too much is left out
// and counted.
func TestPageSize(t *testing.T) {
	o := fixture(t, 5)
	page := written(t, o)
	if len(page) > 1<<20 {
		t.Errorf("the fixture's page has %d bytes", len(page))
	}
	last := o.Trajectories[len(o.Trajectories)-1]
	for k, c := range last.Calls {
		if n := strings.Count(page, strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(c.Response.Text)); n < 1 || k > 0 && n > 1 {
			t.Errorf("call %d's response stands %d times", k, n)
		}
	}
	one := o.Trajectories[3]
	for len(o.Trajectories) < 4000 {
		o.Trajectories = append(o.Trajectories, one)
	}
	page = written(t, o)
	if len(page) > 5<<20 || !strings.Contains(page, "more are in the results folder") {
		t.Errorf("4,000 trajectories: %d bytes", len(page))
	}
}

// TestPreview writes the fixture's page, its pictures and screenshots to
// $REPORT_PREVIEW, to be looked at.
func TestPreview(t *testing.T) {
	dir := os.Getenv("REPORT_PREVIEW")
	if dir == "" {
		t.Skip("no $REPORT_PREVIEW: a folder for the fixture's page, pictures and screenshots")
	}
	save := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := fixture(t, 5)
	if from := os.Getenv("REPORT_RESULTS"); from != "" { // in place of the fixture
		var err error
		if o, err = Load(from); err != nil {
			t.Fatal(err)
		}
	}
	save("report.html", []byte(written(t, o)))
	b := open(t, o, true)
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.size(width, scheme)
			for _, part := range eval[[]string](b, `["header", ...[...document.querySelectorAll("main section")].map(e => "#" + e.id)]`) {
				save(fmt.Sprintf("%s-%d-%s.png", strings.TrimPrefix(part, "#"), width, scheme), b.picture(part))
			}
		}
	}
	b.quiet()
	if _, err := WriteFigures(dir, o.Figures()); err != nil {
		t.Fatal(err)
	}
}
