package results

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PaperTable is one of the paper's tables, in parts such as values and changes.
type PaperTable struct {
	Name   string // t1, t2, t3, t3b, t4 to t9
	Tables []*Table
}

// mainVariants are the start that all begin with and the paper's, in the order of
// the tables. startVariants are models that no run of PPO made. Whatever else was
// evaluated goes beyond the paper.
var (
	mainVariants  = []string{"sft", "ppo", "persistent", "memopd"}
	startVariants = []string{"base", "sft", "teacher"}
)

// extra tells variants that go beyond the paper.
func (g *group) extra() bool {
	return !slices.Contains(mainVariants, g.variant) && !slices.Contains(startVariants, g.variant)
}

// The horizons of tables T1 and T2.
var (
	composedHorizons = []string{"q2", "q8", "q16"}
	wikiHorizon      = "wikirag"
)

// PaperTables makes all tables of the paper, and a ninth of what goes beyond it.
// One without evidence says so in a note.
func PaperTables(e *Evidence) ([]PaperTable, error) {
	groups, err := groupRows(e.Rows)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(groups, orderGroups)
	p := paper{e, groups, map[*group]Summary{}, map[[3]string]Comparison{}}
	var tables []PaperTable
	for _, make := range []func() (PaperTable, error){p.t1, p.t2, p.t3, p.t3b, p.t4, p.t5, p.t6, p.t7, p.t8, p.t9} {
		t, err := make()
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// paper makes tables of one outcome.
type paper struct {
	*Evidence
	groups    []*group // in the order of the tables
	summaries map[*group]Summary
	compared  map[[3]string]Comparison // by variant, baseline, horizon
}

// summary summarizes a group once.
func (p paper) summary(g *group) (Summary, error) {
	if s, done := p.summaries[g]; done {
		return s, nil
	}
	s, err := g.summary(DefaultBootstrap)
	if err != nil {
		return s, fmt.Errorf("%s on %s: %w", g.variant, g.horizon, err)
	}
	p.summaries[g] = s
	return s, nil
}

// compare compares once.
func (p paper) compare(variant, baseline, horizon string) (Comparison, error) {
	key := [3]string{variant, baseline, horizon}
	if c, done := p.compared[key]; done {
		return c, nil
	}
	c, err := compareGroups(p.groups, variant, baseline, horizon, DefaultBootstrap)
	if err != nil {
		return c, fmt.Errorf("%s against %s on %s: %w", variant, baseline, horizon, err)
	}
	p.compared[key] = c
	return c, nil
}

// orderGroups sorts by horizon, q2 before q16 before others, and by variant.
func orderGroups(a, b *group) int {
	return cmp.Or(
		cmp.Compare(horizonRank(a.horizon), horizonRank(b.horizon)), strings.Compare(a.horizon, b.horizon),
		cmp.Compare(variantRank(a.variant), variantRank(b.variant)), strings.Compare(a.variant, b.variant))
}

// horizonRank is the number of questions of qN; others come after.
func horizonRank(horizon string) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(horizon, "q")); err == nil {
		return n
	}
	return 1 << 30
}

// variantRank puts the paper's variants first and then the models that were
// trained by no run.
func variantRank(variant string) int {
	order := append(slices.Clone(mainVariants), startVariants...)
	if i := slices.Index(order, variant); i >= 0 {
		return i
	}
	return len(order)
}

// without is a table of a note.
func without(name, title, why string) PaperTable {
	return PaperTable{name, []*Table{{Title: title, Notes: []string{"No evidence: " + why + "."}}}}
}

func (p paper) t1() (PaperTable, error) {
	return p.evaluation("t1", "T1: main results", composedHorizons)
}

func (p paper) t2() (PaperTable, error) {
	return p.evaluation("t2", "T2: Wiki-RAG", []string{wikiHorizon})
}

// evaluation is a table of values and one of changes against ppo.
func (p paper) evaluation(name, title string, horizons []string) (PaperTable, error) {
	keep := func(g *group) bool {
		return slices.Contains(horizons, g.horizon) && !g.extra()
	}
	values, err := p.values(keep)
	if err != nil || len(values.Rows) == 0 {
		return without(name, title, "nothing was evaluated on "+strings.Join(horizons, ", ")), err
	}
	values.Title = title
	values.Notes = append(values.Notes, p.lacking(horizons)...)
	changes, err := p.changes("ppo", strings.ToUpper(name), keep)
	changes.Name, changes.Title = "changes", title+", change against ppo in %"
	tables := []*Table{values, changes}
	if ends := p.ends(title, keep); ends != nil {
		tables = append(tables, ends)
	}
	return PaperTable{name, tables}, err
}

// values is a table of means of some groups.
func (p paper) values(keep func(*group) bool) (*Table, error) {
	var summaries []Summary
	for _, g := range p.groups {
		if !keep(g) {
			continue
		}
		s, err := p.summary(g)
		if err != nil {
			return nil, err
		}
		summaries = append(summaries, s)
	}
	t := SummaryTable(summaries)
	t.Name = "values"
	t.Notes = append(t.Notes, p.provenance())
	return t, nil
}

// changes is a table of some groups against a baseline, with the paper's numbers
// of one of its tables ("" for none).
func (p paper) changes(baseline, paperTable string, keep func(*group) bool) (*Table, error) {
	var comparisons []Comparison
	for _, g := range p.groups {
		if !keep(g) || g.variant == baseline {
			continue
		}
		c, err := p.compare(g.variant, baseline, g.horizon)
		if err != nil {
			return &Table{}, err
		}
		comparisons = append(comparisons, c)
	}
	published := slices.DeleteFunc(PublishedNumbers(), func(n Published) bool { return n.Table != paperTable })
	return ChangeTable(comparisons, baseline, published), nil
}

// lacking notes which of the variants and seeds were not evaluated on which horizons.
func (p paper) lacking(horizons []string) []string {
	var notes []string
	for _, h := range horizons {
		var absent []string
		for _, v := range mainVariants {
			g := find(p.groups, v, h)
			if g == nil {
				absent = append(absent, v)
			} else if n := len(p.Manifest.Seeds); v != "sft" && len(g.records) < n {
				absent = append(absent, fmt.Sprintf("%d of %d seeds of %s", n-len(g.records), n, v))
			}
		}
		if len(absent) > 0 {
			notes = append(notes, fmt.Sprintf("Not evaluated on %s: %s.", h, strings.Join(absent, ", ")))
		}
	}
	return notes
}

// provenance says what made the outcome.
func (p paper) provenance() string {
	m := p.Manifest
	commit := m.Commit
	if m.Dirty {
		commit += " with uncommitted changes"
	}
	return fmt.Sprintf("sft: the start of all variants. Preset %s, seeds %s, commit %s, libtorch %s, %s, %d cores.", m.Preset, seedList(m.Seeds), cmp.Or(commit, "unknown"), cmp.Or(m.Libtorch, "unknown"), cmp.Or(m.Machine.CPU, "unknown processor"), m.Machine.Cores)
}

func seedList(seeds []int64) string {
	texts := make([]string, len(seeds))
	for i, s := range seeds {
		texts[i] = strconv.FormatInt(s, 10)
	}
	return strings.Join(texts, ", ")
}
