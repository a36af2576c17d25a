package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"

	"github.com/memopd/memopd-bench/results"
)

const hostile = `</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script> " ' & </title></style>`

// hostileFixture is an outcome in which everything that others wrote tries to be markup,
// or is a word wider than any window.
func hostileFixture(t *testing.T) *Outcome {
	o := fixture(t, 2)
	wide := strings.Repeat("Donaudampfschiff", 40)
	v := &o.Trajectories[3]
	v.TaskID, v.Questions[0], v.Golds[0], v.Answers[0], v.Error = hostile, wide, []string{hostile, wide}, hostile+wide, hostile
	v.Prefix.Text = hostile + wide
	for k := range v.Calls {
		c := &v.Calls[k]
		c.Response.Text, c.Observation.Text, c.Query, c.Documents, c.Reason = hostile, wide, hostile+wide, []string{hostile, wide}, hostile
	}
	for k := range v.Calls {
		fixtureContext(v, k)
	}
	v.Horizon = "q2" // the first in the list
	o.Manifest.Commit, o.Manifest.Machine.CPU, o.Manifest.Preset = hostile+wide, hostile, hostile
	o.Manifest.Parts[0].Name, o.Manifest.Parts[0].Command = hostile, []string{hostile, wide}
	o.Missing = append(o.Missing, Missing{hostile + wide, wide})
	for i := range o.Curves {
		if o.Curves[i].Variant == "persistent" {
			o.Curves[i].Variant = hostile
		}
	}
	o.Audits.Updates[0].Updates[0].Update = hostile
	o.Tables[0].Tables[0].Title, o.Tables[0].Tables[0].Rows[0][0].Text = hostile, hostile
	return o
}

// TestInBrowser opens the page in Chromium: silent, without the network, as wide as
// the window and no wider, light and dark, with pictures that have names.
func TestInBrowser(t *testing.T) {
	b := open(t, hostileFixture(t), true)
	for _, width := range []int64{1280, 390} {
		backgrounds := map[string]string{}
		for _, scheme := range []string{"light", "dark"} {
			b.size(width, scheme)
			for _, all := range []bool{false, true} { // the hostile trajectory, a call and all
				eval[bool](b, fmt.Sprintf(`(() => { const c = document.querySelector(".steps input"); if (c.checked !== %v) c.click(); return true })()`, all))
				eval[bool](b, `(document.querySelectorAll("details").forEach(e => e.open = true), true)`)
				if n := eval[int64](b, "document.documentElement.scrollWidth"); n != width {
					t.Errorf("%s at %d pixels: %d wide", scheme, width, n)
				}
			}
			for _, scroll := range eval[[]string](b, `[...document.querySelectorAll("main *")].filter(e => e.getClientRects().length && getComputedStyle(e).overflowX === "visible" && e.scrollWidth > e.clientWidth + 2 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline" && !e.closest("svg")).map(e => e.tagName + "." + e.className)`) {
				t.Errorf("%s at %d pixels: %s is wider than its place", scheme, width, scroll)
			}
			backgrounds[eval[string](b, `getComputedStyle(document.body).backgroundColor + getComputedStyle(document.querySelector(".s-c1")).stroke`)] = scheme
		}
		if len(backgrounds) != 2 {
			t.Errorf("light and dark look alike: %v", backgrounds)
		}
	}
	if eval[bool](b, `window.hacked === 1 || document.querySelector("img") !== null`) {
		t.Error("a text became markup")
	}
	for _, selector := range []string{".viewer h3", ".viewer .block.out", "#tables caption", "#provenance td", ".missing"} {
		if !strings.Contains(eval[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, selector)), hostile[:40]) {
			t.Errorf("%s does not show the hostile text as text", selector)
		}
	}
	pictures := 0
	for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil || !strings.Contains(string(n.Role.Value), `"image"`) {
			continue
		}
		pictures++
		if n.Name == nil || len(string(n.Name.Value)) < 4 {
			t.Errorf("a picture without a name: %+v", n)
		}
	}
	if shown := eval[int](b, `[...document.querySelectorAll("svg")].filter(e => e.getClientRects().length).length`); shown < 14 || pictures < shown {
		t.Errorf("%d pictures with names of %d", pictures, shown)
	}
	b.quiet()
}

