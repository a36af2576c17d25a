package report

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"
	"strings"
)

// Look is how a series is told from others: by colour, dash and mark, so that no
// difference is one of colour alone.
type Look struct {
	Ink  Ink
	Dash []float64
	Mark Mark
}

// Ink is a colour by its role, light or dark by the scheme.
type Ink string

// The inks that are not a series'.
const (
	inkText  Ink = "ink"
	inkMuted Ink = "muted"
	inkGrid  Ink = "line"
	inkCard  Ink = "card"
)

// Mark is the shape of a point.
type Mark int

// The marks.
const (
	markCircle Mark = iota
	markSquare
	markDiamond
	markUp
	markDown
	markCross
)

// scheme is the colours of light or dark.
type scheme map[Ink]string

// light and dark have at least 4.5 to 1 of contrast between any text and the card.
// The first five of the series differ for eyes without red, green or blue cones.
var (
	light = scheme{inkText: "#17202b", inkMuted: "#586472", inkGrid: "#dde2e8", inkCard: "#ffffff",
		"c0": "#66707b", "c1": "#0a6ad0", "c2": "#c04c0c", "c3": "#5e2a70", "c4": "#005c36", "c5": "#876000", "c6": "#b5195f", "c7": "#26789e"}
	dark = scheme{inkText: "#e5eaf0", inkMuted: "#9aa7b5", inkGrid: "#2a3542", inkCard: "#151c25",
		"c0": "#a9b4c0", "c1": "#6aa6d4", "c2": "#e3703c", "c3": "#d24dff", "c4": "#55e8ac", "c5": "#e3bb47", "c6": "#ff83b4", "c7": "#7fd0f2"}
)

// color is an ink's colour.
func (s scheme) color(i Ink) color.NRGBA {
	c := color.NRGBA{A: 255}
	fmt.Sscanf(s[i], "#%02x%02x%02x", &c.R, &c.G, &c.B)
	return c
}

// names lists the inks.
func (s scheme) names() []string {
	var list []string
	for i := range s {
		list = append(list, string(i))
	}
	slices.Sort(list)
	return list
}

// css are the rules of drawings for both schemes: classes s-INK for strokes and
// f-INK for fills.
func drawingCSS() string {
	rules := func(s scheme) string {
		var b strings.Builder
		for _, name := range s.names() {
			fmt.Fprintf(&b, ".s-%s{stroke:%s}.f-%[1]s{fill:%[2]s}", name, s[Ink(name)])
		}
		return b.String()
	}
	return rules(light) + "\n@media (prefers-color-scheme:dark){" + rules(dark) + "}\n"
}

// order is how variants are listed; others follow by name.
var order = []string{"sft", "ppo", "ppo-mem1", "persistent", "memopd", "memopd-sampled", "memopd-topk", "teacher"}

// looks are those of names that stand in several pictures: variants, and the
// layouts of an audit.
var looks = map[string]Look{
	"sft":            {"c0", []float64{5, 3}, markUp},
	"ppo":            {"c2", nil, markSquare},
	"ppo-mem1":       {"c6", []float64{7, 2, 2, 2}, markDown},
	"persistent":     {"c3", nil, markDiamond},
	"memopd":         {"c1", nil, markCircle},
	"memopd-sampled": {"c5", []float64{7, 3}, markCross},
	"memopd-topk":    {"c7", []float64{3, 2}, markUp},
	"teacher":        {"c4", []float64{2, 3}, markDown},

	"aligned":    {"c1", nil, markCircle},
	"visibility": {"c2", nil, markSquare},
	"positions":  {"c4", nil, markUp},
	"both":       {"c5", []float64{7, 3}, markCross},
	"mem1":       {"c6", []float64{7, 2, 2, 2}, markDown},
	"recorded":   {"c0", []float64{2, 3}, markCross},
	"calls":      {"c0", []float64{5, 3}, markUp},
	"published":  {"c0", nil, markDiamond},
}

// lookOf is a name's look; a name of no fixed one takes the i-th.
func lookOf(name string, i int) Look {
	if l, ok := looks[name]; ok {
		return l
	}
	dashes := [][]float64{nil, {6, 3}, {2, 2}}
	return Look{Ink(fmt.Sprintf("c%d", (i+1)%8)), dashes[i/8%3], Mark(i % 6)}
}

// compareVariants goes by the order of variants.
func compareVariants(a, b string) int {
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// sortVariants sorts names by the order of variants.
func sortVariants(names []string) []string {
	slices.SortFunc(names, compareVariants)
	return names
}
