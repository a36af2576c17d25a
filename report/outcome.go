package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/memopd/memopd-bench/results"
)

// Outcome is what the report is made of: a results folder, read. What it lacks is
// empty.
type Outcome struct {
	Dir string // as it stands in commands
	results.Evidence
	Trajectories []results.TrajectoryView
	Tables       []results.PaperTable
	Missing      []Missing

	summaries []results.Summary
}

// Load reads a results folder. Files that are not there are named in Missing; files
// that are wrong are errors.
func Load(dir string) (*Outcome, error) {
	o := &Outcome{Dir: filepath.ToSlash(filepath.Clean(dir))}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("report: %w: %s makes such a folder", err, o.reproduce())
	} else if !info.IsDir() {
		return nil, fmt.Errorf("report: %s is no folder", dir)
	}
	evidence, err := results.LoadEvidence(dir)
	switch {
	case err == nil:
		o.Evidence = *evidence
	case errors.Is(err, fs.ErrNotExist):
		o.Missing = append(o.Missing, Missing{"records of evaluations and the manifest (" + err.Error() + ")", o.reproduce()})
		if err := o.loadParts(dir); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	o.Trajectories, err = results.ReadJSONL[results.TrajectoryView](filepath.Join(dir, results.TrajectoriesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return o, o.prepare()
}

// loadParts reads what does without records and manifest.
func (o *Outcome) loadParts(dir string) (err error) {
	o.Curves, err = results.ReadJSONL[results.Curve](filepath.Join(dir, results.CurvesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.Audits, err = results.LoadAudits(filepath.Join(dir, results.AuditFolder))
	return err
}

// prepare makes tables and summaries of the evidence.
func (o *Outcome) prepare() (err error) {
	if o.summaries, err = results.Summarize(o.Rows, results.SummaryOptions{Baseline: baseline, Bootstrap: results.DefaultBootstrap}); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if o.Tables, err = results.PaperTables(&o.Evidence); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// reproduce is the command that makes everything.
func (o *Outcome) reproduce() string {
	return "bench reproduce --preset " + cmp.Or(o.Manifest.Preset, "mini")
}

// Figures are the report's pictures, those without evidence too.
func (o *Outcome) Figures() []Figure {
	summaries := ownTeacher(o.summaries, func(s results.Summary) string { return s.Variant })
	curves := ownTeacher(o.Curves, func(c results.Curve) string { return c.Variant })
	trajectories := ownTeacher(o.Trajectories, func(t results.TrajectoryView) string { return t.Variant })
	figures := []Figure{
		horizonFigure(summaries, o.reproduce()),
		devFigure(curves, o.reproduce()),
		learningFigure(curves, o.reproduce()),
	}
	if teachers := o.Teachers(); teachers != nil {
		figures = append(figures, sharesFigure(o.summaries, teachers))
	}
	return append(figures,
		positionFigure(o.Audits.RCE, o.Dir),
		contextFigure(trajectories, o.Audits.Updates, o.Dir, o.reproduce()),
		speedFigure(o.Audits.Speed, o.Dir),
	)
}

// AllMissing is all that the report lacks.
func (o *Outcome) AllMissing() []Missing {
	all := slices.Clone(o.Missing)
	for _, f := range o.Figures() {
		all = append(all, f.Missing...)
	}
	if len(o.Trajectories) == 0 {
		all = append(all, o.noTrajectories())
	}
	return all
}

// noTrajectories says how trajectories are made.
func (o *Outcome) noTrajectories() Missing {
	return Missing{"recorded trajectories (" + results.TrajectoriesFile + ")", o.reproduce()}
}
