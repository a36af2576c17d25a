package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memopd/memopd-bench/presets"
)

// part is one bench command line of a reproduction.
type part struct {
	name  string   // such as train/memopd/seed-3
	kind  string   // parts of one kind take about the same time
	after []string // the parts that have to be finished before
	alone bool     // measures time, and runs while no other part does
	guess float64  // seconds that it takes on the machine of guesses
	args  []string // after "bench"
}

// parts lists what the options ask for, in the order in which it is best begun.
func (o reproduceOptions) parts() ([]part, error) {
	runs, err := o.runs()
	if err != nil {
		return nil, err
	}
	settings, err := o.trainSettings()
	if err != nil {
		return nil, err
	}
	first, last, timed := o.pretrainParts(), []part(nil), []part(nil)
	for _, r := range runs {
		evaluated, alone := o.evalParts(r)
		timed = append(timed, alone)
		if r.variant == "" {
			first = append(first, evaluated)
			continue
		}
		first, last = append(first, o.trainPart(r, settings)), append(last, evaluated)
	}
	audits, speed := o.auditParts()
	all := slices.Concat(first, last, audits, timed, speed)
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(p part) bool { // a seed or a variant that was given twice
		again := seen[p.name]
		seen[p.name] = true
		return again
	}), nil
}

// places are the flags that say where and how a command works.
func (o reproduceOptions) places() []string {
	return []string{"--out", o.Out, "--data", o.Data, "--threads", strconv.Itoa(o.Threads)}
}

func (o reproduceOptions) trainPart(r reproducedRun, settings []string) part {
	args := append([]string{"train", "--preset", o.Preset, "--variant", r.variant, "--seed", strconv.Itoa(r.seed), "--resume"}, settings...)
	if o.FromScratch {
		args = append(args, "--from-scratch")
	}
	after := o.afterPretrain()
	if r.share != "" {
		args = append(args, "--name", r.name, "--teacher-model", o.shareTeacher(r.share))
		after = append(after, sharePart(r.share))
	}
	return part{
		name: "train/" + r.folder(), kind: "train/" + r.variant, after: after, guess: o.guessTrain(),
		args: append(args, o.places()...),
	}
}

// trainSettings are the flags of bench train that the options give.
func (o reproduceOptions) trainSettings() (flags []string, err error) {
	defaults, err := trainDefaults(o.Preset)
	if err != nil {
		return nil, err
	}
	known := map[string]*field{}
	for _, f := range fields(&defaults) {
		known[f.name] = f
	}
	for _, own := range []string{"preset", "variant", "seed", "seeds", "out", "data", "threads", "resume", "from-scratch", "json", "teacher", "steps", "name"} {
		delete(known, own)
	}
	if o.Steps > 0 {
		flags = append(flags, fmt.Sprintf("--steps=%d", o.Steps))
	}
	for _, setting := range o.Train {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return nil, fmt.Errorf("train %q: want name=value", setting)
		}
		if known[name] == nil {
			return nil, unknownName("setting of --train", name, names(known))
		}
		if err := known[name].Set(value); err != nil {
			return nil, fmt.Errorf("train %s: %w", name, err)
		}
		flags = append(flags, "--"+name+"="+value)
	}
	return flags, nil
}

// evalParts are the evaluation of a run, and the measurement of its inference time.
func (o reproduceOptions) evalParts(r reproducedRun) (evaluated, timed part) {
	after := o.afterPretrain()
	what := []string{"eval", "--preset", o.Preset, "--variants", r.name, "--horizon", strings.Join(o.Horizon, ",")}
	if r.variant != "" {
		after = []string{"train/" + r.folder()}
		what = append(what, "--seeds", strconv.Itoa(r.seed))
	}
	evaluated = part{
		name: "eval/" + r.folder(), kind: "eval", after: after, guess: o.guessEval(),
		args: slices.Concat(what, []string{"--tasks", strconv.Itoa(o.Tasks), "--timed-tasks", "0", "--ledger", "jsonl"}, o.places()),
	}
	n := strconv.Itoa(o.timedTasks())
	timed = part{
		name: "time/" + r.folder(), kind: "time", after: after, alone: true, guess: o.guessTime(),
		args: slices.Concat(what, []string{"--tasks", n, "--timed-tasks", n, "--runs", o.Out,
			"--out", o.timeFolder(), "--data", o.Data, "--threads", strconv.Itoa(o.Threads)}),
	}
	return evaluated, timed
}

