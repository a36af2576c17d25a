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

// pretrainPart makes student and teacher, where they are made anew.
const pretrainPart = "pretrain"

// parts lists what the options ask for, in the order in which it is best begun.
func (o reproduceOptions) parts() ([]part, error) {
	seeds, err := parseSeeds(o.Seeds)
	if err != nil {
		return nil, err
	}
	settings, err := o.trainSettings()
	if err != nil {
		return nil, err
	}
	var first, last, timed []part
	if o.FromScratch {
		first = append(first, part{
			name: pretrainPart, kind: "pretrain", guess: o.guessPretrain(),
			args: append([]string{"pretrain", "--preset", o.Preset, "--resume"}, o.places()...),
		})
	}
	for _, variant := range []string{variantSFT, variantTeacher} {
		evaluated, alone := o.evalParts(variant, 0)
		first, timed = append(first, evaluated), append(timed, alone)
	}
	for _, seed := range seeds {
		for _, variant := range o.trained() {
			evaluated, alone := o.evalParts(variant, seed)
			first = append(first, o.trainPart(variant, seed, settings))
			last, timed = append(last, evaluated), append(timed, alone)
		}
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

// trained lists the variants that are trained.
func (o reproduceOptions) trained() []string {
	list := slices.Clone(o.Variants)
	for _, name := range variantNames() {
		if o.Sweep && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// places are the flags that say where and how a command works.
func (o reproduceOptions) places() []string {
	return []string{"--out", o.Out, "--data", o.Data, "--threads", strconv.Itoa(o.Threads)}
}

// afterPretrain are the parts that a user of student and teacher hangs on.
func (o reproduceOptions) afterPretrain() []string {
	if o.FromScratch {
		return []string{pretrainPart}
	}
	return nil
}

func runName(variant string, seed int) string { return fmt.Sprintf("%s/seed-%d", variant, seed) }

func (o reproduceOptions) trainPart(variant string, seed int, settings []string) part {
	args := append([]string{"train", "--preset", o.Preset, "--variant", variant, "--seed", strconv.Itoa(seed), "--resume"}, settings...)
	if o.FromScratch {
		args = append(args, "--from-scratch")
	}
	return part{
		name: "train/" + runName(variant, seed), kind: "train/" + variant, after: o.afterPretrain(), guess: o.guessTrain(),
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

// evalParts are the evaluation of a variant's run, and the measurement of its
// inference time.
func (o reproduceOptions) evalParts(variant string, seed int) (evaluated, timed part) {
	after := o.afterPretrain()
	what := []string{"eval", "--preset", o.Preset, "--variants", variant, "--horizon", strings.Join(o.Horizon, ",")}
	if variant != variantSFT && variant != variantTeacher {
		after = []string{"train/" + runName(variant, seed)}
		what = append(what, "--seeds", strconv.Itoa(seed))
	}
	evaluated = part{
		name: "eval/" + runName(variant, seed), kind: "eval", after: after, guess: o.guessEval(),
		args: slices.Concat(what, []string{"--tasks", strconv.Itoa(o.Tasks), "--timed-tasks", "0", "--ledger", "jsonl"}, o.places()),
	}
	n := strconv.Itoa(o.timedTasks())
	timed = part{
		name: "time/" + runName(variant, seed), kind: "time", after: after, alone: true, guess: o.guessTime(),
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
	add("updates.q2", o.afterPretrain(), count, student, []string{"--horizon", "q2", "--certificate", file("updates.q2.json")})
	if !slices.Contains(o.Audits, "speed") {
		return audits, nil
	}
	speed := []string{"audit", "speed", "--out", file("speed"), "--threads", strconv.Itoa(o.Threads)}
	if o.Preset == presetSmoke {
		speed = append(speed, "--model", "mini/student", "--prefix", "50", "--call-tokens", "40", "--rounds", "1", "--warmup", "0", "--memory=false")
	}
	return audits, []part{{name: "audit/speed", kind: "audit/speed", alone: true, guess: o.guessAudit("speed", ""), args: speed}}
}

// audited tells whether an audit is asked for, or makes the ledger of one that is.
func (o reproduceOptions) audited(what string) bool {
	return slices.Contains(o.Audits, what) ||
		what == "rce" && (slices.Contains(o.Audits, "teacher") || slices.Contains(o.Audits, "masks"))
}
