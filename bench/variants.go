package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/align"
	"github.com/memopd/memopd-bench/model/tokenizer"
	"github.com/memopd/memopd-bench/train"
)

// variant is what training runs are named after: the settings of train.PPOConfig that
// it stands for. Where one is empty, the flag of that name is free.
type variant struct{ name, teacher, estimator, layout string }

// variants are the paper's, each one value of what the teacher sees; then ours: the
// other estimators of the teacher term, and training under MEM1's mask.
var variants = []variant{
	{name: "ppo", teacher: train.TeacherNone},
	{name: "persistent", teacher: train.TeacherPersistent},
	{name: "memopd", teacher: train.TeacherAligned},
	{name: "memopd-sampled", teacher: train.TeacherAligned, estimator: train.EstimatorSampled},
	{name: "memopd-topk", teacher: train.TeacherAligned, estimator: train.EstimatorTopK},
	{name: "ppo-mem1", teacher: train.TeacherNone, layout: "mem1"},
}

// variantNames lists the names of variants.
func variantNames() []string {
	var names []string
	for _, v := range variants {
		names = append(names, v.name)
	}
	return names
}

// applyVariant sets what the variant stands for. A flag that says otherwise is an error.
func (o *trainOptions) applyVariant() error {
	i := slices.Index(variantNames(), o.Variant)
	if i < 0 {
		return unknownName("variant", o.Variant, variantNames())
	}
	v := variants[i]
	o.Teacher = v.teacher
	for _, x := range []struct {
		flag, free, want string
		value            *string
	}{
		{"teacher-estimator", train.EstimatorFull, v.estimator, &o.TeacherEstimator},
		{"layout", train.LayoutAligned, v.layout, &o.Layout},
	} {
		if x.want == "" {
			continue
		}
		if *x.value != x.free && *x.value != x.want {
			return fmt.Errorf("the variant %s stands for --%s %s, not %s", v.name, x.flag, x.want, *x.value)
		}
		*x.value = x.want
	}
	return nil
}

// goodName is what --name may be: a folder's name that no shell changes.
var goodName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// checkName refuses names that are taken: those of variants, and of folders beside runs.
func (o trainOptions) checkName() error {
	taken := append([]string{variantBase, variantSFT, variantTeacher, "pretrain", "eval", "reproduce"}, variantNames()...)
	switch {
	case o.Name == "":
	case !goodName.MatchString(o.Name):
		return fmt.Errorf("name is %q, want small letters, digits, '.', '_' and '-', a letter or digit first", o.Name)
	case slices.Contains(taken, o.Name):
		return fmt.Errorf("name is %q, which is taken (%s)", o.Name, strings.Join(taken, ", "))
	}
	return nil
}

// folder is where the run is kept.
func (o trainOptions) folder() string {
	name := o.Variant
	if o.Name != "" {
		name = o.Name
	}
	return filepath.Join(o.Out, o.Preset, name, fmt.Sprintf("seed-%d", o.Seed))
}

// namedRuns lists the names of a preset's runs that bench train --name made.
func namedRuns(dir string) []string {
	found, _ := fs.Glob(os.DirFS(dir), "*/seed-*/"+runFile)
	var names []string
	for _, path := range found {
		name, _, _ := strings.Cut(path, "/")
		if name != variantPretrain && !slices.Contains(variantNames(), name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// thinkLength divides outputs for the layout mem1, where the agent thinks in <think> tags.
func thinkLength(tok *tokenizer.Tokenizer) train.ThinkLength {
	return align.ThinkTo("</think>", func(ids []int32) string { return tok.Decode(ids) })
}