// timedTasks is how many tasks a horizon's time is measured on.
func (o reproduceOptions) timedTasks() int {
	if o.Tasks > 0 {
		return min(o.Tasks, o.TimedTasks)
	}
	return o.TimedTasks
}

// timeFolder is the --out of the parts that measure inference time.
func (o reproduceOptions) timeFolder() string { return filepath.Join(o.folder(), "time") }

// auditFolder is where the audits write their records.
func (o reproduceOptions) auditFolder() string { return filepath.Join(o.folder(), "audit") }

// auditNames are the audits of a reproduction.
var auditNames = []string{"rce", "teacher", "masks", "updates", "speed"}

// auditHorizons are the horizons whose states are audited.
var auditHorizons = []string{"q2", "q8"}

// auditParts are the audits of states, and of speed, which runs alone.
func (o reproduceOptions) auditParts() (audits, alone []part) {
	file := func(name string) string { return filepath.Join(o.auditFolder(), name) }
	var student, teacher []string
	if o.FromScratch {
		made := pretrainFolder(o.Out, o.Preset, 0)
		student = []string{"--model", filepath.Join(made, presets.Student)}
		teacher = []string{"--teacher", filepath.Join(made, presets.Teacher)}
	}
	add := func(name string, after []string, args ...[]string) {
		what, set, _ := strings.Cut(name, ".")
		if !o.audited(what) {
			return
		}
		command := slices.Concat([]string{"audit", what, "--preset", presetMini}, slices.Concat(args...), o.places())
		audits = append(audits, part{name: "audit/" + name, kind: "audit/" + name, after: after, guess: o.guessAudit(what, set), args: command})
	}
	count := []string{"--trajectories", strconv.Itoa(o.Trajectories)}
	for _, h := range auditHorizons {
		ledger, rce := file(h+".ledger.jsonl"), []string{"audit/rce." + h}
		add("rce."+h, o.afterPretrain(), count, student, []string{"--horizon", h, "--controls=all", "--save-ledger", ledger, "--certificate", file("rce." + h + ".json")})
		add("teacher."+h, rce, count, teacher, []string{"--ledger", ledger, "--record", file("teacher." + h + ".json")})
		add("masks."+h, rce, count, teacher, []string{"--ledger", ledger, "--record", file("masks." + h + ".json")})
	}
	if slices.Contains(o.Audits, "teacher") {
		for _, share := range o.shares() {
			name := "teacher.q2.share-" + share
			add(name, []string{"audit/rce.q2", sharePart(share)}, count, []string{"--teacher", o.shareTeacher(share), "--ledger", file("q2.ledger.jsonl"), "--record", file(name + ".json")})
		}
	}
	add("updates.q2", o.afterPretrain(), count, student, []string{"--horizon", "q2", "--certificate", file("updates.q2.json")})
	if !slices.Contains(o.Audits, "speed") {
		return audits, nil
	}
	speed := []string{"audit", "speed", "--out", file("speed"), "--threads", strconv.Itoa(o.Threads)}
	if o.Preset == presetSmoke {
		speed = append(speed, "--model", "mini/student", "--prefix", "50", "--call-tokens", "40", "--rounds", "1", "--warmup", "0", "--memory=false")
	} else {
		speed = append(speed, "--prefix", "100,400", "--calls", "2,4,8", "--rounds", "3")
	}
	return audits, []part{{name: "audit/speed", kind: "audit/speed", alone: true, guess: o.guessAudit("speed", ""), args: speed}}
}

// audited tells whether an audit is asked for, or makes the ledger of one that is.
func (o reproduceOptions) audited(what string) bool {
	return slices.Contains(o.Audits, what) ||
		what == "rce" && (slices.Contains(o.Audits, "teacher") || slices.Contains(o.Audits, "masks"))
}
