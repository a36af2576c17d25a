package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/results"
)

// addManifest states what made the outcome: commits, settings, seeds, machine, and
// each part with its command and seconds.
func (c *collection) addManifest() error {
	m := results.NewManifest(nil, libtorch())
	settings, err := json.Marshal(map[string]any{
		"reproduce": json.RawMessage(mustConfigJSON(&c.r.o)),
		"runs":      c.checks.all(),
		"commits":   c.checks.commits,
	})
	if err != nil {
		return err
	}
	seeds, err := parseSeeds(c.r.o.Seeds)
	if err != nil {
		return err
	}
	e := results.Reproduction{
		Schema: results.ManifestSchema, Preset: c.r.o.Preset, Commit: m.Commit, Dirty: m.Dirty,
		Libtorch: c.checks.libtorch, Machine: m.Machine, Settings: settings,
	}
	made := presetMini // whose models come with the program
	if c.r.o.FromScratch {
		made = c.r.o.Preset
	}
	sft, _, err := sftPreset(made)
	if err != nil {
		return err
	}
	e.FlattenedShare = &sft.FlattenedShare
	for _, seed := range seeds {
		e.Seeds = append(e.Seeds, int64(seed))
	}
	slices.Sort(e.Seeds)
	e.Seeds = slices.Compact(e.Seeds)
	commits := slices.Clone(c.checks.commits)
	for _, p := range c.r.parts {
		if record := c.r.states[p.name].record; record != nil {
			e.Parts = append(e.Parts, *record)
			for _, commit := range append([]string{record.Commit}, record.EarlierCommits...) {
				if !slices.Contains(commits, commit) {
					commits = append(commits, commit)
				}
			}
		}
	}
	if len(commits) > 1 {
		note("the parts were made by %d commits, which the manifest states: %s", len(commits), strings.Join(commits, ", "))
	}
	c.evidence.Manifest = e
	return nil
}

// copyAudits makes the outcome's audits those of this reproduction.
func (c *collection) copyAudits() error {
	to := filepath.Join(c.dir, results.AuditFolder)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(to, "*.json"))
	if err != nil {
		return err
	}
	var kept []string
	for _, p := range c.r.parts {
		name, ok := strings.CutPrefix(p.name, "audit/")
		if !ok || !c.finished(p.name) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(c.r.o.auditFolder(), name+".json"))
		if err != nil {
			return err
		}
		path := filepath.Join(to, name+".json")
		kept = append(kept, path)
		if err := results.WriteFile(path, data); err != nil {
			return err
		}
	}
	for _, path := range old {
		if !slices.Contains(kept, path) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// sampleTasks is how many tasks of a horizon the sample of trajectories has, and
// sampleHorizons which horizons.
const sampleTasks = 4

var sampleHorizons = []string{"q2", "q8", "q16"}

// writeTrajectories writes a sample for people to read: the first tasks of each
// horizon, by the first seed of each variant.
func (c *collection) writeTrajectories(runs []reproducedRun) error {
	tokenizer, err := wikiTokenizer()
	if err != nil {
		return err
	}
	var all []results.TrajectoryView
	for _, horizon := range sampleHorizons {
		seen := map[string]bool{}
		for _, run := range runs {
			if !slices.Contains(c.r.o.Horizon, horizon) || seen[run.name] || !c.finished("eval/"+run.folder()) {
				continue
			}
			seen[run.name] = true
			views, err := readTrajectoryViews(evalFolder(c.r.o.Out, c.r.o.Preset, horizon, run), run.name, int64(run.seed), horizon, sampleTasks, tokenizer.Decode)
			if err != nil {
				return err
			}
			all = append(all, views...)
		}
	}
	return results.WriteJSONL(filepath.Join(c.dir, results.TrajectoriesFile), all...)
}
