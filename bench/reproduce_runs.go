package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/memopd/memopd-bench/presets"
)

// reproducedRun is what is evaluated: a training run, or one of the models that
// training starts from.
type reproducedRun struct {
	name    string // of its folder and in the tables
	variant string // that is trained; "" for the start and the teacher
	share   string // of flattened transcripts in its teacher's SFT; "": the preset's teacher
	seed    int
}

func (r reproducedRun) folder() string { return fmt.Sprintf("%s/seed-%d", r.name, r.seed) }

// runs lists what is evaluated: the start, the teacher, and seed after seed the
// variants, so that what may change with time falls on all of them.
func (o reproduceOptions) runs() ([]reproducedRun, error) {
	list := []reproducedRun{{name: variantSFT}, {name: variantTeacher}}
	seeds, err := parseSeeds(o.Seeds)
	if err != nil {
		return nil, err
	}
	for _, seed := range seeds {
		for _, variant := range o.trained() {
			list = append(list, reproducedRun{variant, variant, "", seed})
		}
	}
	if seeds, err = parseSeeds(o.ShareSeeds); err != nil {
		return nil, err
	}
	for _, seed := range seeds {
		for _, share := range o.shares() {
			for _, variant := range sharedVariants {
				list = append(list, reproducedRun{variant + "-share-" + share, variant, share, seed})
			}
		}
	}
	return list, nil
}

// trained lists the variants that are trained with the preset's teacher.
func (o reproduceOptions) trained() []string {
	list := slices.Clone(o.Variants)
	for _, name := range variantNames() {
		if o.Sweep && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// sharedVariants are those that the share of flattened transcripts in the teacher's SFT
// may matter to.
var sharedVariants = []string{"persistent", "memopd"}

// shares are the shares of flattened transcripts as names have them.
func (o reproduceOptions) shares() []string {
	var list []string
	for _, share := range o.Shares {
		list = append(list, strconv.FormatFloat(share, 'g', -1, 64))
	}
	return list
}

// shareOut is the --out of the pretraining that makes a share's teacher.
func (o reproduceOptions) shareOut(share string) string {
	return filepath.Join(o.folder(), "share-"+share)
}

func (o reproduceOptions) shareTeacher(share string) string {
	return filepath.Join(pretrainFolder(o.shareOut(share), o.Preset, 0), presets.Teacher)
}

func sharePart(share string) string { return pretrainPart + "/share-" + share }

// pretrainPart makes student and teacher, where they are made anew.
const pretrainPart = "pretrain"

// pretrainParts make the models that are not in the build.
func (o reproduceOptions) pretrainParts() (list []part) {
	add := func(name, out string, settings ...string) {
		args := append([]string{"pretrain", "--preset", o.Preset, "--resume"}, settings...)
		args = append(args, "--out", out, "--data", o.Data, "--threads", strconv.Itoa(o.Threads))
		list = append(list, part{name: name, kind: "pretrain", guess: o.guessPretrain(), args: args})
	}
	if o.FromScratch {
		add(pretrainPart, o.Out)
	}
	for _, share := range o.shares() {
		add(sharePart(share), o.shareOut(share), "--flattened-share", share)
	}
	return list
}

// afterPretrain are the parts that a user of student and teacher hangs on.
func (o reproduceOptions) afterPretrain() []string {
	if o.FromScratch {
		return []string{pretrainPart}
	}
	return nil
}
