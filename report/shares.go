package report

import (
	"slices"

	"github.com/memopd/memopd-bench/results"
)

// sharesFigure shows what the share of flattened transcripts in the teacher's SFT does
// to F1, and to the teacher in the flattened history.
func sharesFigure(summaries []results.Summary, teachers []results.Teacher) Figure {
	f := Figure{Name: "shares", Short: "Teachers", Title: "The share of flattened transcripts in the teacher's SFT",
		Caption: "persistent's student is taught by what its teacher says in the flattened history, memopd's on the aligned states. Whiskers: " + overOf(summaries)}
	axis := free("share of flattened transcripts")
	horizons, _ := horizonsOf(summaries)
	for _, h := range horizons {
		p := Panel{Title: "F1 on " + horizonName(h), X: axis, Y: free("mean over a task's questions").bounded(0, 1)}
		for i, v := range []string{"persistent", "memopd"} {
			s := Series{Name: v, Look: lookOf(v, i), Dots: true}
			for _, t := range teachers {
				if sum := summaryOf(summaries, v+t.Suffix, h); sum != nil {
					m := sum.Means["f1"]
					s.Points = append(s.Points, Point{X: t.FlattenedShare, Y: m.Mean, Low: m.Low, High: m.High, N: sum.Seeds})
				}
			}
			p.Series = append(p.Series, s)
		}
		f.Panels = append(f.Panels, p)
	}
	teacher := Series{Name: "teacher", Look: lookOf("teacher", 0), Dots: true}
	for _, t := range teachers {
		if t.Later != nil && t.Later.MeanKL != nil {
			teacher.Points = append(teacher.Points, at(t.FlattenedShare, *t.Later.MeanKL))
		}
	}
	if teacher.Points != nil {
		f.Panels = append(f.Panels, Panel{Title: "The teacher in the flattened history, q2", X: axis, Y: free("mean KL from the aligned state, nats a token").bounded(0, nan), Series: []Series{teacher}})
	}
	return f
}

// ownTeacher leaves out variants with another teacher, which have a figure of their own.
func ownTeacher[T any](all []T, variant func(T) string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool {
		_, _, ok := results.TeacherShare(variant(x))
		return ok
	})
}
