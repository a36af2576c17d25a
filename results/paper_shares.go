package results

import (
	"cmp"
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

// Teacher is a teacher by the share of flattened transcripts in its SFT.
type Teacher struct {
	FlattenedShare float64
	Suffix         string       // of its students' names; empty: the paper's variants
	Later          *TeacherPart // its audit on q2, calls after the first memory update; nil: none
}

// Teachers lists the teachers whose students were evaluated, by share; nil where there
// is but one.
func (e *Evidence) Teachers() []Teacher {
	var teachers []Teacher
	add := func(share float64, suffix string) {
		if !slices.ContainsFunc(teachers, func(t Teacher) bool { return t.Suffix == suffix }) {
			teachers = append(teachers, Teacher{share, suffix, e.laterCalls(suffix)})
		}
	}
	for _, r := range e.Rows {
		if variant, share, ok := TeacherShare(r.Variant); ok {
			add(share, strings.TrimPrefix(r.Variant, variant))
		}
	}
	if own := e.Manifest.FlattenedShare; own != nil && teachers != nil {
		add(*own, "")
	}
	slices.SortFunc(teachers, func(a, b Teacher) int {
		return cmp.Or(cmp.Compare(a.FlattenedShare, b.FlattenedShare), cmp.Compare(a.Suffix, b.Suffix))
	})
	return teachers
}

// laterCalls finds a teacher's audit; its set is called q2.share-0.4.
func (e *Evidence) laterCalls(suffix string) *TeacherPart {
	for _, a := range e.Audits.Teacher {
		if a.Set != "q2"+strings.Replace(suffix, "-", ".", 1) {
			continue
		}
		for i := range a.Parts {
			if a.Parts[i].Calls == "after" {
				return &a.Parts[i]
			}
		}
	}
	return nil
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
	teachers := p.Teachers()
	if teachers == nil {
		return nil, nil
	}
	t := &Table{Name: "shares", Title: "T9: share of flattened transcripts in the teacher's SFT",
		Columns: slices.Concat(figures("share", "teacher agreement", "teacher p99", "teacher KL"), words("horizon"), []Column{
			{"pairs", true, []string{"pairs", "over"}}, {"F1 persistent", true, []string{"f1_persistent", "f1_persistent_low", "f1_persistent_high"}},
			{"F1 memopd", true, []string{"f1_memopd", "f1_memopd_low", "f1_memopd_high"}},
			{"memopd - persistent", true, []string{"difference", "difference_low", "difference_high"}}})}
	for _, teacher := range teachers {
		for _, horizon := range slices.Concat(composedHorizons, []string{wikiHorizon}) {
			students, err := p.studentCells(teacher.Suffix, horizon)
			if err != nil {
				return nil, err
			}
			if students != nil {
				t.Rows = append(t.Rows, slices.Concat(teacher.cells(), []Cell{Text(horizon)}, students))
			}
		}
	}
	t.Notes = []string{"teacher: in the flattened history against the aligned state, q2, calls after the first memory update: top-1 agreement in %, p99 |Δ log-prob| and mean KL in nats.",
		"F1 (squad) ± half the 95 % interval; pairs: seeds of both, or one run's tasks; memopd - persistent: paired, with its 95 % interval."}
	return t, nil
}

// cells are share, agreement, p99 and mean KL.
func (t Teacher) cells() []Cell {
	share := Cell{strconv.FormatFloat(t.FlattenedShare, 'g', -1, 64), stats(t.FlattenedShare)}
	if t.Later == nil {
		return []Cell{share, dash, dash, dash}
	}
	agreement := dash
	if a := t.Later.Agreement; a != nil {
		agreement = Cell{decimal(100**a, 2), stats(100 * *a)}
	}
	return []Cell{share, agreement, digits(t.Later.P99), digits(t.Later.MeanKL)}
}

// studentCells are pairs, both variants' F1 and their difference; nil where neither was
// evaluated.
func (p paper) studentCells(suffix, horizon string) ([]Cell, error) {
	f1 := Metrics[slices.IndexFunc(Metrics, func(m Metric) bool { return m.Key == "f1" })]
	means, found := []Cell{dash, dash}, false
	for i, variant := range []string{"persistent", "memopd"} {
		g := find(p.groups, variant+suffix, horizon)
		if g == nil {
			continue
		}
		s, err := p.summary(g)
		if err != nil {
			return nil, err
		}
		means[i], found = meanCell(f1, s.Means[f1.Key]), true
	}
	if !found {
		return nil, nil
	}
	c, err := p.compare("memopd"+suffix, "persistent"+suffix, horizon)
	if err != nil {
		return nil, err
	}
	pairs, difference := dash, dash
	if change, ok := c.Changes[f1.Key]; ok {
		pairs, difference = pairsCell(c), differenceCell(f1, change)
	}
	return slices.Concat([]Cell{pairs}, means, []Cell{difference}), nil
}
