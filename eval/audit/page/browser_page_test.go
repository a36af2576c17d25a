package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
)

const hostile = `</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`

// hostileSample is an audit in which everything that others wrote tries to be markup.
func hostileSample(t *testing.T) *Audit {
	a := sample(t, 3, cfg())
	a.Text = func(id int32) string {
		if id%3 == 0 {
			return hostile
		}
		return fmt.Sprintf("w%d", id)
	}
	a.Title, a.Subtitle, a.Verdict = hostile, hostile, hostile
	for i := range a.Trajectories {
		a.Trajectories[i].Record.ID += hostile
	}
	a.Failures[0].Detail, a.Hashes[0].Value = hostile, hostile
	return a
}

// TestInBrowser opens the page in Chromium: silent, without the network, as wide as
// the window and no wider, with pictures that have names.
func TestInBrowser(t *testing.T) {
	b := open(t, hostileSample(t), true)
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.size(width, scheme)
			if n := eval[int64](b, "document.documentElement.scrollWidth"); n != width {
				t.Errorf("%s at %d pixels: %d wide", scheme, width, n)
			}
			if size := eval[float64](b, `document.querySelector(".tracks").getBoundingClientRect().width`); size < .6*float64(width)-200 || size > float64(width) {
				t.Errorf("at %d pixels the layout's picture is %g wide", width, size)
			}
		}
		background := `getComputedStyle(document.body).backgroundColor`
		dark := eval[string](b, background)
		b.size(width, "light")
		if light := eval[string](b, background); light == dark {
			t.Errorf("light and dark have the background %s", light)
		}
	}
	if eval[bool](b, `window.hacked === 1 || document.querySelector("img") !== null`) {
		t.Error("a token became markup")
	}
	if !strings.Contains(eval[string](b, `document.body.innerText`), hostile) {
		t.Error("the hostile text is not shown as text")
	}
	names := map[string]int{}
	for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil || !strings.Contains(string(n.Role.Value), `"image"`) {
			continue
		}
		name := ""
		if n.Name != nil {
			name = strings.Trim(string(n.Name.Value), `"`)
		}
		for _, kind := range []string{"Visibility matrix of layout aligned", "Layout aligned along the sequence", "Error of each sampled token", "p50 ", ""} {
			if strings.HasPrefix(name, kind) && (kind != "" || name == "") {
				names[kind]++
				break
			}
		}
	}
	if names[""] > 0 || names["Visibility matrix of layout aligned"] != 1 || names["Layout aligned along the sequence"] != 1 ||
		names["Error of each sampled token"] != 1 || names["p50 "] != len(sample(t, 1, cfg()).Rows) {
		t.Errorf("pictures by name: %v", names)
	}
	b.quiet()
}

// TestSwitching chooses layouts and trajectories by mouse and keyboard, and moves the cursor.
func TestSwitching(t *testing.T) {
	b := open(t, hostileSample(t), true)
	b.size(1280, "light")
	want := func(views string) {
		t.Helper()
		if got := b.shown(); got != views {
			t.Errorf("shown %q, want %q", got, views)
		}
	}
	want("0-0 aligned")
	b.do(chromedp.Click(chromedp.CSS("label[for=l-0-2]")))
	want("0-2 persistent")
	b.do(chromedp.Click(chromedp.CSS("label[for=t-1]")))
	want("1-2 persistent")                                                    // the layout stays
	b.do(chromedp.Focus(chromedp.CSS("#l-1-2")), chromedp.KeyEvent("\u0303")) // arrow right
	want("1-3 visibility")
	read := func(field string) string { return eval[string](b, fmt.Sprintf(readoutOf, field)) }
	b.do(chromedp.Focus(chromedp.CSS("#c-1-3")), chromedp.KeyEvent("\u0306")) // home
	if got := read("what"); got != "task prefix, token 0" || read("predict") != "no action" {
		t.Errorf("the first token is %q, predicted at %q", got, read("predict"))
	}
	// Not at coordinates: the readout above has just changed its height.
	eval[bool](b, `(document.querySelector(".v-1-3 button.go").click(), true)`)
	if got := read("what"); !strings.HasPrefix(got, "sampled by call") || !strings.HasPrefix(read("predict"), "place ") {
		t.Errorf("the worst token is %q, predicted at %q", got, read("predict"))
	}
	b.quiet()
}

// TestReadoutAsRendered holds what the script says of the first token shown to what was rendered.
func TestReadoutAsRendered(t *testing.T) {
	all := `[...document.querySelectorAll(".v-0-0 [data-f]")].filter(e => !["before", "after"].includes(e.dataset.f)).map(e => e.dataset.f + "=" + e.textContent).join("|")`
	a := hostileSample(t)
	off := open(t, a, false)
	rendered := eval[string](off, all)
	on := open(t, a, true)
	if scripted := eval[string](on, all); scripted != rendered {
		t.Errorf("the script says\n%s\nrendered was\n%s", scripted, rendered)
	}
	off.quiet()
}

// TestWithoutScripts chooses a layout where scripts are off.
func TestWithoutScripts(t *testing.T) {
	b := open(t, hostileSample(t), false)
	b.size(1280, "light")
	if got := b.shown(); got != "0-0 aligned" {
		t.Errorf("shown %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS("label[for=l-0-1]")))
	if got := b.shown(); got != "0-1 calls" {
		t.Errorf("shown %q", got)
	}
	if eval[bool](b, `document.querySelector(".scrub").getClientRects().length > 0`) {
		t.Error("without scripts there is a slider that does nothing")
	}
	b.quiet()
}
