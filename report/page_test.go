package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPreview writes the fixture's page and pictures to $REPORT_PREVIEW, to be looked
// at.
func TestPreview(t *testing.T) {
	dir := os.Getenv("REPORT_PREVIEW")
	if dir == "" {
		t.Skip("no $REPORT_PREVIEW: a folder for the fixture's page and pictures")
	}
	o := fixture(t, 5)
	var b bytes.Buffer
	if err := Write(&b, o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.html"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	page := open(t, o, true)
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			page.size(width, scheme)
			for _, part := range []string{"header", "#glance", "#horizons", "#dev-f1", "#learning", "#position", "#context", "#speed", "#trajectories", "#tables", "#provenance"} {
				name := fmt.Sprintf("%s-%d-%s.png", strings.TrimPrefix(part, "#"), width, scheme)
				if err := os.WriteFile(filepath.Join(dir, name), page.picture(part), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	page.size(1280, "light")
	eval[bool](page, `([...document.querySelectorAll(".list li")].find(e => e.textContent.includes("q8")).click(), document.querySelectorAll(".strip button")[5].click(), true)`)
	if err := os.WriteFile(filepath.Join(dir, "call.png"), page.picture("#trajectories"), 0o644); err != nil {
		t.Fatal(err)
	}
	page.quiet()
	if _, err := WriteFigures(dir, o.Figures()); err != nil {
		t.Fatal(err)
	}
}
