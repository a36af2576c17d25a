package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/presets"
	"github.com/memopd/memopd-bench/train"
)

// places are the paths of the models that a training run starts from; an empty
// one is the checkpoint in the build, or no teacher.
type places struct{ student, teacher string }

// startingPlaces finds the student's and, unless the variant has none, the
// teacher's model.
func (o trainOptions) startingPlaces(ctx context.Context) (at places, err error) {
	fresh := ""
	if o.FromScratch {
		if fresh, err = pretrainOnce(ctx, o); err != nil {
			return at, err
		}
	}
	if at.student, err = o.place(presets.Student, o.Student, fresh); err != nil || o.Teacher == train.TeacherNone {
		return at, err
	}
	at.teacher, err = o.place(presets.Teacher, o.TeacherFrom, fresh)
	return at, err
}

// place is where a model comes from: the one given, else the one made anew, else
// the preset's.
func (o trainOptions) place(role, given, fresh string) (string, error) {
	switch {
	case given != "" && onWiki(o.Preset):
		return given, nil
	case given != "":
		return locateModel(given)
	case fresh != "":
		return filepath.Join(fresh, role), nil
	case onWiki(o.Preset):
		return "", nil
	case o.Preset == presetPaper && role == presets.Teacher:
		return locateModel(paperTeacher)
	}
	path := filepath.Join(pretrainFolder(o.Out, o.Preset, 0), role)
	if _, err := os.Stat(filepath.Join(path, "config.json")); err != nil {
		flag := map[string]string{presets.Student: "--student", presets.Teacher: "--teacher-model"}[role]
		return "", fmt.Errorf("no %s at %s: make it with bench pretrain --preset %s, or name a model with %s", role, path, o.Preset, flag)
	}
	return path, nil
}

// startingModels loads the student and, unless the variant has none, the teacher.
func (o trainOptions) startingModels(at places, e *environment) (student, teacher *model.Decoder, err error) {
	// In the host's memory and float32: the run copies what it trains, and what it
	// keeps frozen, to where it wants them.
	if student, err = o.load(presets.Student, at.student, model.Placement{}, e); err != nil {
		return nil, nil, fmt.Errorf("student: %w", err)
	}
	if o.Teacher == train.TeacherNone {
		return student, nil, nil
	}
	if teacher, err = o.load(presets.Teacher, at.teacher, o.AtRest(), e); err != nil {
		student.Free()
		return nil, nil, fmt.Errorf("teacher: %w", err)
	}
	return student, teacher, nil
}

func (o trainOptions) load(role, path string, p model.Placement, e *environment) (*model.Decoder, error) {
	switch {
	case path == "":
		return loadBuiltin(o.Preset, role, p)
	case onWiki(o.Preset):
		return model.Load(path, p)
	}
	return loadModel(path, p, e.tokenizer)
}

// loadBuiltin loads a checkpoint of the build.
func loadBuiltin(preset, role string, p model.Placement) (*model.Decoder, error) {
	if preset == presetSmoke { // the same models, fewer steps
		preset = presetMini
	}
	files, err := presets.Checkpoint(preset, role)
	if err != nil {
		return nil, err
	}
	return model.LoadFS(files, p)
}

// pretrainOnce makes the preset's checkpoints under --out unless they are there.
func pretrainOnce(ctx context.Context, o trainOptions) (string, error) {
	p, err := pretrainDefaults(o.Preset)
	if err != nil {
		return "", err
	}
	p.common, p.speaking, p.Resume, p.TensorBoard = o.common, o.speaking, true, o.TensorBoard
	dir := pretrainFolder(o.Out, o.Preset, p.Seed)
	unlock, err := lockFolder(ctx, dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(dir, pretrainFile)); err == nil {
		if made := cmp.Or(recordedUpdate(dir), defaultUpdate); made != o.Update {
			note("%s was made with the context update %s", dir, made)
		}
		return dir, nil
	}
	held := func(context.Context, string) (func(), error) { return func() {}, nil }
	_, err = pretrainUnder(ctx, p, dir, held)
	return dir, err
}