// The pictures' texts do not lie upon each other, and lie within their cards.
func TestLabelsInBrowser(t *testing.T) {
	b := open(t, fixture(t, 3), true)
	for _, width := range []int64{1280, 390} {
		b.size(width, "light")
		for _, clash := range eval[[]string](b, `[...document.querySelectorAll("figure svg")].filter(s => s.getClientRects().length).flatMap(s => {
			const card = s.closest("figure").getBoundingClientRect(), bold = [...s.querySelectorAll("text")].map(e => [e, e.getBoundingClientRect()]);
			const out = bold.filter(([e, r]) => r.right > card.right + 1 || r.left < card.left).map(([e]) => e.textContent + " leaves the card");
			for (const [e, r] of bold) for (const [f, q] of bold)
				if (e !== f && r.left < q.right - 1 && q.left < r.right - 1 && r.top < q.bottom - 4 && q.top < r.bottom - 4) out.push(e.textContent + " on " + f.textContent);
			return out; })`) {
			t.Errorf("at %d pixels: %s", width, clash)
		}
	}
	b.quiet()
}

// TestTrajectories filters, and goes through trajectories and calls by keyboard.
func TestTrajectories(t *testing.T) {
	o := fixture(t, 2)
	b := open(t, o, true)
	b.size(1280, "light")
	text := func(selector string) string {
		return eval[string](b, fmt.Sprintf(`(document.querySelector(%q) || {textContent: "none"}).textContent`, selector))
	}
	choose := func(name, value string) {
		eval[bool](b, fmt.Sprintf(`(() => { const s = document.querySelector("select[name=%s]"); s.value = %q; s.dispatchEvent(new Event("change")); return true })()`, name, value))
	}
	want := func(what, selector, part string) {
		t.Helper()
		if got := text(selector); !strings.Contains(got, part) {
			t.Errorf("%s: %s is %q, want %q in it", what, selector, got, part)
		}
	}
	want("at first", ".filters output", "20 of 20")
	want("at first", ".viewer > p", "sft · seed 0 · q2")
	choose("variant", "ppo")
	choose("horizon", "q16")
	want("filtered", ".filters output", "1 of 20")
	want("filtered", ".viewer .badge", "no answer")
	want("filtered", ".viewer > p", "the turn budget was spent")
	choose("outcome", "all right")
	want("none left", ".list", "None")
	if text(".viewer") != "" {
		t.Errorf("none left, shown is %q", text(".viewer"))
	}
	choose("outcome", "")
	choose("horizon", "")
	choose("variant", "memopd")
	want("memopd", ".filters output", "4 of 20")

	const up, down, left, right, end = "\u0304", "\u0301", "\u0302", "\u0303", "\u0305"
	chosen := func() string { return text(".list li[aria-selected=true]") }
	b.do(chromedp.Focus(chromedp.CSS(".list")), chromedp.KeyEvent(down))
	first := chosen()
	b.do(chromedp.KeyEvent(down))
	if second := chosen(); second == first || !strings.Contains(second, "q8") {
		t.Errorf("arrow down goes from %q to %q", first, second)
	}
	b.do(chromedp.KeyEvent(up))
	if back := chosen(); back != first {
		t.Errorf("arrow up goes to %q, not back to %q", back, first)
	}
	b.do(chromedp.KeyEvent(end))
	want("the last", ".list li[aria-selected=true]", "q16")
	b.do(chromedp.KeyEvent(right), chromedp.KeyEvent(right), chromedp.KeyEvent(right))
	want("by arrow", ".call h4", "Call 3 ")
	b.do(chromedp.KeyEvent(left))
	want("by arrow", ".call h4", "Call 2 ")
	b.do(chromedp.Focus(chromedp.CSS(".strip button[aria-selected=true]")), chromedp.KeyEvent(right))
	want("by arrow in the strip", ".call h4", "Call 3 ")
	if focus := eval[string](b, `document.activeElement.getAttribute("aria-label")`); !strings.HasPrefix(focus, "Call 3,") {
		t.Errorf("the focus is on %q", focus)
	}
	shown := eval[int](b, `(document.querySelector(".steps input").click(), document.querySelectorAll(".call").length)`)
	if shown != 17 {
		t.Errorf("all calls: %d", shown)
	}
	b.quiet()
}

