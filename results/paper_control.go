package results

import (
	"fmt"
	"slices"
	"strings"
)

// control is one comparison of table T5.
type control struct{ variant, baseline string }

var controls = []control{{"persistent", "ppo"}, {"memopd", "persistent"}, {"memopd", "ppo"}, {"sft", "ppo"}}

// t5 separates what a teacher brings from what its aligned state adds, on q2 with
// the paper's changes in a column of their own, and how alignment fares on the
// other horizons.
func (p paper) t5() (PaperTable, error) {
	const name, title = "t5", "T5: control of the teacher's state, q2"
	t := &Table{Name: "q2", Title: title, Columns: []Column{
		{"comparison", false, []string{"variant", "baseline"}}, {"metric", false, []string{"metric"}}, {"pairs", true, []string{"pairs", "over"}},
		{"baseline", true, []string{"baseline_mean"}}, {"variant", true, []string{"variant_mean"}},
		{"difference", true, []string{"difference", "difference_low", "difference_high"}}, {"t", true, []string{"t"}}, {"p", true, []string{"p"}},
		{"change in %", true, []string{"percent", "percent_low", "percent_high"}}, {"published, in %", true, []string{"published_percent"}},
	}}
	for _, c := range controls {
		compared, err := p.compare(c.variant, c.baseline, "q2")
		if err != nil {
			return PaperTable{Name: name}, err
		}
		if compared.Changes == nil {
			if why := "No change: " + compared.NoChange + "."; !slices.Contains(t.Notes, why) {
				t.Notes = append(t.Notes, why)
			}
			continue
		}
		for _, m := range Metrics {
			if change, ok := compared.Changes[m.Key]; ok && m.score() {
				t.Rows = append(t.Rows, controlRow(compared, m, change))
			}
		}
	}
	if len(t.Rows) == 0 {
		return without(name, title, "neither persistent nor memopd can be compared on q2"), nil
	}
	t.Notes = append(t.Notes, "Pairs of seeds: 95 % t interval of the paired differences and the paired t-test; pairs of tasks (one run): bootstrap, no test.",
		"published: "+PublishedSource+", table T5; EM and F1 there are not said to be squad's or mem1's, and they stand under squad.")
	tables := []*Table{t}
	others, err := p.changes("persistent", "", func(g *group) bool { return g.variant == "memopd" && g.horizon != "q2" })
	if others.Name, others.Title = "horizons", "T5: memopd against persistent on the other horizons, change in %"; err == nil && len(others.Rows) > 0 {
		tables = append(tables, others)
	}
	return PaperTable{name, tables}, err
}

func controlRow(c Comparison, m Metric, change Change) []Cell {
	row := []Cell{
		{c.Variant + " against " + c.Baseline, []any{c.Variant, c.Baseline}}, {m.Head, []any{m.Key}},
		pairsCell(c),
		{decimal(change.Base, m.Decimals), stats(change.Base)}, {decimal(change.New, m.Decimals), stats(change.New)},
		differenceCell(m, change), dash, dash, absent, dash,
	}
	if change.Test != nil {
		row[6] = Cell{fmt.Sprintf("%.2f", change.Test.T), stats(change.Test.T)}
		row[7] = Cell{strings.TrimLeft(probability(change.Test.P), "p="), stats(change.Test.P)}
	}
	if i := change.Percent; i != nil {
		row[8] = Cell{fmt.Sprintf("%s [%s, %s]", signed(i.Mean), signed(i.Low), signed(i.High)), stats(i.Mean, i.Low, i.High)}
	}
	i := slices.IndexFunc(PublishedNumbers(), func(n Published) bool {
		return n.Table == "T5" && n.Variant == c.Variant && n.Baseline == c.Baseline && n.Horizon == c.Horizon && n.Metric == m.Key
	})
	if i >= 0 {
		value := PublishedNumbers()[i].Value
		row[9] = Cell{signed(value), []any{value}}
	}
	return row
}

// dash stands for what does not apply.
var dash = Cell{Text: "-"}

// t9 goes beyond the paper: whatever else was trained, such as other estimators of
// the teacher term and other layouts in training, beside the variants that they
// differ from, and other teachers.
func (p paper) t9() (PaperTable, error) {
	const name, title = "t9", "T9: estimators of the teacher term, layouts of training (not in the paper)"
	if !slices.ContainsFunc(p.groups, (*group).extra) {
		return without(name, title, "nothing but the paper's variants was trained and evaluated"), nil
	}
	shares, err := p.shares()
	if err != nil {
		return PaperTable{Name: name}, err
	}
	if !slices.ContainsFunc(p.groups, (*group).beside) {
		return PaperTable{name, []*Table{shares}}, nil
	}
	origin := func(g *group) bool { // on the same horizons; the start too
		return slices.Contains(mainVariants, g.variant) && slices.ContainsFunc(p.groups, func(o *group) bool {
			return o.beside() && o.horizon == g.horizon && (g.variant == "sft" || g.variant == "ppo" || ofVariant(o.variant, g.variant))
		})
	}
	values, err := p.values(func(g *group) bool { return g.beside() || origin(g) })
	if err != nil {
		return PaperTable{Name: name}, err
	}
	values.Title = title
	tables := []*Table{values}
	for _, baseline := range mainVariants[1:] {
		t, err := p.changes(baseline, "", func(g *group) bool {
			return g.beside() && (baseline == "ppo" || ofVariant(g.variant, baseline))
		})
		if err != nil {
			return PaperTable{Name: name}, err
		}
		t.Name, t.Title = "against-"+baseline, "T9: change against "+baseline+" in %"
		if len(t.Rows)+len(t.Notes) > 0 {
			tables = append(tables, t)
		}
	}
	if shares != nil {
		tables = append(tables, shares)
	}
	return PaperTable{name, tables}, nil
}

// beside tells variants that stand beside the paper's with the same teacher.
func (g *group) beside() bool { return g.extra() && !g.shared() }

// ofVariant tells a variant whose name begins with another's: memopd-topk is memopd's.
func ofVariant(name, of string) bool { return strings.HasPrefix(name, of+"-") }
