package page

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/memopd/memopd-bench/align/aligntest"
	"github.com/memopd/memopd-bench/trace"
)

// attack is what a token must not be able to do.
const attack = `</script><img src=x onerror="document.title='taken'"><bdo dir=rtl>`

// attackText makes every seventh token an attack.
func attackText(id int32) string {
	if id%7 == 0 {
		return attack
	}
	return fmt.Sprintf("t%d", id)
}

func written(t *testing.T, a *Audit) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, a); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The positions of a segment are those of its places.
func TestSegmentsKeepPositions(t *testing.T) {
	generated(t, func(t *testing.T, _ *trace.Trajectory, _ string, v *view) {
		for _, s := range v.segments {
			for place := s.Start; place < s.End; place++ {
				if got, want := v.position(place), s.Position+place-s.Start; got != want {
					t.Fatalf("place %d stands at %d, its segment says %d", place, got, want)
				}
			}
		}
	})
}

func TestPageIsTheSameTwice(t *testing.T) {
	a := sample(t, 2, aligntest.Small())
	if first, second := written(t, a), written(t, a); first != second {
		t.Error("two pages of one audit differ")
	}
}

// A page grows with what is shown, not with the square of its sequences.
func TestPageSize(t *testing.T) {
	page := written(t, sample(t, 4, aligntest.Small()))
	if len(page) > 1_500_000 {
		t.Errorf("%d bytes", len(page))
	}
	if !strings.Contains(page, "4 of 7 trajectories are shown") {
		t.Error("the page does not say how many trajectories it leaves out")
	}
}

// Texts of tokens and ids of trajectories stay text.
func TestHostileTextStaysText(t *testing.T) {
	a := sample(t, 1, aligntest.Small())
	a.Text = attackText
	a.Trajectories[0].Record.ID = attack
	page := written(t, a)
	if strings.Contains(page, "<img") || strings.Contains(page, attack) {
		t.Error("markup of a token stands in the page")
	}
	if !strings.Contains(page, "&lt;img") {
		t.Error("the token's text is not shown")
	}
}

// What does not fit together is an error, not half a page.
func TestPageRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Audit){
		"no record": func(a *Audit) { a.Trajectories[0].Record = nil },
	} {
		a := sample(t, 1, aligntest.Small())
		spoil(a)
		var b bytes.Buffer
		if err := Write(&b, a); err == nil || b.Len() > 0 {
			t.Errorf("%s: error %v, %d bytes written", name, err, b.Len())
		}
	}
}