// A call shows what was dropped: whole parts of the context, and words of the memory
// that the response does not carry on, a gold answer by name.
func TestDropped(t *testing.T) {
	text := func(s string) results.ViewText { return results.ViewText{Text: s, Tokens: len(strings.Fields(s))} }
	v := results.TrajectoryView{Variant: "ppo", Horizon: "q2", TaskID: "w1", Update: "mem1", End: "answered", Questions: []string{"noge birth", "kome birth"},
		Golds: [][]string{{"old Gola"}, {"tuba"}}, Answers: []string{"", "tuba"}, Scores: []results.Score{{}, {EM: 1, F1: 1}}, Prefix: text("<bos> q1 noge birth ; q2 kome birth ;"),
		Calls: []results.CallView{
			{Response: text("<think> next q1 </think> <search> noge </search>"), Outcome: "search", Query: "noge", Observation: text("<information> birth old gola, </information>")},
			{Response: text("<think> q1 Old Gola; next q2 </think> <search> kome </search>"), Outcome: "search", Query: "kome", Observation: text("<information> birth tuba </information>")},
			{Response: text("<think> q2 tuba ; </think> <answer> ; tuba </answer>"), Outcome: "answer"},
		}}
	for k := range v.Calls {
		fixtureContext(&v, k)
	}
	o := fixture(t, 2)
	o.Trajectories = []results.TrajectoryView{v}
	b := open(t, o, true)
	b.size(1280, "light")
	b.do(chromedp.Focus(chromedp.CSS(".list")), chromedp.KeyEvent("\u0303"), chromedp.KeyEvent("\u0303"))
	list := func(selector string) string {
		return eval[string](b, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => e.textContent).join("|")`, selector))
	}
	for selector, want := range map[string]string{
		".block.gone":      "<think> next q1 </think> <search> noge </search>|<information> birth old gola, </information>",
		".block.mem del":   "q1 Old Gola; next kome",
		".block.out ins":   "tuba ; ; tuba",
		".block.mem mark":  "Old Gola;",
		".block.gone mark": "old gola,",
		".lost":            "struck|✗ Dropped from memory: old Gola, the answer to question 1",
		"h5.gone-h":        "Dropped before this call: response of call 0 7 tokens|Dropped before this call: observation of call 0 5 tokens",
	} {
		got := list(selector)
		if strings.HasSuffix(selector, "del") || strings.HasSuffix(selector, "ins") { // gold answers among them are elements of their own
			got = strings.Join(strings.Fields(strings.ReplaceAll(got, "|", " ")), " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	b.quiet()
}

// TestWithoutScripts: all but the browser of trajectories is there without scripts.
func TestWithoutScripts(t *testing.T) {
	b := open(t, fixture(t, 2), false)
	b.size(1280, "light")
	if !eval[bool](b, `document.querySelector("#browser").getClientRects().length === 0 && document.querySelectorAll("figure svg").length > 10`) {
		t.Error("without scripts")
	}
	if got := eval[string](b, `document.querySelector("#trajectories").innerText`); !strings.Contains(got, "Scripts are off") {
		t.Errorf("the section of trajectories is %q", got)
	}
	b.quiet()
}
