package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memopd/memopd-bench/datasets"
	"github.com/memopd/memopd-bench/model"
	"github.com/memopd/memopd-bench/results"
	"github.com/memopd/memopd-bench/retriever"
	"github.com/memopd/memopd-bench/trace"
	"github.com/memopd/memopd-bench/train"
)

// real holds the settings of evaluation on real questions.
type real struct {
	TasksFile string   `flag:"tasks-file" help:"one file of composed tasks (Parquet) instead of those in --data"`
	Index     string   `flag:"index" help:"folder of the index that composed tasks are searched in; empty: index in --data"`
	Scripted  string   `flag:"scripted" help:"a scripted agent instead of a model for composed tasks: search-each (searches each question, answers nothing)"`
	Model     []string `flag:"model" help:"models for composed tasks: folders in Hugging Face's layout, GGUF files or names of fetched models; empty: the preset's"`
}

// placing says where evaluated models compute.
type placing struct {
	Device string `flag:"device" help:"where models run: cpu, cuda or cuda:N"`
	DType  string `flag:"dtype" help:"type that models are stored and compute in: f32 or bf16"`
}

func placingPreset(preset string) placing {
	if preset == presetPaper {
		return placing{"cuda", train.BFloat16}
	}
	return placing{"cpu", train.Float32}
}

func (p placing) placement() (model.Placement, error) {
	if !slices.Contains([]string{train.Float32, train.BFloat16}, p.DType) {
		return model.Placement{}, unknownName("dtype", p.DType, []string{train.Float32, train.BFloat16})
	}
	return train.Compute{Device: p.Device, DType: p.DType}.Frozen(), nil
}

// wikiLoader loads models of the mini-wiki.
type wikiLoader struct {
	dialect *dialect
	options evalOptions
}

func (l wikiLoader) at(path string) loadFunc {
	return l.with(func(p model.Placement) (*model.Decoder, error) { return model.Load(path, p) })
}

func (l wikiLoader) builtin(role string) loadFunc {
	return l.with(func(p model.Placement) (*model.Decoder, error) { return loadBuiltin(l.options.Preset, role, p) })
}

func (l wikiLoader) with(load func(model.Placement) (*model.Decoder, error)) loadFunc {
	return func() (*model.Decoder, *dialect, error) {
		p, err := l.options.placement()
		if err != nil {
			return nil, nil, err
		}
		d, err := load(p)
		return d, l.dialect, err
	}
}

// realLoader loads models that answer real questions, each with its own tokenizer.
type realLoader struct{ options evalOptions }

func (l realLoader) at(path string) loadFunc {
	return func() (*model.Decoder, *dialect, error) {
		p, err := l.options.placement()
		if err != nil {
			return nil, nil, err
		}
		d, err := modelDialect(l.options.speaking, path)
		if err != nil {
			return nil, nil, err
		}
		m, err := loadModel(path, p, d.tokenizer)
		return m, d, err
	}
}

func (l realLoader) builtin(role string) loadFunc {
	return func() (*model.Decoder, *dialect, error) {
		return nil, nil, fmt.Errorf("the build has no %s for real questions", role)
	}
}

// onReal tells whether the tasks are real questions: by the preset, by the file
// given, or by what the data folder holds.
func (o evalOptions) onReal() (bool, error) {
	if !onWiki(o.Preset) || o.TasksFile != "" {
		return true, nil
	}
	m, err := datasets.ReadManifest(o.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && m.Kind == "composed", err
}

// taskFiles lists the files of tasks that the options name: one, or a file a horizon.
func (o evalOptions) taskFiles() ([]string, error) {
	if o.TasksFile != "" {
		return []string{o.TasksFile}, nil
	}
	split, err := datasets.ParseSplit(o.Split)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, horizon := range o.Horizon {
		n, err := datasets.ParseHorizon(horizon)
		if err != nil {
			return nil, err
		}
		files = append(files, filepath.Join(o.Data, datasets.TasksName(split, n)))
	}
	return files, nil
}

const tasksHint = "no such tasks were made; bench data build --horizon makes them, in another folder if this one has an index"

// runReal evaluates on tasks of real questions.
func (o evalOptions) runReal(ctx context.Context, sampling trace.Sampler) error {
	files, err := o.taskFiles()
	if err != nil {
		return err
	}
	subjects, err := o.realSubjects(ctx)
	if err != nil {
		return err
	}
	if o.Index == "" {
		o.Index = filepath.Join(o.Data, indexFolder)
	}
	index, err := o.openPassages(ctx, o.Index)
	if errors.Is(err, retriever.ErrNoIndex) {
		return fmt.Errorf("%w: make it with bench data build --dir %s", err, o.Data)
	}
	if err != nil {
		return err
	}
	defer index.Close()
	var rows []results.TaskRow
	for _, file := range files {
		tasks, err := readTasks(file, o.Tasks)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s", err, tasksHint)
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		dir := filepath.Join(o.Out, "eval", name)
		if !onWiki(o.Preset) {
			name = strings.TrimPrefix(name, string(datasets.Test)+"-")
			dir = filepath.Join(o.Out, o.Preset, "eval", name)
		}
		got, err := evalRun{
			options: o, horizon: name, tasks: tasks, searcher: searcher{index}, dataHash: file, sampling: sampling, dir: dir,
		}.all(ctx, subjects)
		if err != nil {
			return err
		}
		rows = append(rows, got...)
	}
	return printEvaluation(o, rows)
}

// realSubjects lists what is evaluated on real questions: a script, a server, the
// models given, or the preset's.
func (o evalOptions) realSubjects(ctx context.Context) ([]subject, error) {
	if o.Server != "" {
		s, err := o.serverSubject(ctx)
		return []subject{s}, err
	}
	if o.Scripted != "" {
		if len(o.Model) > 0 {
			return nil, errors.New("--scripted and --model exclude each other")
		}
		if o.Scripted != searchEach {
			return nil, unknownName("scripted agent", o.Scripted, []string{searchEach})
		}
		p, err := o.protocol("mem1")
		if err != nil {
			return nil, err
		}
		return []subject{{variant: o.Scripted, from: o.Scripted, open: scripted(p)}}, nil
	}
	var subjects []subject
	for _, name := range o.Model {
		path, err := locateModel(name)
		if err != nil {
			return nil, err
		}
		s := subject{variant: modelName(path), from: path, update: recordedUpdate(filepath.Dir(path)), open: o.sampled(path, realLoader{o}.at(path))}
		if slices.ContainsFunc(subjects, func(other subject) bool { return other.variant == s.variant }) {
			return nil, fmt.Errorf("two models are called %s: evaluate them one after another", s.variant)
		}
		subjects = append(subjects, s)
	}
	if onWiki(o.Preset) {
		if len(subjects) == 0 {
			return nil, errors.New("composed tasks need --preset small or paper, --model, or --scripted search-each")
		}
		return subjects, nil
	}
	if len(subjects) > 0 && len(o.Variants) == 0 {
		return subjects, nil
	}
	found, err := findSubjects(o, realLoader{o})
	if err == nil && len(subjects)+len(found) == 0 {
		err = fmt.Errorf("nothing to evaluate: make a start with bench pretrain --preset %s, or name a model with --model", o.Preset)
	}
	return append(subjects, found...), err
}
