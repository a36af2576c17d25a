package results

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// shareMark stands in names between a variant and the share of flattened transcripts
// in its teacher's SFT, and between a set and that share in names of audits.
const shareMark = "share-"

// TeacherShare splits the name of a variant whose teacher's share of flattened
// transcripts was another, such as memopd-share-0.4.
func TeacherShare(name string) (variant string, share float64, ok bool) {
	variant, text, ok := strings.Cut(name, "-"+shareMark)
	if !ok {
		return name, 0, false
	}
	share, err := strconv.ParseFloat(text, 64)
	return variant, share, err == nil
}

// shared tells variants with another teacher.
func (g *group) shared() bool {
	_, _, ok := TeacherShare(g.variant)
	return ok
}

// shares is a table of what the share of flattened transcripts in the teacher's SFT
// does: to the teacher, in the flattened history, and to the students; nil where one
// share alone was tried.
func (p paper) shares() (*Table, error) {
	suffixes := map[float64]string{}
	for _, g := range p.groups {
		if variant, share, ok := TeacherShare(g.variant); ok {
			suffixes[share] = strings.TrimPrefix(g.variant, variant)
		}
	}
	if len(suffixes) == 0 {
		return nil, nil
	}
	t := &Table{Name: "shares", Title: "T9: share of flattened transcripts in the teacher's SFT",
		Columns: slices.Concat(figures("share", "teacher agreement", "teacher p99", "teacher KL"), words("horizon"), []Column{
			{"pairs", true, []string{"pairs", "over"}}, {"F1 persistent", true, []string{"f1_persistent", "f1_persistent_low", "f1_persistent_high"}},
			{"F1 memopd", true, []string{"f1_memopd", "f1_memopd_low", "f1_memopd_high"}},
			{"memopd - persistent", true, []string{"difference", "difference_low", "difference_high"}}})}
	if own := p.Manifest.FlattenedShare; own != nil {
		suffixes[*own] = ""
	}
	for _, share := range slices.Sorted(maps.Keys(suffixes)) {
		teacher := p.teacherCells("q2" + strings.Replace(suffixes[share], "-", ".", 1))
		for _, horizon := range slices.Concat(composedHorizons, []string{wikiHorizon}) {
			row, err := p.shareRow(suffixes[share], horizon)
			if err != nil {
				return nil, err
			}
			if row != nil {
				t.Rows = append(t.Rows, slices.Concat([]Cell{{strconv.FormatFloat(share, 'g', -1, 64), stats(share)}}, teacher, row))
			}
		}
	}
	t.Notes = []string{"teacher: in the flattened history against the aligned state, q2, calls after the first memory update: top-1 agreement in %, p99 |Δ log-prob| and mean KL in nats.",
		"F1 (squad) ± half the 95 % interval; pairs: seeds of both, or one run's tasks; memopd - persistent: paired, with its 95 % interval."}
	return t, nil
}

// teacherCells are agreement, p99 and mean KL after the first update of an audited set.
func (p paper) teacherCells(set string) []Cell {
	for _, a := range p.Audits.Teacher {
		for _, r := range a.Parts {
			if a.Set != set || r.Calls != "after" {
				continue
			}
			agreement := dash
			if r.Agreement != nil {
				agreement = Cell{decimal(100**r.Agreement, 2), stats(100 * *r.Agreement)}
			}
			return []Cell{agreement, digits(r.P99), digits(r.MeanKL)}
		}
	}
	return []Cell{dash, dash, dash}
}

// shareRow is horizon, pairs, both variants' F1 and their difference; nil where
// neither was evaluated.
func (p paper) shareRow(suffix, horizon string) ([]Cell, error) {
	f1 := Metrics[slices.IndexFunc(Metrics, func(m Metric) bool { return m.Key == "f1" })]
	means, found := []Cell{}, 0
	for _, variant := range []string{"persistent" + suffix, "memopd" + suffix} {
		g := find(p.groups, variant, horizon)
		if g == nil {
			means = append(means, dash)
			continue
		}
		s, err := p.summary(g)
		if err != nil {
			return nil, err
		}
		found++
		means = append(means, meanCell(f1, s.Means["f1"]))
	}
	pairs, difference := dash, dash
	switch found {
	case 0:
		return nil, nil
	case 2:
		c, err := p.compare("memopd"+suffix, "persistent"+suffix, horizon)
		if err != nil {
			return nil, err
		}
		pairs = Cell{fmt.Sprintf("%d %s", c.Pairs, c.Over), []any{c.Pairs, string(c.Over)}}
		if change, ok := c.Changes["f1"]; ok {
			d := change.Difference
			difference = Cell{fmt.Sprintf("%+.3f [%+.3f, %+.3f]", d.Mean, d.Low, d.High), stats(d.Mean, d.Low, d.High)}
		}
	}
	return slices.Concat([]Cell{Text(horizon), pairs}, means, []Cell{difference}), nil
}

// meanCell is a mean with half its interval.
func meanCell(m Metric, i Interval) Cell {
	return Cell{decimal(i.Mean, m.Decimals) + " ±" + decimal(i.Half(), m.Decimals), stats(i.Mean, i.Low, i.High)}
}
