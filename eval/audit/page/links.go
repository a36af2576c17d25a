package page

import (
	"fmt"
	"strings"

	"github.com/memopd/memopd-bench/align"
)

// link joins the places [start, end) to the originals from place original on.
type link struct {
	start, end, original int
	kind                 Kind
	words                string
}

// copies lists what is stored again: retained outputs, and observations that stand
// in more than one context.
func (v *view) copies() []link {
	type token struct {
		observation  bool
		call, offset int
	}
	first := map[token]int{}
	for _, a := range v.actions {
		if !a.Spurious() {
			first[token{false, a.Call, a.Token}] = a.Index
		}
	}
	var list []link
	for _, s := range v.segments {
		if s.Kind != KindCopy && s.Kind != KindObservation {
			continue
		}
		for i := s.Start; i < s.End; i++ {
			is := token{s.Kind == KindObservation, s.From, s.Offset + i - s.Start}
			at, ok := first[is]
			switch n := len(list); {
			case !ok:
				if is.observation {
					first[is] = i
				}
			case at >= i:
			case n > 0 && list[n-1].end == i && list[n-1].original+i-list[n-1].start == at && list[n-1].kind == s.Kind:
				list[n-1].end++
			default:
				list = append(list, link{i, i + 1, at, s.Kind, s.what(i)})
			}
		}
	}
	return list
}

// maskRun is a run of places in a mask, drawn with one class.
type maskRun struct {
	start, end int
	class      string
}

// maskRuns joins the actions that keep gives a class.
func (v *view) maskRuns(keep func(align.Action) string) []maskRun {
	class := make([]string, v.n)
	for _, a := range v.actions {
		if c := keep(a); c != "" {
			class[a.Index] = c
		}
	}
	var list []maskRun
	for i, c := range class {
		if n := len(list); n > 0 && list[n-1].end == i && list[n-1].class == c {
			list[n-1].end++
		} else if c != "" {
			list = append(list, maskRun{i, i + 1, c})
		}
	}
	return list
}

// spurious counts the actions that nothing sampled.
func (v *view) spurious() int {
	n := 0
	for _, a := range v.actions {
		if a.Spurious() {
			n++
		}
	}
	return n
}

func (v *view) maskName() string {
	name := fmt.Sprintf("action mask, %s sampled", count(len(v.actions)-v.spurious()))
	if n := v.spurious(); n > 0 {
		name += fmt.Sprintf(", %s (red) not sampled", count(n))
	}
	return name
}

// kinds counts the tokens of each kind.
func (v *view) kinds() (n [KindOther + 1]int) {
	for _, s := range v.segments {
		n[s.Kind] += s.End - s.Start
	}
	return n
}

// displaced counts the tokens that stand at another position than in the rollout.
func (v *view) displaced() int {
	n := 0
	for _, s := range v.segments {
		if s.Index >= 0 && s.Index != s.Position {
			n += s.End - s.Start
		}
	}
	return n
}

// layoutWords is the picture in a sentence.
func (v *view) layoutWords() string {
	var parts []string
	for k, n := range v.kinds() {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", count(n), Kind(k)))
		}
	}
	words := fmt.Sprintf("%s stored tokens in %s: %s.", count(v.n), plural(len(v.rows), "row"), strings.Join(parts, ", "))
	for _, c := range v.callRuns() {
		words += fmt.Sprintf(" Call %d: places %d to %d.", c.call, c.start, c.end-1)
	}
	return words
}

// difference says in a sentence how the view's states differ from the rollout's.
func (v *view) difference() string {
	var parts []string
	if n := v.displaced(); n > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s tokens stand at another position", count(n), count(v.n)))
	}
	if n := pairs(v.extra); n > 0 {
		parts = append(parts, fmt.Sprintf("%s pairs are visible that were not", count(n)))
	}
	if n := pairs(v.missing); n > 0 {
		parts = append(parts, fmt.Sprintf("%s pairs are hidden that were visible", count(n)))
	}
	if n := v.spurious(); n > 0 {
		parts = append(parts, fmt.Sprintf("%s places are taken for actions where nothing was sampled", count(n)))
	}
	if len(parts) == 0 {
		return "Positions, visibility and actions are those of the rollout."
	}
	text := strings.Join(parts, "; ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(n) + " " + what + "s"
}
