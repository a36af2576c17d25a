package report

import (
	"math"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

// sharesFigure shows what the share of flattened transcripts in the teacher's SFT does
// to F1, and to the teacher in the flattened history; false where one share alone was
// tried. own is the share of the paper's variants, nil where it is not known.
func sharesFigure(summaries []results.Summary, teachers []results.TeacherAudit, own *float64) (Figure, bool) {
	f := Figure{Name: "shares", Short: "Teachers", Title: "The share of flattened transcripts in the teacher's SFT",
		Caption: "persistent's student is taught by what its teacher says in the flattened history, memopd's on the aligned states. Whiskers: " + overOf(summaries)}
	any := false
	var horizons []string
	for _, s := range summaries {
		_, _, ok := results.TeacherShare(s.Variant)
		if any = any || ok; ok && !slices.Contains(horizons, s.Horizon) {
			horizons = append(horizons, s.Horizon)
		}
	}
	if !any {
		return f, false
	}
	slices.SortFunc(horizons, compareHorizons)
	for _, h := range horizons {
		p := Panel{Title: "F1 on " + horizonName(h), X: free("share of flattened transcripts"), Y: free("mean over a task's questions").bounded(0, 1)}
		for i, v := range []string{"persistent", "memopd"} {
			p.Series = append(p.Series, Series{Name: v, Look: lookOf(v, i), Dots: true, Points: sharePoints(summaries, v, h, own)})
		}
		f.Panels = append(f.Panels, p)
	}
	if points := teacherPoints(teachers, own); len(points) > 0 {
		f.Panels = append(f.Panels, Panel{Title: "The teacher in the flattened history, q2", X: free("share of flattened transcripts"), Y: free("mean KL from the aligned state, nats a token").bounded(0, nan),
			Series: []Series{{Name: "teacher", Look: lookOf("teacher", 0), Dots: true, Points: points}}})
	}
	return f, true
}

// sharePoints are a variant's means on a horizon by its teacher's share.
func sharePoints(summaries []results.Summary, variant, horizon string, own *float64) []Point {
	var points []Point
	for _, s := range summaries {
		of, share, ok := results.TeacherShare(s.Variant)
		if !ok && own != nil {
			share, ok = *own, true
		}
		if interval, measured := s.Means["f1"]; ok && measured && of == variant && s.Horizon == horizon {
			points = append(points, Point{X: share, Y: interval.Mean, Low: interval.Low, High: interval.High, N: s.Seeds})
		}
	}
	return ascending(points)
}

// teacherPoints are the teachers' mean KL on q2 after the first memory update.
func teacherPoints(teachers []results.TeacherAudit, own *float64) []Point {
	var points []Point
	for _, t := range teachers {
		_, share, ok := results.TeacherShare(strings.Replace(t.Set, ".", "-", 1)) // q2.share-0.4
		if !ok && t.Set == "q2" && own != nil {
			share, ok = *own, true
		}
		for _, part := range t.Parts {
			if ok && part.Calls == "after" && part.MeanKL != nil {
				points = append(points, at(share, *part.MeanKL))
			}
		}
	}
	return ascending(points)
}

func ascending(points []Point) []Point {
	slices.SortStableFunc(points, func(a, b Point) int { return int(math.Copysign(1, a.X-b.X)) })
	return points
}

// ownTeacher leaves out variants with another teacher, which have a figure of their own.
func ownTeacher[T any](all []T, variant func(T) string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool {
		_, _, ok := results.TeacherShare(variant(x))
		return ok
	})
}
